"""To TVM's own database and back: what leaves compiles and runs, what comes back is not doubled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from exchange_tools import CONV, MATMUL, assert_right, inputs_and_output, result, run, tuned_store

from tuneassist.errors import UsageError
from tuneassist.exchange.from_metaschedule import import_database
from tuneassist.exchange.metaschedule import RECORDS, WORKLOADS
from tuneassist.records import TrialStatus
from tuneassist.storage.memory import memory_store
from tuneassist.storage.sqlite import open_store

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tuned_store(tmp_path_factory.mktemp("exchange"))


@pytest.fixture(scope="module")
def exported(tuned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The matmul's run as a MetaSchedule database."""
    folder = tmp_path_factory.mktemp("exported") / "db"
    result("export", "1", "--format", "tvm", "-o", str(folder), db=tuned)
    return folder


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    """The exported database, to be damaged."""
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.mark.parametrize(("number", "spec"), [(1, MATMUL), (2, CONV)])
def test_stock_tvm_loads_compiles_and_runs_it(tuned: Path, tmp_path: Path, number: int, spec: str) -> None:
    folder = tmp_path / "db"
    done = result("export", str(number), "--format", "tvm", "-o", str(folder), db=tuned)
    with open_store(tuned) as store:
        trials = [trial for trial in store.trials(number) if trial.correct is not False and trial.run_secs]
        (task,) = store.tasks(number)
        target = json.loads(store.target(store.run(number).target_id).json)
    assert done["records"] == len(trials) > 0

    from tuneassist.tvm_api import Target, load_tensor_intrinsics, ms, structural_equal, tvm
    from tuneassist.workloads.build import build_prim_func
    from tuneassist.workloads.spec import parse_workload

    load_tensor_intrinsics("llvm")
    module = build_prim_func(parse_workload(task.workload_spec))
    database = ms.database.JSONDatabase(work_dir=str(folder))
    assert len(database) == len(trials)
    scheduled = database.query_ir_module(module, Target(target), "main")
    assert scheduled is not None and not structural_equal(scheduled, module)
    inputs, want = inputs_and_output(spec)
    output = tvm.runtime.empty(want.shape, str(want.dtype))
    tvm.compile(scheduled, target=Target(target))(*map(tvm.runtime.tensor, inputs), output)
    assert_right(spec, output.numpy(), want)


def test_top_1_is_the_best_trial_of_the_store(tuned: Path, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    result("export", "--workload", MATMUL, "--format", "tvm", "--top", "1", "-o", str(folder), db=tuned)
    (line,) = (folder / RECORDS).read_text().splitlines()
    with open_store(tuned) as store:
        best = min((t for t in store.trials(1) if t.best_of), key=lambda t: t.best_of or 0.0)
    assert tuple(json.loads(line)[1][1]) == best.run_secs


def test_wrong_and_failed_trials_never_leave(tuned: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(tuned, tmp_path / "t.sqlite"))
    with open_store(db) as store:
        ids = [trial.id for trial in store.trials(1) if trial.run_secs and trial.id]
        for trial_id in ids[2:]:
            store.set_correct(trial_id, False)
        store.set_correct(ids[0], True)
        store.connection.execute(
            "UPDATE trials SET status = 'run_error', run_secs = NULL, best_of = NULL WHERE id = ?", (ids[1],)
        )
        store.connection.commit()
    done = result("export", "1", "--format", "tvm", "-o", str(tmp_path / "db"), db=db)
    assert done["records"] == 1
    with open_store(db) as store:
        store.set_correct(ids[0], False)
    finished = run("export", "1", "--format", "tvm", "-o", str(tmp_path / "none"), db=db)
    assert finished.returncode == 4 and not (tmp_path / "none").exists()


def test_a_trace_that_tvm_refuses_is_left_out(tuned: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(tuned, tmp_path / "t.sqlite"))
    with open_store(db) as store:
        first, *others = [trial for trial in store.trials(1) if trial.run_secs]
        store.connection.execute(
            "UPDATE trials SET trace_json = replace(trace_json, 'T_matmul', 'T_other') WHERE id = ?",
            (first.id,),
        )
        store.connection.commit()
    done = result("export", "1", "--format", "tvm", "-o", str(tmp_path / "db"), db=db)
    assert (done["records"], done["dropped"]) == (len(others), 1)


def test_back_into_its_own_store_or_twice_into_another_nothing_is_doubled(
    tuned: Path, exported: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copy(tuned, tmp_path / "home.sqlite"))
    done = result("import", str(exported), db=home)
    assert (done["added"], done["runs"]) == (0, [])
    other = tmp_path / "other.sqlite"
    first = result("import", str(exported), db=other)
    assert first["added"] == first["records"] == done["known"] > 0
    again = result("import", str(exported / RECORDS), db=other)
    assert (again["added"], again["known"]) == (0, first["records"])
    assert result("import", str(other), db=home)["added"] == 0
    with open_store(home, readonly=True) as a, open_store(other, readonly=True) as b:
        assert len(a.connection.execute("SELECT id FROM runs").fetchall()) == 2
        # exported by tuneassist, so the machine and the workload's name are known
        assert b.machine(b.run(1).machine_id) == a.machine(a.run(1).machine_id)
        assert b.tasks(1)[0].workload_spec == a.tasks(1)[0].workload_spec
        assert b.tasks(1)[0].workload_hash == a.tasks(1)[0].workload_hash


def test_a_foreign_database_gets_a_machine_of_its_own(copy: Path) -> None:
    (copy / "tuneassist.json").unlink()
    store = memory_store()
    done = import_database(store, copy)
    run_row = store.run(done.runs[0])
    assert store.machine(run_row.machine_id).hostname.startswith("unknown-")
    assert '"metaschedule"' in run_row.config_json and run_row.note
    assert store.machine(run_row.machine_id).cpu == "unknown"


def test_a_foreign_workload_is_found_by_its_spec(copy: Path, tmp_path: Path) -> None:
    (copy / "tuneassist.json").unlink()
    db = tmp_path / "foreign.sqlite"
    result("import", str(copy), db=db)
    done = result("export", "--workload", MATMUL, "--format", "script", "-o", str(tmp_path / "a.py"), db=db)
    assert done["machine"].startswith("unknown-")
    refused = run("apply", MATMUL, db=db)
    assert refused.returncode == 2 and "an unknown machine" in refused.stderr


def test_records_that_tvm_appended_are_not_taken_for_those_of_the_exporting_machine(copy: Path) -> None:
    lines = (copy / RECORDS).read_text().splitlines()
    appended = json.loads(lines[0])
    appended[1][1] = [0.5]
    (copy / RECORDS).write_text("\n".join([*lines, json.dumps(appended)]))
    store = memory_store()
    done = import_database(store, copy)
    assert done.machine.startswith("unknown-") and done.added == len(lines) + 1


def test_a_database_that_grew_extends_its_run(copy: Path) -> None:
    (copy / "tuneassist.json").unlink()
    lines = (copy / RECORDS).read_text().splitlines()
    (copy / RECORDS).write_text("\n".join(lines[:5]))
    store = memory_store()
    first = import_database(store, copy)
    (copy / RECORDS).write_text("\n".join(lines))
    second = import_database(store, copy)
    assert (first.added, second.added, second.known) == (5, len(lines) - 5, 5)
    assert first.runs == second.runs
    assert [trial.ordinal for trial in store.trials(second.runs[0])] == list(range(1, len(lines) + 1))


def test_sentinel_times_become_failures_once(copy: Path) -> None:
    records = [json.loads(line) for line in (copy / RECORDS).read_text().splitlines()]
    for record in records[:3]:
        record[1][1] = [1e10]
    (copy / RECORDS).write_text("\n".join(map(json.dumps, records)))
    store = memory_store()
    done = import_database(store, copy)
    failures = [trial for trial in store.trials(done.runs[0]) if trial.status is not TrialStatus.OK]
    assert done.failed == len(failures) == 3
    assert {(t.status, t.run_secs, t.best_of) for t in failures} == {(TrialStatus.RUN_ERROR, None, None)}
    assert import_database(store, copy).added == 0


def test_malformed_lines_are_named_and_left_out_or_all_is_refused(copy: Path) -> None:
    lines = (copy / RECORDS).read_bytes().splitlines()
    torn, alien = lines[1][: len(lines[1]) // 2], lines[2].replace(b"[0,", b"[7,", 1)
    (copy / RECORDS).write_bytes(b"\n".join([lines[0], torn, b"", alien, b"\xff\xfe", *lines[3:]]))
    store = memory_store()
    with pytest.raises(UsageError, match=f"{RECORDS}, line 2"):
        import_database(store, copy, strict=True)
    assert not store.connection.execute("SELECT count(*) FROM runs, machines, workloads").fetchone()[0]
    done = import_database(store, copy)
    assert [(p.file, p.line) for p in done.problems] == [(RECORDS, 2), (RECORDS, 4), (RECORDS, 5)]
    assert done.added == len(lines) - 2


def test_a_workload_that_tvm_can_not_read_costs_its_records_only(copy: Path) -> None:
    text = (copy / WORKLOADS).read_text()
    (copy / WORKLOADS).write_text('["1", "AAAA"]\n' + text)
    lines = (copy / RECORDS).read_text().splitlines()
    moved = [line.replace("[0,", "[1,", 1) for line in lines[1:]]
    (copy / RECORDS).write_text("\n".join([lines[0], *moved]))
    done = import_database(memory_store(), copy)
    assert [(p.file, p.line) for p in done.problems] == [(WORKLOADS, 1), (RECORDS, 1)]
    assert done.added == len(moved)


def test_what_is_no_database_is_refused(copy: Path, tmp_path: Path) -> None:
    store = memory_store()
    with pytest.raises(UsageError, match="no MetaSchedule database"):
        import_database(store, tmp_path)
    (copy / RECORDS).write_text("")
    with pytest.raises(UsageError, match="no usable record"):
        import_database(store, copy)
    (copy / RECORDS).write_text("nonsense\n" * 3)
    with pytest.raises(UsageError, match="line 1"):
        import_database(store, copy)
    assert store.connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0
