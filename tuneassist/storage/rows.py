"""Records from rows, and rows from records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from tuneassist.errors import StoreError
from tuneassist.records import (
    Machine,
    Round,
    Run,
    RunSettings,
    RunStatus,
    TargetInfo,
    Task,
    Trial,
    TrialStatus,
)
from tuneassist.storage.faults import garbled

ERROR_CHARS = 4000
"""A longer error text is stored without its middle."""

_TRIAL_COLUMNS = tuple(field.name for field in fields(Trial))
_TASK_COLUMNS = {
    "id": "tasks.id", "run_id": "tasks.run_id", "workload_id": "tasks.workload_id", "name": "tasks.name",
    "weight": "tasks.weight", "workload_hash": "workloads.hash", "workload_spec": "workloads.spec",
    "op": "workloads.op", "flops": "workloads.flops", "untuned_secs": "tasks.untuned_secs",
    "pytorch_secs": "tasks.pytorch_secs", "error": "tasks.error",
}  # fmt: skip

SELECT_TRIAL = f"SELECT {', '.join(f'trials.{name}' for name in _TRIAL_COLUMNS)} FROM trials"
SELECT_TASK = (
    f"SELECT {', '.join(f'{column} AS {name}' for name, column in _TASK_COLUMNS.items())}"
    " FROM tasks JOIN workloads ON workloads.id = tasks.workload_id"
)
SELECT_RUN = f"SELECT {', '.join(field.name for field in fields(Run))} FROM runs"
INSERT_TRIAL = (
    f"INSERT INTO trials ({', '.join(_TRIAL_COLUMNS)}) VALUES ({', '.join(f':{c}' for c in _TRIAL_COLUMNS)})"
)
INSERT_ROUND = (
    f"INSERT OR REPLACE INTO rounds ({', '.join(field.name for field in fields(Round))})"
    f" VALUES ({', '.join(f':{field.name}' for field in fields(Round))})"
)


def secs_json(run_secs: Iterable[float]) -> str:
    """Repeats as the JSON array that `trials.run_secs` holds."""
    return json.dumps([float(secs) for secs in run_secs], allow_nan=False)


def secs_from(text: str) -> tuple[float, ...]:
    """Repeats from `trials.run_secs`, in seconds.

    Raises:
        StoreError: The text holds none.
    """
    try:
        return tuple(float(secs) for secs in json.loads(text))
    except (ValueError, TypeError) as error:
        raise garbled("the repeats of a trial", text) from error


def status_from(text: str) -> TrialStatus:
    """A trial's status.

    Raises:
        StoreError: It is none.
    """
    try:
        return TrialStatus(text)
    except ValueError as error:
        raise garbled("a trial's status", text) from error


def run_status_from(text: str) -> RunStatus:
    """A run's status.

    Raises:
        StoreError: It is none.
    """
    try:
        return RunStatus(text)
    except ValueError as error:
        raise garbled("a run's status", text) from error


def clip(text: str | None) -> str | None:
    """The text, without its middle where it is longer than `ERROR_CHARS`."""
    if text is None or len(text) <= ERROR_CHARS:
        return text
    head, tail = ERROR_CHARS // 4, ERROR_CHARS * 3 // 4
    return f"{text[:head]}\n... {len(text) - head - tail} characters left out ...\n{text[-tail:]}"


def trial_values(trial: Trial) -> dict[str, Any]:
    """Parameters of `INSERT_TRIAL`."""
    values = {name: getattr(trial, name) for name in _TRIAL_COLUMNS}
    values["status"] = trial.status.value
    values["run_secs"] = None if trial.run_secs is None else secs_json(trial.run_secs)
    values["error"] = clip(trial.error)
    return values


def trial_from(row: sqlite3.Row) -> Trial:
    """The trial of a `SELECT_TRIAL` row."""
    values = {name: row[name] for name in _TRIAL_COLUMNS}
    values["status"] = status_from(values["status"])
    values["run_secs"] = None if values["run_secs"] is None else secs_from(values["run_secs"])
    values["slow"] = bool(values["slow"])
    values["correct"] = None if values["correct"] is None else bool(values["correct"])
    return Trial(**values)


def task_from(row: sqlite3.Row) -> Task:
    """The task of a `SELECT_TASK` row."""
    return Task(**{name: row[name] for name in _TASK_COLUMNS})


def run_from(row: sqlite3.Row) -> Run:
    """The run of a `SELECT_RUN` row."""
    values = {field.name: row[field.name] for field in fields(Run)}
    return Run(**{**values, "status": run_status_from(values["status"])})


def round_values(record: Round) -> dict[str, Any]:
    """Parameters of `INSERT_ROUND`."""
    return {**asdict(record), "phase_secs": json.dumps(record.phase_secs)}


def round_from(row: sqlite3.Row) -> Round:
    """The round of a row of `rounds`."""
    values = {field.name: row[field.name] for field in fields(Round)}
    try:
        return Round(**{**values, "phase_secs": json.loads(values["phase_secs"])})
    except ValueError as error:
        raise garbled("the phases of a round", values["phase_secs"]) from error


def machine_from(row: sqlite3.Row) -> Machine:
    """The machine of a row of `machines`."""
    try:
        return Machine(row["hostname"], row["cpu"], row["cores"], tuple(json.loads(row["features"])))
    except (ValueError, TypeError) as error:
        raise garbled("the features of a machine", row["features"]) from error


def target_from(row: sqlite3.Row) -> TargetInfo:
    """The target of a row of `targets`."""
    return TargetInfo(row["spec"], row["json"], row["cores"], row["kind"], row["note"])


def settings_json(settings: RunSettings) -> str:
    """Settings as `runs.config_json` holds them."""
    return json.dumps(asdict(settings))


def settings_from(text: str) -> RunSettings:
    """Settings from `runs.config_json`; what this release doesn't know is left out.

    Raises:
        StoreError: The text holds no settings.
    """
    known = {field.name for field in fields(RunSettings)}
    try:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in json.loads(text).items()
            if key in known
        }
        return RunSettings(**values)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"The settings of this run can't be read: {text[:80]!r}.",
            remedy="Start a new run instead of resuming this one.",
        ) from error
