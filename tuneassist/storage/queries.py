"""Runs as lists show them, trials by the page, and the best known of each workload.

All functions take a read-only connection from `reading()`. None scans the trials of more than one run:
counts and bests are kept in `tasks`.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from tuneassist.errors import UsageError
from tuneassist.records import RunStatus, TrialStatus
from tuneassist.storage.faults import no_such_run
from tuneassist.storage.filters import LOST, RUN_STATE, RunFilter, alive_runs, like, matches, run_condition
from tuneassist.storage.rows import run_status_from, secs_from, status_from


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as lists show it."""

    id: int
    status: RunStatus
    alive: bool
    """Whether an engine works on it now."""
    started_at: float
    ended_at: float | None
    tasks: int
    task_names: str
    target: str
    machine: str
    cost_model: str
    seed: int
    trials: int
    valid: int
    trials_requested: int
    best_secs: float | None
    """Sum of weight times best latency over the tasks that have one."""
    note: str = ""

    @property
    def resumable(self) -> bool:
        """Whether it stopped before its budget was used up and nobody works on it."""
        return not self.alive and self.status is not RunStatus.DONE and self.trials < self.trials_requested

    @property
    def state(self) -> str:
        """Its status in a word; a run that lost its engine is `lost`, whatever its row says."""
        if not self.alive and self.status in (RunStatus.RUNNING, RunStatus.PAUSED):
            return LOST
        return self.status.value


_RUN_COLUMNS = {
    "id": "runs.id", "status": "runs.status", "started_at": "runs.started_at", "ended_at": "runs.ended_at",
    "tasks": "count(tasks.id)", "task_names": "coalesce(group_concat(tasks.name, ', '), '')",
    "target": "targets.spec", "machine": "machines.hostname", "cost_model": "runs.cost_model",
    "seed": "runs.seed", "trials": "coalesce(sum(tasks.trial_count), 0)",
    "valid": "coalesce(sum(tasks.ok_count), 0)", "trials_requested": "runs.trials_requested",
    "best_secs": "sum(tasks.weight * tasks.best_secs)", "note": "runs.note",
}  # fmt: skip
_RUN_TABLES = (
    "runs JOIN targets ON targets.id = runs.target_id JOIN machines ON machines.id = runs.machine_id"
)


def runs(
    conn: sqlite3.Connection,
    wanted: RunFilter = RunFilter(),  # noqa: B008 (frozen)
    *,
    order: str = "id",
    descending: bool = True,
    limit: int = -1,
    offset: int = 0,
) -> list[RunRow]:
    """Runs that match, by default the newest first; `limit` -1 means all.

    Args:
        conn: From `reading()`.
        wanted: Which runs.
        order: A field of `RunRow`, or `state`.
        descending: Largest first; rows without a value come last either way.
        limit: At most so many.
        offset: Leave out so many first.
    """
    condition = run_condition(conn, wanted)
    key = _order(order, {**_RUN_COLUMNS, "state": RUN_STATE})
    columns = ", ".join(f"{column} AS {name}" for name, column in _RUN_COLUMNS.items())
    direction = "DESC" if descending else "ASC"
    ordering = f"runs.id {direction}" if order == "id" else f"{key} {direction} NULLS LAST, runs.id DESC"
    found = conn.execute(
        f"SELECT {columns} FROM {_RUN_TABLES} LEFT JOIN tasks ON tasks.run_id = runs.id"
        f" WHERE {condition.sql} GROUP BY runs.id ORDER BY {ordering} LIMIT :limit OFFSET :offset",
        {**condition.parameters, "limit": limit, "offset": offset},
    ).fetchall()
    alive = set(alive_runs(conn))
    return [
        RunRow(**{**dict(row), "status": run_status_from(row["status"])}, alive=row["id"] in alive)
        for row in found
    ]


def count_runs(conn: sqlite3.Connection, wanted: RunFilter = RunFilter()) -> int:  # noqa: B008 (frozen)
    """How many runs match."""
    condition = run_condition(conn, wanted)
    row = conn.execute(f"SELECT count(*) FROM {_RUN_TABLES} WHERE {condition.sql}", condition.parameters)
    return int(row.fetchone()[0])


def run_row(conn: sqlite3.Connection, run_id: int, path: str) -> RunRow:
    """One run as lists show it.

    Raises:
        UsageError: There is none of that id; the nearest are named.
    """
    columns = ", ".join(f"{column} AS {name}" for name, column in _RUN_COLUMNS.items())
    row = conn.execute(
        f"SELECT {columns} FROM {_RUN_TABLES} LEFT JOIN tasks ON tasks.run_id = runs.id"
        " WHERE runs.id = ? GROUP BY runs.id",
        (run_id,),
    ).fetchone()
    if row is None:
        raise no_such_run(conn, run_id, path)
    alive = run_id in alive_runs(conn)
    return RunRow(**{**dict(row), "status": run_status_from(row["status"])}, alive=alive)


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial as tables show it, without its trace."""

    id: int
    run_id: int
    task_id: int
    task_name: str
    ordinal: int
    round: int
    status: TrialStatus
    best_of: float | None
    predicted_secs: float | None
    build_secs: float | None
    source: str
    error: str | None
    correct: bool | None = None
    measured_at: float = 0.0


_TRIAL_COLUMNS = {
    "id": "trials.id", "run_id": "trials.run_id", "task_id": "trials.task_id", "task_name": "tasks.name",
    "ordinal": "trials.ordinal", "round": "trials.round", "status": "trials.status",
    "best_of": "trials.best_of", "predicted_secs": "trials.predicted_secs",
    "build_secs": "trials.build_secs", "source": "trials.source", "error": "trials.error",
    "correct": "trials.correct", "measured_at": "trials.measured_at",
}  # fmt: skip
_SELECT_TRIAL_ROW = (
    f"SELECT {', '.join(f'{column} AS {name}' for name, column in _TRIAL_COLUMNS.items())}"
    " FROM trials JOIN tasks ON tasks.id = trials.task_id"
)
FAILED = "failed"
"""For `trials`: any status but ok."""


def trials(
    conn: sqlite3.Connection,
    run_id: int,
    *,
    task_id: int | None = None,
    task_name: str = "",
    status: str = "",
    order: str = "ordinal",
    descending: bool = False,
    limit: int = -1,
    offset: int = 0,
) -> list[TrialRow]:
    """One page of a run's trials; `limit` -1 means all.

    Args:
        conn: From `reading()`.
        run_id: The run.
        task_id: Of this task only.
        task_name: Of tasks of this name only.
        status: Empty for all, `failed` for all but ok, or a trial status.
        order: A field of `TrialRow`.
        descending: Largest first; rows without a value come last either way.
        limit: At most so many.
        offset: Leave out so many first.
    """
    key = _order(order, _TRIAL_COLUMNS)
    terms = ["trials.run_id = :run"]
    if task_id is not None:
        terms.append("trials.task_id = :task")
    if task_name:
        terms.append("tasks.name = :name")
    if status:
        terms.append("trials.status <> 'ok'" if status == FAILED else "trials.status = :status")
    direction = "DESC" if descending else "ASC"
    found = conn.execute(
        f"{_SELECT_TRIAL_ROW} WHERE {' AND '.join(terms)}"
        f" ORDER BY {key} {direction} NULLS LAST, trials.ordinal LIMIT :limit OFFSET :offset",
        {
            "run": run_id,
            "task": task_id,
            "name": task_name,
            "status": status,
            "limit": limit,
            "offset": offset,
        },
    )
    return [_trial_row(row) for row in found.fetchall()]


def trial_row(conn: sqlite3.Connection, trial_id: int) -> TrialRow:
    """One trial by its id.

    Raises:
        UsageError: There is none.
    """
    row = conn.execute(f"{_SELECT_TRIAL_ROW} WHERE trials.id = ?", (trial_id,)).fetchone()
    if row is None:
        raise UsageError(f"There is no trial of id {trial_id}.", remedy="`tuneassist history trials` lists.")
    return _trial_row(row)


def _trial_row(row: sqlite3.Row) -> TrialRow:
    correct = None if row["correct"] is None else bool(row["correct"])
    return TrialRow(**{**dict(row), "status": status_from(row["status"]), "correct": correct})


@dataclass(frozen=True, slots=True)
class BestRow:
    """The fastest valid trial of a workload on one machine and target."""

    workload: str
    workload_spec: str
    op: str
    machine: str
    target: str
    target_json: str
    best_secs: float
    run_secs: tuple[float, ...]
    """Every repeat of that trial."""
    gflops: float | None
    run_id: int
    ordinal: int
    cost_model: str
    correct: bool | None
    untuned_secs: float | None
    pytorch_secs: float | None
    measured_at: float
    trials: int
    """Trials of this workload there, over all runs."""
    runs: int


def best(
    conn: sqlite3.Connection,
    *,
    workload: str = "",
    target: str = "",
    machine: str = "",
    limit: int = -1,
) -> list[BestRow]:
    """The best known of each workload on each machine and target, by workload; fields are patterns.

    Args:
        conn: From `reading()`.
        workload: Of the workload's name or spec.
        target: Of the target's spec.
        machine: Of the host name or the CPU.
        limit: At most so many; -1 means all.
    """
    terms = (
        matches("workload", "workload", "workload_spec"),
        matches("target", "target"),
        matches("machine", "machine", "cpu"),
    )
    parameters = {"workload": like(workload), "target": like(target), "machine": like(machine)}
    found = conn.execute(
        "SELECT workload, workload_spec, op, machine, target, target_json, best_of AS best_secs, run_secs,"
        " gflops, best_trials.run_id, ordinal, best_trials.cost_model, correct, untuned_secs, pytorch_secs,"
        " measured_at, sums.trials, sums.runs FROM best_trials"
        " JOIN (SELECT tasks.workload_id, runs.target_id, runs.machine_id,"
        "       sum(tasks.trial_count) AS trials, count(DISTINCT runs.id) AS runs"
        "       FROM tasks JOIN runs ON runs.id = tasks.run_id"
        "       GROUP BY tasks.workload_id, runs.machine_id, runs.target_id) AS sums"
        " USING (workload_id, target_id, machine_id)"
        f" WHERE {' AND '.join(terms)} ORDER BY workload, machine, target LIMIT :limit",
        {**parameters, "limit": limit},
    )
    return [
        BestRow(
            **{
                **dict(row),
                "run_secs": secs_from(row["run_secs"]),
                "correct": None if row["correct"] is None else bool(row["correct"]),
            }
        )
        for row in found.fetchall()
    ]


def workload_names(conn: sqlite3.Connection) -> list[str]:
    """Names of the workloads that the store holds, for suggestions."""
    return [str(name) for (name,) in conn.execute("SELECT DISTINCT name FROM tasks ORDER BY name")]


def _order(order: str, columns: dict[str, str]) -> str:
    if order not in columns:
        raise UsageError(f"Rows can't be sorted by {order!r}.", remedy=f"Use one of {', '.join(columns)}.")
    return columns[order]
