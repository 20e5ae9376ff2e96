"""Merging databases: nothing lost, nothing doubled, machines kept apart."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_rows import MACHINE, TARGET, failed, ok, start_run

from tuneassist.errors import StoreError, UsageError
from tuneassist.exchange.merge import merge_database
from tuneassist.records import Machine, RunStatus, TargetInfo, Trial, TrialStatus
from tuneassist.storage.sqlite import SqliteStore, open_store

MACHINES = (MACHINE, replace(MACHINE, hostname="hôte '\"\n\u202e🦉"), replace(MACHINE, cores=8))
TARGETS = (TARGET, replace(TARGET, json='{"kind":"llvm","num-cores":8}', cores=8))


@dataclass(frozen=True)
class RunPlan:
    """A run somewhere, of which a database holds the first `seen` trials."""

    number: int
    machine: Machine
    target: TargetInfo
    workload: str
    statuses: tuple[TrialStatus, ...]

    def write(self, store: SqliteStore, seen: int) -> None:
        place = start_run(store, self.workload, machine=self.machine, target=self.target)
        conn = store.connection
        conn.execute("UPDATE runs SET started_at = ? WHERE id = ?", (1000.0 + self.number, place.run))
        conn.commit()
        for ordinal, status in enumerate(self.statuses[:seen], start=1):
            values: dict[str, Any] = {
                "trace_json": f"[[{self.number},{ordinal}],[]]",
                "measured_at": float(ordinal),
            }
            trial: Trial = (
                ok(place, ordinal, 1e-3 * ordinal, **values)
                if status is TrialStatus.OK
                else failed(place, ordinal, status, **values)
            )
            store.add_trial(trial)
        store.end_run(place.run, RunStatus.DONE, result_json="{}")


@st.composite
def plans(draw: st.DrawFn) -> list[tuple[RunPlan, int, int]]:
    """Runs with how much of each the two databases hold (-1: the run is not there at all)."""
    count = draw(st.integers(1, 4))
    statuses = st.sampled_from([TrialStatus.OK, TrialStatus.OK, TrialStatus.RUN_ERROR, TrialStatus.DUPLICATE])
    return [
        (
            RunPlan(
                number, draw(st.sampled_from(MACHINES)), draw(st.sampled_from(TARGETS)),
                draw(st.sampled_from(["a", "b"])), tuple(draw(st.lists(statuses, max_size=5))),
            ),
            draw(st.integers(-1, 5)),
            draw(st.integers(-1, 5)),
        )
        for number in range(count)
    ]  # fmt: skip


def content(path: Path) -> Counter[tuple[object, ...]]:
    """What a database says, without its ids."""
    with sqlite3.connect(path) as conn:
        return Counter(
            conn.execute(
                "SELECT hostname, machines.cores, targets.json, started_at, workloads.hash, trials.status,"
                " run_secs, trace_json FROM trials JOIN tasks ON tasks.id = trials.task_id"
                " JOIN workloads ON workloads.id = tasks.workload_id JOIN runs ON runs.id = trials.run_id"
                " JOIN machines ON machines.id = runs.machine_id JOIN targets ON targets.id = runs.target_id"
            ).fetchall()
        )


def write(path: Path, runs: list[tuple[RunPlan, int]]) -> Path:
    with open_store(path) as store:
        for plan, seen in runs:
            if seen >= 0:
                plan.write(store, seen)
    return path


def merge(into: Path, *others: Path) -> int:
    """Merge in order; return how many trials were added."""
    with open_store(into) as store:
        return sum(merge_database(store, other).added for other in others)


@settings(max_examples=25, deadline=None)
@given(plans())
def test_a_merge_is_the_union_whatever_the_order(drawn: list[tuple[RunPlan, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        a = write(Path(folder) / "a.sqlite", [(plan, seen) for plan, seen, _ in drawn])
        b = write(Path(folder) / "b.sqlite", [(plan, seen) for plan, _, seen in reversed(drawn)])
        ab, ba = Path(folder) / "ab.sqlite", Path(folder) / "ba.sqlite"
        whole = content(a) | content(b)
        assert merge(ab, a, b) == sum(whole.values())
        merge(ba, b, a)
        assert content(ab) == content(ba) == whole
        assert merge(ab, a, b, ba) == 0
        assert content(ab) == whole
        with sqlite3.connect(ab) as conn:
            counts = "SELECT sum(trial_count), sum(ok_count) FROM tasks"
            told = conn.execute(counts).fetchone()
            trials = conn.execute("SELECT count(*), sum(status = 'ok') FROM trials").fetchone()
            assert not sum(whole.values()) or told == trials
            assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


def two(tmp_path: Path) -> tuple[SqliteStore, SqliteStore, Path]:
    """This store, another one, and where that lies."""
    path = tmp_path / "other.sqlite"
    return open_store(tmp_path / "this.sqlite"), open_store(path), path


def test_an_imported_run_says_where_it_came_from(tmp_path: Path) -> None:
    this, other, path = two(tmp_path)
    with this, other:
        place = start_run(other)
        other.add_trial(ok(place, 1, 1e-3))
        (run_id,) = merge_database(this, path).runs
        run = this.run(run_id)
        assert run.status is RunStatus.INTERRUPTED  # its engine is none that could be followed here
        assert run.pid is None and run.events_path is None
        assert "other.sqlite" in run.note and '"imported"' in run.config_json
        assert this.settings(run_id) == other.settings(place.run)


def test_a_confirmation_elsewhere_is_taken_over(tmp_path: Path) -> None:
    this, other, path = two(tmp_path)
    with this, other:
        place = start_run(other)
        trial_id = other.add_trial(ok(place, 1, 1e-3))
        merge_database(this, path)
        secs = (*(other.trials(place.run)[0].run_secs or ()), 2e-3, 2e-3, 2e-3)
        other.update_measurement(trial_id, run_secs=secs, best_of=1.55e-3)
        other.set_correct(trial_id, False)
        done = merge_database(this, path)
        assert (done.added, done.known, done.confirmed) == (0, 1, 1)
        (trial,) = this.trials(1)
        assert (trial.run_secs, trial.best_of, trial.correct) == (secs, 1.55e-3, False)
        assert merge_database(this, path).confirmed == 0


def test_a_resumed_run_is_extended_and_its_end_taken_over(tmp_path: Path) -> None:
    this, other, path = two(tmp_path)
    with this, other:
        place = start_run(other)
        other.add_trial(ok(place, 1, 1e-3, trace_json="[[1],[]]"))
        merge_database(this, path)
        other.add_trial(ok(place, 2, 2e-3, trace_json="[[2],[]]"))
        other.end_run(place.run, RunStatus.DONE, result_json='{"x": 1}')
        done = merge_database(this, path)
        assert (done.runs_added, done.runs_extended, done.added) == (0, 1, 1)
        run = this.run(done.runs[0])
        assert (run.status, run.result_json) == (RunStatus.DONE, '{"x": 1}')
        assert [trial.ordinal for trial in this.trials(run.id)] == [1, 2]


def test_a_damaged_source_changes_nothing(tmp_path: Path) -> None:
    this, other, path = two(tmp_path)
    with this:
        with other:
            place = start_run(other)
            for ordinal in range(1, 200):
                other.add_trial(ok(place, ordinal, 1e-3, trace_json=f"[[{ordinal}],[]]", error="x" * 500))
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(StoreError):
            merge_database(this, path)
        assert this.connection.execute("SELECT count(*) FROM runs").fetchone()[0] == 0
        assert this.connection.execute("SELECT count(*) FROM trials").fetchone()[0] == 0


def test_the_same_file_no_file_and_no_database_are_refused(tmp_path: Path) -> None:
    this, other, _ = two(tmp_path)
    with this, other:
        with pytest.raises(UsageError, match="itself"):
            merge_database(this, Path(this.path))
        with pytest.raises(UsageError, match="no database"):
            merge_database(this, tmp_path / "absent.sqlite")
        (tmp_path / "text").write_text("not a database, and long enough to be read as one" * 20)
        with pytest.raises(StoreError, match="not a SQLite database"):
            merge_database(this, tmp_path / "text")
