"""Writes what happens in a run: to the store first, then to the event file."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from tuneassist import events
from tuneassist.records import Round, RunStatus, Trial
from tuneassist.storage.base import Store
from tuneassist.tuning.event_log import EventLog
from tuneassist.tuning.phases import PhaseClock


class Journal:
    """The one writer of a run."""

    def __init__(self, store: Store, log: EventLog, clock: PhaseClock) -> None:
        self.store = store
        self._log = log
        self._clock = clock
        self._phase: tuple[str, int | None, int, int] = ("startup", None, 0, 0)
        self._pause = contextlib.ExitStack()
        self.first_measurement_secs: float | None = None

    def say(self, event: events.Event) -> None:
        """Tell the viewers."""
        self._log.write(event)

    def message(self, level: str, text: str) -> None:
        """Tell the viewers something in words; `level` is info, warning or error."""
        self.say(events.Message(time.time(), level, text))

    def phase(self, name: str, task_id: int | None = None, done: int = 0, total: int = 0) -> None:
        """Tell the viewers what happens now."""
        self._phase = (name, task_id, done, total)
        self.say(events.PhaseChanged(time.time(), name, task_id, done, total))

    def paused(self, run_id: int, paused: bool) -> None:
        """Note that a pause begins or ends, wherever the run stands."""
        self.store.set_run_status(run_id, RunStatus.PAUSED if paused else RunStatus.RUNNING)
        if paused:
            self._pause.enter_context(self._clock.phase("paused"))
            self.say(events.PhaseChanged(time.time(), "paused"))
        else:
            self._pause.close()
            self.phase(*self._phase)

    def trial(self, trial: Trial) -> int:
        """Commit one trial, then tell; return its id."""
        with self._clock.phase("store"):
            trial_id = self.store.add_trial(trial)
        if self.first_measurement_secs is None and trial.run_secs:
            self.first_measurement_secs = self._clock.wall_secs()
        self.say(events.TrialEnded(time.time(), trial))
        return trial_id

    def round(self, record: Round) -> None:
        """Commit one round, then tell."""
        with self._clock.phase("store"):
            self.store.add_round(record)
        self.say(events.RoundEnded(time.time(), record))

    def baseline(self, task_id: int, name: str, secs: float | None, error: str | None) -> None:
        """Keep a baseline (`untuned` or `pytorch`) of a task, then tell."""
        if secs is not None:
            values: dict[str, Any] = {f"{name}_secs": secs}
            self.store.set_task_baseline(task_id, **values)
        self.say(events.BaselineMeasured(time.time(), task_id, name, secs, error))

    def task_ended(self, task_id: int, reason: str, detail: str = "") -> None:
        """Tell why a task gets no more trials; an error is kept."""
        if reason == "error":
            self.store.set_task_error(task_id, detail)
        self.say(events.TaskEnded(time.time(), task_id, reason, detail))


def scratch_folder(events_path: Path) -> Path:
    """Where a run keeps inputs and reference outputs while it runs: beside its events."""
    folder = events_path.with_suffix(".tmp")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
