"""Plays a run that has ended as if it were running; reads runs whose events file is gone."""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from tuneassist import events as ev
from tuneassist.records import Run, RunStatus, Trial
from tuneassist.ui.services import Reader, Session

SPEEDS = (1.0, 4.0, 16.0, 64.0, 256.0, 1e9)
"""Seconds of the run per second of the viewer; the last one is as fast as it goes."""

_LONGEST_GAP_SECS = 5.0
"""A pause in the run, or the days before it was resumed, takes no longer than this in the replay."""
_BATCH = 2000
_PAGE = 1000


class ReplaySession:
    """A `Session` that hands out another one's events when their time has come.

    Args:
        inner: The events of a run that has ended.
        clock: Monotonic seconds.
    """

    def __init__(
        self, inner: Session, *, speed: float = 16.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._waiting: deque[ev.Event] = deque()
        self._paused = False
        self._stopped = False
        self._at: float | None = None
        """Unix time of the run that the replay has reached."""
        self._looked = clock()
        self.speed = speed

    @property
    def events_path(self) -> Path:
        """The file of the replayed events."""
        return self._inner.events_path

    @property
    def pid(self) -> int | None:
        """No process works on a replay."""
        return None

    @property
    def paused(self) -> bool:
        """Whether the replay stands still."""
        return self._paused

    def poll(self) -> list[ev.Event]:
        """The events whose time has come."""
        now = self._clock()
        passed, self._looked = now - self._looked, now
        if self._paused or self._stopped:
            return []
        if not self._waiting:
            self._waiting.extend(self._inner.poll())
        if self._at is None and self._waiting:
            self._at = _time(self._waiting[0], 0.0)
        if self._at is not None:
            self._at += passed * self.speed
        due: list[ev.Event] = []
        while self._waiting and self._at is not None and len(due) < _BATCH:
            at = _time(self._waiting[0], self._at)
            if at > self._at:
                # Skip most of a long gap, once.
                self._at = max(self._at, at - _LONGEST_GAP_SECS)
                break
            due.append(self._waiting.popleft())
            if not self._waiting:
                self._waiting.extend(self._inner.poll())
        return due

    def alive(self) -> bool:
        """Whether there is more to play."""
        return not self._stopped and (bool(self._waiting) or self._more())

    def stop(self) -> None:
        """End the replay."""
        self._stopped = True

    def pause(self) -> None:
        """Stand still."""
        self._paused = True

    def resume(self) -> None:
        """Go on."""
        self._paused = False

    def restart(self) -> Session:
        """A replay needs no engine."""
        return self

    def log_tail(self, lines: int) -> list[str]:
        """The log of the engine that ran it."""
        return self._inner.log_tail(lines)

    def _more(self) -> bool:
        self._waiting.extend(self._inner.poll())
        return bool(self._waiting)


def _time(event: ev.Event, default: float) -> float:
    return float(event.time) if isinstance(event.time, int | float) else default


class StoredSession:
    """A `Session` over a run whose events file is gone: its events, made again from the store."""

    def __init__(self, reader: Reader, run: Run, db: Path) -> None:
        self._run = run
        self._db = db
        self._events = _stored_events(reader, run, db)

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


def _stored_events(reader: Reader, run: Run, db: Path) -> Iterator[ev.Event]:
    row = reader.run_row(run.id)
    tasks = reader.tasks(run.id)
    yield ev.RunStarted(
        time=run.started_at,
        run_id=run.id,
        db=str(db),
        target={"spec": row.target},
        target_note="",
        machine={"hostname": row.machine},
        cost_model=run.cost_model,
        seed=run.seed,
        trials=run.trials_requested,
        time_budget_secs=json.loads(run.config_json or "{}").get("time_budget_secs"),
        peak_gflops=None,
        tasks=tuple(
            ev.TaskStarted(task.id, task.name, task.workload_spec, task.op, task.weight, task.flops)
            for task in tasks
        ),
    )
    for task in tasks:
        for name, secs in (("untuned", task.untuned_secs), ("pytorch", task.pytorch_secs)):
            if secs is not None:
                yield ev.BaselineMeasured(run.started_at, task.id, name, secs)
    rounds = deque(sorted(reader.rounds(run.id), key=lambda r: r.ended_at))
    last = run.started_at
    for trial in _stored_trials(reader, run.id):
        while rounds and rounds[0].ended_at <= trial.measured_at:
            done = rounds.popleft()
            yield ev.RoundEnded(done.ended_at, done)
        last = trial.measured_at or last
        yield ev.TrialEnded(last, trial)
    for done in rounds:
        yield ev.RoundEnded(done.ended_at, done)
    for task in tasks:
        if task.error:
            yield ev.TaskEnded(last, task.id, "error", task.error)
    if run.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        yield ev.RunEnded(run.ended_at or last, run.status.value, 0, None, "", _result(run))


def _stored_trials(reader: Reader, run_id: int) -> Iterator[Trial]:
    after = 0
    while page := reader.trials_after(run_id, after, limit=_PAGE):
        yield from page
        after = page[-1].ordinal


def _result(run: Run) -> dict[str, object]:
    try:
        result = json.loads(run.result_json or "{}")
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
