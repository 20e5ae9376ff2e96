"""Queries over history: what lists, pages and bests hold, and that no text of the user's becomes SQL."""

from __future__ import annotations

import fnmatch
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from store_rows import MACHINE, TARGET, Place, add_task, failed, ok, start_run

from tuneassist.errors import UsageError
from tuneassist.records import RunSettings, RunStatus, TrialStatus
from tuneassist.storage import queries
from tuneassist.storage.filters import LOST, MAX_PATTERN_CHARS, RunFilter
from tuneassist.storage.memory import memory_store
from tuneassist.storage.reading import reading
from tuneassist.storage.run_detail import best_curves, run_detail
from tuneassist.storage.sqlite import SqliteStore, open_store

NASTY = ("it's", 'say "hi"', "a;DROP TABLE runs;--", "50%_off!", "line\nbreak", "עברית", "🚀 fast", "\\", "")


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with memory_store() as store:
        yield store


@pytest.fixture
def conn(store: SqliteStore) -> sqlite3.Connection:
    return store.connection


def finish(store: SqliteStore, place: Place, status: RunStatus = RunStatus.DONE) -> None:
    store.end_run(place.run, status, result_json="{}")


def test_absent_file_reads_as_an_empty_store(tmp_path: Path) -> None:
    with reading(tmp_path / "none.sqlite") as conn:
        assert queries.runs(conn) == []
        assert queries.best(conn) == []
    assert list(tmp_path.iterdir()) == []


def test_counts_and_best_follow_the_trials(store: SqliteStore, conn: sqlite3.Connection) -> None:
    place = start_run(store, settings=RunSettings(trials=10))
    second = replace(place, task=add_task(store, place.run, "conv2d", weight=3))
    store.add_trial(ok(place, 1, 0.5))
    store.add_trial(failed(place, 2, TrialStatus.RUN_ERROR))
    luckiest = store.add_trial(ok(second, 3, 0.1))
    store.add_trial(ok(second, 4, 0.2))
    row = queries.run_row(conn, place.run, "db")
    assert (row.tasks, row.task_names, row.trials, row.valid) == (2, "matmul, conv2d", 4, 3)
    assert row.best_secs == pytest.approx(0.5 + 3 * 0.1)
    store.set_correct(luckiest, False)
    assert queries.run_row(conn, place.run, "db").best_secs == pytest.approx(0.5 + 3 * 0.2)
    conn.execute("DELETE FROM trials WHERE ordinal > 1")
    conn.commit()
    row = queries.run_row(conn, place.run, "db")
    assert (row.trials, row.valid, row.best_secs) == (1, 1, 0.5)


def test_states_of_runs(store: SqliteStore, conn: sqlite3.Connection) -> None:
    me = psutil.Process(os.getpid())
    alive = start_run(store, pid=me.pid, pid_started=me.create_time()).run
    lost = start_run(store).run
    done, stopped = start_run(store), start_run(store)
    finish(store, done)
    finish(store, stopped, RunStatus.INTERRUPTED)
    rows = {row.id: row for row in queries.runs(conn)}
    assert [rows[run].state for run in (alive, lost, done.run, stopped.run)] == [
        "running", LOST, "done", "interrupted",
    ]  # fmt: skip
    assert [rows[run].resumable for run in (alive, lost, done.run, stopped.run)] == [
        False, True, False, True,
    ]  # fmt: skip

    def ids(*states: str) -> set[int]:
        return {row.id for row in queries.runs(conn, RunFilter(states=states))}

    assert ids("running") == {alive}
    assert ids(LOST) == {lost}
    assert ids("done", "interrupted") == {done.run, stopped.run}
    assert queries.count_runs(conn, RunFilter(states=("failed",))) == 0


def test_filters_select(store: SqliteStore, conn: sqlite3.Connection) -> None:
    first = start_run(store, "resnet18.c2", settings=RunSettings(cost_model="xgb")).run
    second = start_run(store, "bert.ffn1", machine=replace(MACHINE, hostname="lab7", cpu="Other")).run
    third = start_run(store, "resnet18.c5", target=replace(TARGET, spec="cuda", json='{"kind":"cuda"}')).run
    for run, started in ((first, 100.0), (second, 200.0), (third, 300.0)):
        conn.execute("UPDATE runs SET started_at = ?, note = ? WHERE id = ?", (started, f"note {run}", run))

    def ids(**wanted: object) -> list[int]:
        wish = RunFilter(**wanted)  # type: ignore[arg-type]
        found = [row.id for row in queries.runs(conn, wish, descending=False)]
        assert queries.count_runs(conn, wish) == len(found)
        return found

    assert ids(workload="resnet18") == [first, third]
    assert ids(workload="RESNET18.C?") == [first, third]
    assert ids(workload="resnet18.c2") == [first]
    assert ids(workload="c2*") == []
    assert ids(machine="lab*") == [second]
    assert ids(machine="some cpu") == [first, third]
    assert ids(target="cuda") == [third]
    assert ids(cost_model="xgb") == [first]
    assert ids(since=200.0) == [second, third]
    assert ids(until=200.0) == [first]
    assert ids(workload="resnet18", since=200.0, target="cuda") == [third]
    assert ids(text="note 2") == [second]
    assert ids(text="lost") == [first, second, third]


@pytest.mark.parametrize("name", NASTY)
def test_names_come_back_and_are_found_as_they_are(store: SqliteStore, name: str) -> None:
    place = start_run(store, name, machine=replace(MACHINE, hostname=name))
    start_run(store, "other")
    store.add_trial(ok(place, 1, 1.0))
    found = queries.runs(store.connection, RunFilter(workload=name, machine=name))
    assert place.run in [row.id for row in found]
    assert found[-1].task_names == name
    assert queries.best(store.connection, workload=name, machine=name)[0].workload == name
    assert [row.task_name for row in queries.trials(store.connection, place.run, task_name=name)] == [name]
    assert queries.count_runs(store.connection) == 2


FIELDS = ("text", "workload", "target", "machine", "cost_model")


@settings(max_examples=150, deadline=None)
@given(pattern=st.text(max_size=30), field=st.sampled_from(FIELDS))
@example(pattern="\0", field="workload")
def test_any_pattern_is_only_a_pattern(pattern: str, field: str) -> None:
    with memory_store() as store:
        start_run(store)
        before = store.connection.total_changes
        found = queries.runs(store.connection, RunFilter(**{field: pattern}))  # type: ignore[arg-type]
        assert len(found) <= 1
        if not any(character in "*?" for character in pattern) and field == "workload" and pattern:
            assert len(found) == (pattern.lower() in "matmul" or pattern.lower() in "matmul:m=8")
        queries.best(store.connection, workload=pattern, target=pattern, machine=pattern)
        assert store.connection.total_changes == before


@settings(max_examples=150, deadline=None)
@given(
    name=st.text("ab.%_!\\'\"", min_size=1, max_size=6),
    pattern=st.text("ab.%_!\\'\"*?", min_size=1, max_size=6),
)
def test_wildcards_mean_what_they_say(name: str, pattern: str) -> None:
    with memory_store() as store:
        place = start_run(store, name)
        store.connection.execute("UPDATE workloads SET spec = ''")
        found = queries.runs(store.connection, RunFilter(workload=pattern))
        wild = pattern if "*" in pattern or "?" in pattern else f"*{pattern}*"
        assert [row.id for row in found] == ([place.run] if fnmatch.fnmatchcase(name, wild) else [])


def test_pattern_that_is_too_long(conn: sqlite3.Connection) -> None:
    with pytest.raises(UsageError, match="too long"):
        queries.runs(conn, RunFilter(workload="x" * (MAX_PATTERN_CHARS + 1)))


def test_order_and_pages(store: SqliteStore, conn: sqlite3.Connection) -> None:
    places = [start_run(store) for _ in range(5)]
    for place, secs in zip(places, (3.0, 1.0, 2.0), strict=False):
        store.add_trial(ok(place, 1, secs))
    runs = [place.run for place in places]
    assert [row.id for row in queries.runs(conn, limit=2)] == [runs[4], runs[3]]
    assert [row.id for row in queries.runs(conn, limit=2, offset=2)] == [runs[2], runs[1]]
    by_best = [row.id for row in queries.runs(conn, order="best_secs", descending=False)]
    assert by_best == [runs[1], runs[2], runs[0], runs[4], runs[3]]
    by_best = [row.id for row in queries.runs(conn, order="best_secs")]
    assert by_best == [runs[0], runs[2], runs[1], runs[4], runs[3]]
    with pytest.raises(UsageError, match="sorted"):
        queries.runs(conn, order="id; DROP TABLE runs")


def test_pages_of_trials(store: SqliteStore, conn: sqlite3.Connection) -> None:
    place = start_run(store)
    store.add_trial(ok(place, 1, 0.3))
    store.add_trial(failed(place, 2, TrialStatus.BUILD_ERROR))
    store.add_trial(failed(place, 3, TrialStatus.DUPLICATE))
    store.add_trial(ok(place, 4, 0.1, correct=False))

    def ordinals(**wanted: object) -> list[int]:
        found = queries.trials(conn, place.run, **wanted)  # type: ignore[arg-type]
        return [trial.ordinal for trial in found]

    assert ordinals() == [1, 2, 3, 4]
    assert ordinals(descending=True, limit=2) == [4, 3]
    assert ordinals(status="failed") == [2, 3]
    assert ordinals(status="build_error") == [2]
    assert ordinals(order="best_of") == [4, 1, 2, 3]
    assert ordinals(order="best_of", descending=True) == [1, 4, 2, 3]
    assert ordinals(task_id=place.task + 1) == []
    last = queries.trial_row(conn, 4)
    assert (last.ordinal, last.correct, last.best_of) == (4, False, 0.1)
    with pytest.raises(UsageError, match="no trial"):
        queries.trial_row(conn, 99)


def test_best_keeps_machines_and_targets_apart(store: SqliteStore, conn: sqlite3.Connection) -> None:
    slow, fast = start_run(store), start_run(store)
    there = start_run(store, machine=replace(MACHINE, hostname="lab7"))
    store.add_trial(ok(slow, 1, 0.5))
    store.add_trial(ok(fast, 1, 0.25, correct=True))
    store.add_trial(ok(fast, 2, 0.125, correct=False))
    store.add_trial(ok(there, 1, 0.001))
    here, lab = queries.best(conn)
    assert (here.machine, here.run_id, here.ordinal, here.best_secs) == ("host", fast.run, 1, 0.25)
    assert (here.trials, here.runs, here.correct) == (3, 2, True)
    assert here.run_secs == pytest.approx((0.225, 0.25, 0.275))
    assert here.gflops == pytest.approx(1000 / 0.25 / 1e9)
    assert (lab.machine, lab.best_secs) == ("lab7", 0.001)


def test_detail_of_a_run(store: SqliteStore, conn: sqlite3.Connection) -> None:
    place = start_run(store, settings=RunSettings(trials=6, seed=4))
    store.set_task_baseline(place.task, untuned_secs=1.0, pytorch_secs=0.5)
    for ordinal, secs in ((1, 0.5), (3, 0.6), (5, 0.25)):
        store.add_trial(ok(place, ordinal, secs))
    for ordinal, text in ((2, "no memory"), (4, "no memory"), (6, "bad code")):
        store.add_trial(failed(place, ordinal, TrialStatus.BUILD_ERROR, text))
    conn.execute("UPDATE runs SET started_at = 1000.0")
    detail = run_detail(conn, place.run, "db")
    (task,) = detail.tasks
    assert (task.trials, task.valid, task.failed["build_error"], task.failed["run_error"]) == (6, 3, 3, 0)
    assert (task.best_secs, task.best_ordinal, task.untuned_secs) == (0.25, 5, 1.0)
    assert (detail.settings.seed, detail.machine, detail.target) == (4, MACHINE, TARGET)
    (failure,) = detail.failures
    assert (failure.status, failure.count) == (TrialStatus.BUILD_ERROR, 3)
    assert failure.examples == ("no memory", "bad code")
    curve = best_curves(conn, place.run)[place.task]
    assert [(step.trial, step.secs_since_start, step.best_secs) for step in curve] == [
        (1, 1.0, 0.5), (5, 5.0, 0.25),
    ]  # fmt: skip


def test_queries_of_history_use_indexes(tmp_path: Path) -> None:
    """No query may walk all trials: on a million of them that takes seconds."""
    with open_store(tmp_path / "t.sqlite") as store:
        place = start_run(store)
        store.add_trials(ok(place, n, 1.0 + n) for n in range(1, 50))
    with reading(tmp_path / "t.sqlite") as conn:
        statements: list[str] = []
        conn.set_trace_callback(statements.append)
        queries.runs(conn, RunFilter(text="x", workload="y"), order="best_secs")
        queries.best(conn)
        queries.trials(conn, place.run, order="best_of", limit=3)
        run_detail(conn, place.run, "db")
        best_curves(conn, place.run)
        conn.set_trace_callback(None)
        assert len(statements) > 10
        for statement in statements:
            plan = " ".join(row[3] for row in conn.execute(f"EXPLAIN QUERY PLAN {statement}"))
            assert "SCAN trials" not in plan, statement
