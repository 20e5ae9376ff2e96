"""The engine process: owns the search, the cost model and every write of a run.

Started by a viewer (`session.py`) as `python -m tuneassist.tuning.engine`, with one JSON request on
stdin. It tells what it does in the event file, and everything that TVM prints goes to its log.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import shutil
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import tuneassist
from tuneassist import events
from tuneassist.errors import EXIT_DONE, NoMeasurementError, RunInterruptedError, TuneAssistError
from tuneassist.records import RunSettings, RunStatus
from tuneassist.storage.rows import settings_from
from tuneassist.storage.sqlite import SqliteStore, open_store
from tuneassist.tuning.control import Control, StoppedAtOnceError
from tuneassist.tuning.event_log import EventLog
from tuneassist.tuning.phases import PhaseClock


@dataclass(frozen=True, slots=True)
class Request:
    """What the viewer asks for."""

    settings: RunSettings
    db: Path
    events: Path
    lifeline: int | None
    """File descriptor whose end means that the viewer is gone; None: go on without it."""
    resume: int | None
    debug: bool

    @classmethod
    def from_json(cls, text: str) -> Request:
        data = json.loads(text)
        return cls(
            settings=settings_from(json.dumps(data["settings"])),
            db=Path(data["db"]),
            events=Path(data["events"]),
            lifeline=data["lifeline"],
            resume=data["resume"],
            debug=data["debug"],
        )


def main() -> None:
    """Serve one request and exit with its code."""
    request = Request.from_json(sys.stdin.readline())
    clock = PhaseClock()
    control = Control()
    control.listen(request.lifeline)
    log = EventLog(request.events)
    log.write(events.EngineStarted(time.time(), os.getpid(), tuneassist.__version__))
    code = _Engine(request, clock, control, log).run()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not `sys.exit`: no destructor of TVM or torch can then crash a run that is already committed.
    os._exit(code)


class _Engine:
    def __init__(self, request: Request, clock: PhaseClock, control: Control, log: EventLog) -> None:
        self._request = request
        self._clock = clock
        self._control = control
        self._log = log
        self._store: SqliteStore | None = None
        self._run_id: int | None = None
        self._first_measurement_secs: float | None = None
        self._models: list[dict[str, Any]] = []

    def run(self) -> int:
        """Do the run and tell how it ended; return the exit code."""
        error: TuneAssistError | None = None
        try:
            with self._clock.phase("startup"):
                self._store = open_store(self._request.db)
                setup = self._set_up()
            try:
                setup.work(self._control)
                error = self._verdict(setup)
            finally:
                self._first_measurement_secs = setup.first_measurement_secs
                self._models = setup.model_results()
                setup.close()
        except StoppedAtOnceError:
            error = self._interrupted()
        except TuneAssistError as known:
            error = known
        except Exception as unexpected:
            traceback.print_exc()
            error = TuneAssistError(
                f"The engine failed: {type(unexpected).__name__}: {unexpected}",
                remedy=f"The traceback is in {self._request.events.with_suffix('.log')}.",
            )
        return self._end(error)

    def _set_up(self) -> Any:
        # TVM is imported here, so that a bad request or store is answered at once.
        from tuneassist.tuning.setup import RunSetup

        assert self._store is not None
        setup = RunSetup(self._request, self._store, self._clock, self._log, self._control)
        try:
            setup.prepare()
        except BaseException:
            setup.close()
            raise
        self._run_id = setup.run_id
        return setup

    def _verdict(self, setup: Any) -> TuneAssistError | None:
        if self._control.stop_requested:
            return self._interrupted()
        if setup.valid == 0:
            return self._nothing_valid(setup.run_id)
        return None

    def _interrupted(self) -> TuneAssistError:
        if self._run_id is None:
            return RunInterruptedError("Stopped before the run began.")
        return RunInterruptedError(
            f"Run {self._run_id} was stopped; what was measured is kept.",
            remedy=f"Continue it with `tuneassist --batch --resume {self._run_id} --db {self._request.db}`.",
        )

    def _nothing_valid(self, run_id: int) -> TuneAssistError:
        assert self._store is not None
        causes = collections.Counter(
            trial.error.strip().splitlines()[0][:200] for trial in self._store.trials(run_id) if trial.error
        )
        causes.update(task.error for task in self._store.tasks(run_id) if task.error)
        common = causes.most_common(1)
        why = f" The commonest cause ({common[0][1]}x): {common[0][0]}" if common else ""
        return NoMeasurementError(
            f"Run {run_id} ended without a valid measurement.{why}",
            remedy=f"See every error with `tuneassist history show {run_id}`; check the machine with "
            "`tuneassist doctor`.",
        )

    def _end(self, error: TuneAssistError | None) -> int:
        code = error.exit_code if error is not None else EXIT_DONE
        status = (
            RunStatus.DONE
            if error is None
            else RunStatus.INTERRUPTED
            if isinstance(error, RunInterruptedError)
            else RunStatus.FAILED
        )
        result: dict[str, Any] = {}
        if self._run_id is not None and self._store is not None:
            from tuneassist.tuning.result import run_result

            try:
                result = run_result(
                    self._store, self._run_id, status, clock=self._clock, log=self._log,
                    first_measurement_secs=self._first_measurement_secs, models=self._models,
                )  # fmt: skip
                self._store.end_run(self._run_id, status, result_json=json.dumps(result))
            except TuneAssistError as store_error:
                error, code = error or store_error, code or store_error.exit_code
        message, remedy = (error.message, error.remedy) if error else (None, "")
        self._log.write(events.RunEnded(time.time(), str(status), code, message, remedy, result))
        if self._store is not None:
            # Closed by hand, since no destructor runs: the last connection writes the WAL back.
            with contextlib.suppress(TuneAssistError):
                self._store.close()
        shutil.rmtree(self._request.events.with_suffix(".tmp"), ignore_errors=True)
        return code


def process_start_time() -> float:
    """Unix time at which this process started: with its id, what names it for good."""
    return float(psutil.Process().create_time())


if __name__ == "__main__":
    main()
