"""What is chosen for export, and trials as a table."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from store_rows import MACHINE, TARGET, failed, ok, start_run

from tuneassist.errors import MachineError, NoMeasurementError, UsageError
from tuneassist.exchange.selection import Wanted, best_trial, choose, find_workload, usable_trials
from tuneassist.exchange.tables import COLUMNS, export_csv, export_parquet
from tuneassist.records import TrialStatus
from tuneassist.storage.memory import memory_store
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.targets.machine import this_machine

OTHER = replace(MACHINE, hostname="elsewhere")


def store_with_trials() -> SqliteStore:
    """Run 1 here and run 2 elsewhere, both of `matmul`; elsewhere is faster."""
    store = memory_store()
    here = start_run(store, machine=this_machine())
    for trial in (
        ok(here, 1, 3e-3),
        ok(here, 2, 1e-3, correct=False),
        ok(here, 3, 2e-3, correct=True),
        failed(here, 4, TrialStatus.RUN_ERROR, 'a "quoted"\nerror, \u202e🦉'),
    ):
        store.add_trial(trial)
    store.add_trial(ok(start_run(store, machine=OTHER), 1, 1e-4))
    return store


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_holds_every_trial_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    assert export_csv(store_with_trials(), Wanted(run_id=1), path, force=False) == {"trials": 4}
    found = read(path)
    assert list(found[0]) == list(COLUMNS)
    assert [row["status"] for row in found] == ["ok", "ok", "ok", "run_error"]
    assert [row["correct"] for row in found] == ["", "0", "1", ""]
    assert json.loads(found[0]["run_secs"]) == [3e-3 * 0.9, 3e-3, 3e-3 * 1.1]
    assert (found[3]["run_secs"], found[3]["error"]) == ("", 'a "quoted"\nerror, \u202e🦉')


def test_a_workload_s_table_spans_machines_unless_one_is_named(tmp_path: Path) -> None:
    store, path = store_with_trials(), tmp_path / "t.csv"
    assert export_csv(store, Wanted(workload="matmul"), path, force=False)["trials"] == 5
    wanted = Wanted(workload="matmul", machine="elsewhere")
    assert export_csv(store, wanted, path, force=True)["trials"] == 1


@pytest.mark.parametrize(
    "wanted", [Wanted(run_id=99), Wanted(workload="conv9d"), Wanted(), Wanted(run_id=1, target="no such")]
)
def test_nothing_to_export_is_an_error_and_makes_no_file(tmp_path: Path, wanted: Wanted) -> None:
    with pytest.raises(UsageError):
        export_csv(store_with_trials(), wanted, tmp_path / "t.csv", force=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["%", "'; DROP TABLE trials; --", "!", "_", "*" * 999])
def test_text_of_the_user_is_no_sql(tmp_path: Path, text: str) -> None:
    store = store_with_trials()
    for wanted in (Wanted(workload=text), Wanted(run_id=1, machine=text), Wanted(run_id=1, target=text)):
        try:
            export_csv(store, wanted, tmp_path / "t.csv", force=True)
        except UsageError:
            continue
        assert text == "*" * 999 and not wanted.workload  # only that pattern matches anything
    assert store.last_ordinal(1) == 4


def test_parquet_without_pyarrow_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MachineError, match="pip install pyarrow"):
        export_parquet(store_with_trials(), Wanted(run_id=1), tmp_path / "t.parquet", force=False)


def test_parquet_keeps_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    assert export_parquet(store_with_trials(), Wanted(run_id=1), path, force=False) == {"trials": 4}
    table = parquet.read_table(path).to_pydict()
    assert table["run_secs"] == [
        pytest.approx([secs * 0.9, secs, secs * 1.1]) for secs in (3e-3, 1e-3, 2e-3)
    ] + [None]
    assert table["correct"] == [None, False, True, None]


def test_the_best_is_the_fastest_here_that_is_not_known_to_be_wrong() -> None:
    store = store_with_trials()
    (place,) = choose(store, Wanted(workload="matmul"))
    assert place.here
    assert best_trial(store, place).ordinal == 3
    assert [trial.ordinal for trial in usable_trials(store, place)] == [3, 1]


def test_another_machine_is_taken_only_by_name_or_if_it_is_the_only_one() -> None:
    store = store_with_trials()
    (place,) = choose(store, Wanted(workload="matmul", machine="elsewhere"))
    assert (place.machine, best_trial(store, place).best_of) == (OTHER, 1e-4)
    alone = memory_store()
    alone.add_trial(ok(start_run(alone, machine=OTHER), 1, 1e-4))
    assert choose(alone, Wanted(workload="matmul"))[0].machine == OTHER
    alone.add_trial(ok(start_run(alone, machine=MACHINE), 1, 2e-4))
    with pytest.raises(UsageError, match="several machines"):
        choose(alone, Wanted(workload="matmul"))


def test_targets_are_told_apart() -> None:
    store = store_with_trials()
    wide = replace(TARGET, spec="wide", json='{"kind":"llvm","mcpu":"x"}')
    store.add_trial(ok(start_run(store, machine=this_machine(), target=wide), 1, 5e-3))
    (place,) = choose(store, Wanted(workload="matmul", target="wide"))
    assert [trial.best_of for trial in usable_trials(store, place)] == [5e-3]
    with pytest.raises(UsageError, match="was measured on"):
        choose(store, Wanted(workload="matmul", target="narrow"))


def test_a_run_without_a_valid_trial_has_no_best() -> None:
    store = memory_store()
    store.add_trial(failed(start_run(store), 1, TrialStatus.BUILD_ERROR))
    (place,) = choose(store, Wanted(run_id=1))
    with pytest.raises(NoMeasurementError):
        best_trial(store, place)


@pytest.mark.parametrize("text", ["matmul", "matmul:m=8", "hash of matmul", " matmul "])
def test_a_workload_is_found_by_name_spec_and_hash(text: str) -> None:
    assert find_workload(store_with_trials(), text).hash == "hash of matmul"
