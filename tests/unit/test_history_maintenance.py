"""Removing runs, giving space back, and salvage of damaged files."""

from __future__ import annotations

import os
import random
from pathlib import Path

import psutil
import pytest
from store_rows import Place, failed, ok, start_run

from tuneassist.errors import StoreError, UsageError
from tuneassist.records import RunStatus, TrialStatus
from tuneassist.storage import queries
from tuneassist.storage.filters import RunFilter
from tuneassist.storage.maintenance import delete_runs, prunable, set_note, vacuum
from tuneassist.storage.reading import reading
from tuneassist.storage.salvage import salvage
from tuneassist.storage.sqlite import SqliteStore, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def ended(store: SqliteStore, *secs: float, workload: str = "matmul") -> Place:
    place = start_run(store, workload)
    store.add_trials(ok(place, n, value, trace_json="x" * 2000) for n, value in enumerate(secs, 1))
    store.end_run(place.run, RunStatus.DONE, result_json="{}")
    return place


def test_prune_keeps_bests_and_live_runs(path: Path) -> None:
    me = psutil.Process(os.getpid())
    with open_store(path) as store:
        slow, best, other = ended(store, 3.0), ended(store, 1.0), ended(store, 9.0, workload="conv2d")
        live = start_run(store, pid=me.pid, pid_started=me.create_time())
        empty = ended(store)
    with reading(path) as conn:
        plan = prunable(conn, RunFilter(since=0.0))
    assert [run.id for run in plan.gone] == [empty.run, slow.run]
    assert [run.id for run in plan.kept_best] == [other.run, best.run]
    assert [run.id for run in plan.kept_alive] == [live.run]
    everything = [slow.run, best.run, other.run, live.run, empty.run]
    assert delete_runs(str(path), everything, keep_best=True) == [slow.run, empty.run]
    with reading(path) as conn:
        assert [row.best_secs for row in queries.best(conn)] == [9.0, 1.0]
        assert conn.execute("SELECT count(*) FROM trials").fetchone()[0] == 2
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


def test_prune_of_many_runs_never_loses_the_best(path: Path) -> None:
    draw = random.Random(0)
    with open_store(path) as store:
        for _ in range(60):
            ended(store, draw.random(), draw.random(), workload=draw.choice(("a", "b", "c")))
    with reading(path) as conn:
        before = [(row.workload, row.best_secs) for row in queries.best(conn)]
        ids = [run.id for run in queries.runs(conn)]
    gone = delete_runs(str(path), ids, keep_best=True)
    with reading(path) as conn:
        assert [(row.workload, row.best_secs) for row in queries.best(conn)] == before
    assert len(gone) == 57


def test_delete_removes_even_the_best_and_ids_are_not_given_again(path: Path) -> None:
    with open_store(path) as store:
        second, best = ended(store, 2.0), ended(store, 1.0)
    assert delete_runs(str(path), [best.run], keep_best=False) == [best.run]
    with open_store(path) as store:
        assert [row.run_id for row in queries.best(store.connection)] == [second.run]
        assert start_run(store).run == best.run + 1


def test_note(path: Path) -> None:
    with open_store(path) as store:
        run = start_run(store).run
    set_note(str(path), run, "it's 🚀")
    with reading(path) as conn:
        assert queries.run_row(conn, run, "db").note == "it's 🚀"
    with pytest.raises(UsageError, match="no run 9"):
        set_note(str(path), 9, "x")


def test_vacuum_gives_space_back(path: Path) -> None:
    with open_store(path) as store:
        place = ended(store, *(float(n) for n in range(1, 300)))
    delete_runs(str(path), [place.run], keep_best=False)
    before, after = vacuum(str(path))
    assert before > after + 400_000
    assert path.stat().st_size == after
    with open_store(path) as store:
        assert queries.runs(store.connection) == []


def test_vacuum_waits_for_no_live_run(path: Path) -> None:
    me = psutil.Process(os.getpid())
    with open_store(path) as store:
        start_run(store, pid=me.pid, pid_started=me.create_time())
    with pytest.raises(StoreError, match="worked on"):
        vacuum(str(path))


def damaged_store(path: Path) -> int:
    """A store of three runs and 600 trials; returns its size."""
    with open_store(path) as store:
        for _ in range(3):
            place = start_run(store)
            for ordinal in range(1, 200):
                store.add_trial(ok(place, ordinal, 1.0 / ordinal, trace_json="[" + "1," * 900 + "1]"))
            store.add_trial(failed(place, 200, TrialStatus.RUN_ERROR))
    return path.stat().st_size


def test_salvage_of_a_whole_file_copies_all(path: Path, tmp_path: Path) -> None:
    damaged_store(path)
    done = {table.table: table for table in salvage(path, tmp_path / "new.sqlite")}
    assert (done["trials"].rows, done["runs"].rows) == (600, 3)
    assert not any(table.damaged or table.lost for table in done.values())
    with open_store(path) as old, open_store(tmp_path / "new.sqlite") as new:
        for run in (1, 2, 3):
            assert new.run(run) == old.run(run)
            assert new.trials(run) == old.trials(run)
            assert queries.run_row(new.connection, run, "") == queries.run_row(old.connection, run, "")


def test_salvage_includes_the_log_of_a_killed_process(path: Path, tmp_path: Path) -> None:
    store = open_store(path)
    store.add_trial(ok(start_run(store), 1, 1.0))
    assert salvage(path, tmp_path / "new.sqlite")[6].rows == 1
    store.close()


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_salvage_of_a_truncated_file(path: Path, tmp_path: Path, share: float) -> None:
    size = damaged_store(path)
    with path.open("r+b") as file:
        file.truncate(int(size * share))
    before = path.read_bytes()
    done = {table.table: table for table in salvage(path, tmp_path / "new.sqlite")}
    assert 600 * share * 0.6 < done["trials"].rows < 600
    assert done["trials"].damaged
    assert path.read_bytes() == before
    with open_store(tmp_path / "new.sqlite") as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert store.connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert sum(len(store.trials(run)) for run in (1, 2, 3)) == done["trials"].rows


@pytest.mark.parametrize("seed", range(6))
def test_salvage_around_overwritten_pages(path: Path, tmp_path: Path, seed: int) -> None:
    size = damaged_store(path)
    draw = random.Random(seed)
    with path.open("r+b") as file:
        for _ in range(8):
            file.seek(draw.randrange(size // 3, size - 4096))
            file.write(draw.randbytes(2000))
    done = {table.table: table for table in salvage(path, tmp_path / "new.sqlite")}
    assert done["trials"].rows > 350
    with open_store(tmp_path / "new.sqlite") as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert len(queries.runs(store.connection)) == done["runs"].rows


def test_salvage_refuses(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        salvage(path, tmp_path / "new.sqlite")
    damaged_store(path)
    with pytest.raises(UsageError, match="exists already"):
        salvage(path, path)
    path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])
    with pytest.raises(StoreError, match="can be read"):
        salvage(path, tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()
