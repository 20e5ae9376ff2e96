"""What the engine tells its viewers: one JSON object a line.

The engine appends to a file; any number of viewers follow it, before or after the fact. A reader skips
what it does not know (a newer engine may say more) and what does not parse (a line cut by a crash).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from tuneassist.records import Round, Trial, TrialStatus


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events; `time` is Unix time."""

    kind: ClassVar[str]
    time: float


@dataclass(frozen=True, slots=True)
class EngineStarted(Event):
    """The engine process is up; nothing is loaded yet."""

    kind = "engine_started"
    pid: int
    version: str


@dataclass(frozen=True, slots=True)
class PhaseChanged(Event):
    """The engine now does something else.

    `phase` is startup, search, predict, build, measure, train, store, baseline, confirm,
    compare, paused.
    """

    kind = "phase"
    phase: str
    task_id: int | None = None
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task as a run begins, within `RunStarted`."""

    task_id: int
    name: str
    workload: str
    op: str
    weight: int
    flops: int
    trials: int = 0
    """Trials that the store already holds of this run (a resumed run)."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The run has its row and its tasks; sent again when an engine takes a run over."""

    kind = "run_started"
    run_id: int
    db: str
    target: dict[str, Any]
    target_note: str
    machine: dict[str, Any]
    cost_model: str
    seed: int
    trials: int
    time_budget_secs: float | None
    peak_gflops: float | None
    """The machine's measured peak on the target's cores."""
    tasks: tuple[TaskStarted, ...]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class BaselineMeasured(Event):
    """`name` is `untuned` or `pytorch`; `secs` is None where it could not be measured (`error` says why)."""

    kind = "baseline"
    task_id: int
    name: str
    secs: float | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TrialEnded(Event):
    """One trial is measured and committed."""

    kind = "trial"
    trial: Trial


@dataclass(frozen=True, slots=True)
class RoundEnded(Event):
    """One round of one task is over."""

    kind = "round"
    round: Round


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    """A task gets no more trials; `reason` is budget, patience, exhausted, reused or error."""

    kind = "task_ended"
    task_id: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TrialConfirmed(Event):
    """A top trial was measured again at the end, and its output checked."""

    kind = "confirmed"
    task_id: int
    ordinal: int
    best_of: float
    correct: bool | None
    max_relative_error: float | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Message(Event):
    """Something a person should know; `level` is info, warning or error."""

    kind = "message"
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """The last event. `result` is the object that `--batch --json` prints."""

    kind = "run_ended"
    status: str
    exit_code: int
    error: str | None
    remedy: str
    result: dict[str, Any] = field(default_factory=dict)


_KINDS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        EngineStarted, PhaseChanged, RunStarted, BaselineMeasured, TrialEnded, RoundEnded, TaskEnded,
        TrialConfirmed, Message, RunEnded,
    )
}  # fmt: skip


def encode(event: Event) -> str:
    """Return the event as one line of JSON, without the newline."""
    return json.dumps({"event": event.kind, **asdict(event)}, separators=(",", ":"))


def decode(line: str) -> Event | None:
    """Return the event that a line holds, or None where it holds none that this version knows."""
    try:
        data = json.loads(line)
        event = _KINDS[data.pop("event")]
        known = {f.name for f in fields(event)}
        values = {key: value for key, value in data.items() if key in known}
        if event is TrialEnded:
            values["trial"] = _trial(values["trial"])
        elif event is RoundEnded:
            values["round"] = Round(**values["round"])
        elif event is RunStarted:
            values["tasks"] = tuple(TaskStarted(**task) for task in values["tasks"])
        return event(**values)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _trial(data: dict[str, Any]) -> Trial:
    run_secs = data.pop("run_secs")
    status = TrialStatus(data.pop("status"))
    return Trial(**data, status=status, run_secs=None if run_secs is None else tuple(run_secs))
