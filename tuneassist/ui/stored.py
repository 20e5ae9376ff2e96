"""Events made again from the store: for a run whose events file is gone, and for what came before a resume.

Each engine writes a file of its own, so the file of a resumed run begins where the earlier engine stopped.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuneassist import events as ev
from tuneassist.records import Run, RunStatus, Trial
from tuneassist.ui.services import Reader, Session

_PAGE = 1000
_LONGEST_TRIAL_SECS = 600.0
"""More than this between two trials is a time in which no engine worked."""


class StoredSession:
    """A `Session` over stored trials and rounds, read page by page."""

    def __init__(self, reader: Reader, run: Run, db: Path) -> None:
        self._db = db
        self._events = stored_events(reader, run, db)

    @property
    def events_path(self) -> Path:
        """The database: there is no events file."""
        return self._db

    @property
    def pid(self) -> int | None:
        """No process."""
        return None

    def poll(self) -> list[ev.Event]:
        """The next page of events."""
        return list(itertools.islice(self._events, _PAGE))

    def alive(self) -> bool:
        """No engine."""
        return False

    def stop(self) -> None:
        """Nothing to stop."""

    def pause(self) -> None:
        """Nothing to pause."""

    def resume(self) -> None:
        """Nothing to resume."""

    def restart(self) -> Session:
        """Nothing to restart."""
        return self

    def log_tail(self, lines: int) -> list[str]:
        """The log went with the events file."""
        return []


class ResumedSession:
    """A `Session` of a resumed run: first what earlier engines measured, then what the engine says."""

    def __init__(self, inner: Session, earlier: Iterator[ev.Event]) -> None:
        self._inner = inner
        self._earlier = earlier

    @property
    def events_path(self) -> Path:
        """The engine's file."""
        return self._inner.events_path

    @property
    def pid(self) -> int | None:
        """The engine."""
        return self._inner.pid

    def poll(self) -> list[ev.Event]:
        """The next page of what is stored; when there is no more, the engine's new events."""
        return list(itertools.islice(self._earlier, _PAGE)) or self._inner.poll()

    def alive(self) -> bool:
        """Whether the engine lives."""
        return self._inner.alive()

    def stop(self) -> None:
        """Stop the engine."""
        self._inner.stop()

    def pause(self) -> None:
        """Pause the engine."""
        self._inner.pause()

    def resume(self) -> None:
        """Let the engine go on."""
        self._inner.resume()

    def restart(self) -> Session:
        """A new engine; what is stored was told already."""
        return self._inner.restart()

    def log_tail(self, lines: int) -> list[str]:
        """The engine's log."""
        return self._inner.log_tail(lines)


def with_earlier(session: Session, reader: Reader, run: Run, db: Path) -> Session:
    """The session, after what the store holds of the run where its events begin with a resume."""
    first = session.poll()
    starts = [event for event in first if isinstance(event, ev.RunStarted)]
    if starts and starts[0].resumed and any(task.trials for task in starts[0].tasks):
        return ResumedSession(session, itertools.chain(stored_events(reader, run, db, ended=False), first))
    return ResumedSession(session, iter(first))


def stored_events(reader: Reader, run: Run, db: Path, *, ended: bool = True) -> Iterator[ev.Event]:
    """The run's events as far as its rows tell them; with `ended`, its end too."""
    row = reader.run_row(run.id)
    tasks = reader.tasks(run.id)
    settings = _object(run.config_json)
    yield ev.RunStarted(
        run.started_at, run.id, str(db), {"spec": row.target}, "", {"hostname": row.machine}, run.cost_model,
        run.seed, run.trials_requested, settings.get("time_budget_secs"), None,
        tuple(ev.TaskStarted(t.id, t.name, t.workload_spec, t.op, t.weight, t.flops) for t in tasks),
    )  # fmt: skip
    for task in tasks:
        for name, secs in (("untuned", task.untuned_secs), ("pytorch", task.pytorch_secs)):
            if secs is not None:
                yield ev.BaselineMeasured(run.started_at, task.id, name, secs)
    last = run.started_at
    rounds = deque(sorted(reader.rounds(run.id), key=lambda record: record.ended_at))
    for trial in _trials(reader, run.id):
        while rounds and rounds[0].ended_at <= trial.measured_at:
            done = rounds.popleft()
            yield ev.RoundEnded(done.ended_at, done)
        if trial.measured_at - last > _LONGEST_TRIAL_SECS:
            yield ev.PhaseChanged(last, "paused")
            yield ev.PhaseChanged(trial.measured_at, "measure", trial.task_id)
        last = trial.measured_at or last
        yield ev.TrialEnded(last, trial)
    for done in rounds:
        yield ev.RoundEnded(done.ended_at, done)
    for task in tasks:
        if task.error:
            yield ev.TaskEnded(last, task.id, "error", task.error)
    if ended and run.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        result = _object(run.result_json)
        yield ev.RunEnded(run.ended_at or last, run.status.value, 0, None, "", result)


def _trials(reader: Reader, run_id: int) -> Iterator[Trial]:
    after = 0
    while page := reader.trials_after(run_id, after, limit=_PAGE):
        yield from page
        after = page[-1].ordinal


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
