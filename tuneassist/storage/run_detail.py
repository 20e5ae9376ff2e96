"""Everything about one run: its tasks, failures, rounds and curves, on a connection from `reading()`."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tuneassist.records import (
    FAILURES,
    Machine,
    Round,
    RunSettings,
    TargetInfo,
    TrialStatus,
)
from tuneassist.storage import rows
from tuneassist.storage.queries import RunRow, run_row

EXAMPLES = 3
"""Different error texts shown for each kind of failure."""

_EXAMPLES_READ = 50
"""Failures of a kind that are read to find them."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task with its best beside the untuned and the PyTorch latency."""

    id: int
    workload_id: int
    name: str
    workload_spec: str
    op: str
    weight: int
    flops: int
    trials: int
    valid: int
    failed: dict[str, int]
    """Trials by kind of failure."""
    duplicates: int
    best_secs: float | None
    best_run_secs: tuple[float, ...]
    """Every repeat of the best trial; empty if there is none."""
    best_ordinal: int | None
    best_correct: bool | None
    best_predicted_secs: float | None
    untuned_secs: float | None
    pytorch_secs: float | None
    error: str | None

    @property
    def gflops(self) -> float | None:
        """Billions of operations a second of the best."""
        return None if not self.best_secs else self.flops / self.best_secs / 1e9


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Trials of one run that failed in one way."""

    status: TrialStatus
    count: int
    examples: tuple[str, ...]
    """Different error texts, the commonest of those read first."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """A trial that was faster than all before it in its task."""

    trial: int
    """Which trial of the task it was: 1, 2, ... with failures counted."""
    ordinal: int
    secs_since_start: float
    best_secs: float


@dataclass(frozen=True, slots=True)
class RunDetail:
    """What `history show` says of a run."""

    run: RunRow
    settings: RunSettings
    machine: Machine
    target: TargetInfo
    tasks: tuple[TaskRow, ...]
    failures: tuple[FailureRow, ...]
    rounds: tuple[Round, ...]
    phase_secs: dict[str, float]
    """Over all rounds; of the run's result where it has one."""
    result: dict[str, Any] | None
    """The object that `--batch --json` printed; None until the run ends."""


def run_detail(conn: sqlite3.Connection, run_id: int, path: str) -> RunDetail:
    """Everything about one run.

    Raises:
        UsageError: There is none of that id; the nearest are named.
        StoreError: Its settings can't be read.
    """
    row = run_row(conn, run_id, path)
    kept = conn.execute(
        "SELECT target_id, machine_id, config_json, result_json FROM runs WHERE id = ?", (run_id,)
    ).fetchone()
    target = conn.execute("SELECT * FROM targets WHERE id = ?", (kept["target_id"],)).fetchone()
    machine = conn.execute("SELECT * FROM machines WHERE id = ?", (kept["machine_id"],)).fetchone()
    found = conn.execute("SELECT * FROM rounds WHERE run_id = ? ORDER BY round, id", (run_id,))
    rounds = tuple(rows.round_from(record) for record in found)
    result = _object(kept["result_json"])
    return RunDetail(
        run=row,
        settings=rows.settings_from(kept["config_json"]),
        machine=rows.machine_from(machine),
        target=rows.target_from(target),
        tasks=tuple(task_rows(conn, run_id)),
        failures=tuple(failures(conn, run_id)),
        rounds=rounds,
        phase_secs=_phases(rounds, result),
        result=result,
    )


def task_rows(conn: sqlite3.Connection, run_id: int) -> list[TaskRow]:
    """The run's tasks, in order of id."""
    found = conn.execute(
        "SELECT tasks.*, workloads.spec, workloads.op, workloads.flops, trials.run_secs, trials.ordinal,"
        " trials.correct, trials.predicted_secs FROM tasks"
        " JOIN workloads ON workloads.id = tasks.workload_id"
        " LEFT JOIN trials ON trials.id = tasks.best_trial_id WHERE tasks.run_id = ? ORDER BY tasks.id",
        (run_id,),
    )
    return [_task_row(row) for row in found]


def _task_row(row: sqlite3.Row) -> TaskRow:
    return TaskRow(
        id=row["id"],
        workload_id=row["workload_id"],
        name=row["name"],
        workload_spec=row["spec"],
        op=row["op"],
        weight=row["weight"],
        flops=row["flops"],
        trials=row["trial_count"],
        valid=row["ok_count"],
        failed={status.value: row[f"{status.value}_count"] for status in FAILURES},
        duplicates=row["duplicate_count"],
        best_secs=row["best_secs"],
        best_run_secs=() if row["run_secs"] is None else rows.secs_from(row["run_secs"]),
        best_ordinal=row["ordinal"],
        best_correct=None if row["correct"] is None else bool(row["correct"]),
        best_predicted_secs=row["predicted_secs"],
        untuned_secs=row["untuned_secs"],
        pytorch_secs=row["pytorch_secs"],
        error=row["error"],
    )


def failures(conn: sqlite3.Connection, run_id: int) -> list[FailureRow]:
    """The run's failures by kind, the commonest first, with example errors."""
    counts = conn.execute(
        "SELECT status, count(*) FROM trials WHERE run_id = ? AND status <> 'ok' GROUP BY status"
        " ORDER BY count(*) DESC",
        (run_id,),
    ).fetchall()
    return [
        FailureRow(rows.status_from(status), count, _examples(conn, run_id, status))
        for status, count in counts
        if status != TrialStatus.DUPLICATE
    ]


def _examples(conn: sqlite3.Connection, run_id: int, status: str) -> tuple[str, ...]:
    found = conn.execute(
        "SELECT error FROM (SELECT error FROM trials"
        "  WHERE run_id = ? AND status = ? AND status <> 'ok' LIMIT ?)"
        " WHERE error <> '' GROUP BY error ORDER BY count(*) DESC LIMIT ?",
        (run_id, status, _EXAMPLES_READ, EXAMPLES),
    )
    return tuple(str(error) for (error,) in found)


def best_curves(conn: sqlite3.Connection, run_id: int) -> dict[int, list[Improvement]]:
    """By task id, each trial that was faster than all before it."""
    started = conn.execute("SELECT started_at FROM runs WHERE id = ?", (run_id,)).fetchone()
    found = conn.execute(
        "SELECT task_id, ordinal, measured_at, best_of, status = 'ok' AND correct IS NOT 0 AS valid"
        " FROM trials WHERE task_id IN (SELECT id FROM tasks WHERE run_id = ?)"
        " ORDER BY task_id, ordinal",
        (run_id,),
    )
    curves: dict[int, list[Improvement]] = defaultdict(list)
    seen: dict[int, int] = defaultdict(int)
    for task_id, ordinal, measured_at, best_of, valid in found:
        seen[task_id] += 1
        curve = curves[task_id]
        if valid and (not curve or best_of < curve[-1].best_secs):
            since = measured_at - started["started_at"]
            curve.append(Improvement(seen[task_id], ordinal, since, best_of))
    return dict(curves)


def _phases(rounds: tuple[Round, ...], result: dict[str, Any] | None) -> dict[str, float]:
    reported = (result or {}).get("phase_secs")
    if isinstance(reported, dict) and reported:
        return {str(name): float(secs) for name, secs in reported.items() if isinstance(secs, int | float)}
    sums: dict[str, float] = defaultdict(float)
    for record in rounds:
        for name, secs in record.phase_secs.items():
            sums[name] += secs
    return dict(sums)


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "null")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
