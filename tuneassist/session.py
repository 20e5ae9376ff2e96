"""A viewer's hold on an engine process: start it, follow its events, steer it, attach to it again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

import psutil

from tuneassist.errors import BY_EXIT_CODE, MachineError, StoreError, UsageError
from tuneassist.events import Event, RunEnded, RunStarted, decode
from tuneassist.processes import module_command
from tuneassist.records import Run, RunSettings
from tuneassist.storage.liveness import engine_alive

_PART_BYTES = 4 << 20
RESTARTS = 3
"""How often a viewer starts an engine again that crashed."""


class EngineSession:
    """One run as a viewer sees it.

    Use `start` for a new or resumed run, `attach` for one that an engine works on or that has ended.
    """

    def __init__(
        self,
        events_path: Path,
        *,
        db: Path,
        settings: RunSettings,
        pid: int | None,
        pid_started: float | None = None,
        process: subprocess.Popen[bytes] | None = None,
        lifeline: int | None = None,
        debug: bool = False,
    ) -> None:
        self.events_path = events_path
        self.pid = pid
        self.run_id: int | None = None
        self.ended: RunEnded | None = None
        """The last event, once it has come."""
        self._db = db
        self._settings = settings
        self._pid_started = pid_started
        self._process = process
        self._lifeline = lifeline
        self._debug = debug
        self._offset = 0
        self._rest = b""

    @classmethod
    def start(
        cls,
        settings: RunSettings,
        *,
        db: Path,
        detachable: bool,
        resume_run_id: int | None = None,
        debug: bool = False,
    ) -> EngineSession:
        """Start an engine.

        Args:
            settings: What to run; with `resume_run_id` only its budgets and cores count.
            db: The database.
            detachable: The engine goes on when this process ends; else it stops then.
            resume_run_id: Continue this run.
            debug: Keep tracebacks in errors.

        Raises:
            StoreError: The folder beside the database can't be written.
        """
        folder = db.resolve().with_name(db.name + ".runs")
        events_path = (
            folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6}.jsonl"
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            log = events_path.with_suffix(".log").open("ab")
        except OSError as error:
            raise StoreError(
                f"The folder {folder} can't be written: {error.strerror}.",
                remedy="Name a database in a folder that you may write to: --db PATH.",
            ) from error
        read_end, write_end = os.pipe()
        with log:
            process = subprocess.Popen(
                module_command("tuneassist.tuning.engine"),
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                pass_fds=() if detachable else (read_end,),
            )  # fmt: skip
        os.close(read_end)
        if detachable:
            os.close(write_end)
        request = {
            "settings": asdict(settings),
            "db": str(db.resolve()),
            "events": str(events_path),
            "lifeline": None if detachable else read_end,
            "resume": resume_run_id,
            "debug": debug,
        }
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.close()
        return cls(
            events_path, db=db, settings=settings, pid=process.pid, process=process,
            lifeline=None if detachable else write_end, debug=debug,
        )  # fmt: skip

    @classmethod
    def attach(cls, run: Run, *, db: Path) -> EngineSession:
        """Follow a run that an engine works on, or replay one that has ended.

        Raises:
            UsageError: The run's events are gone.
        """
        path = Path(run.events_path) if run.events_path else None
        if path is None or not path.exists():
            raise UsageError(
                f"Run {run.id} left no event file to follow.",
                remedy=f"See what was measured with `tuneassist history show {run.id}`.",
            )
        session = cls(path, db=db, settings=RunSettings(), pid=run.pid, pid_started=run.pid_started)
        session.run_id = run.id
        return session

    def poll(self) -> list[Event]:
        """New events since the last call, oldest first; never waits.

        Of a long file it takes a part at a time: call again until nothing comes.
        """
        try:
            with self.events_path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_PART_BYTES)
        except FileNotFoundError:
            data = b""
        if not data:
            return self._unsaid_end()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [event for line in lines if (event := decode(line.decode(errors="replace"))) is not None]
        for event in found:
            if isinstance(event, RunStarted):
                self.run_id = event.run_id
            elif isinstance(event, RunEnded):
                self.ended = event
        return found

    def _unsaid_end(self) -> list[Event]:
        """The last event of an engine that ended without being able to write it.

        That is one whose exit code says that it ended on purpose (its disk may be full), and one that died
        before there was a run that another could go on with.
        """
        code = self.exit_code
        if code is None or self.ended is not None or (code not in BY_EXIT_CODE and self.run_id is not None):
            return []
        if code in BY_EXIT_CODE:
            free = psutil.disk_usage(str(self.events_path.parent)).free
            error = (
                f"The engine ended with exit code {code} and could not write why; {free / 2**20:.1f} MiB are "
                f"free on the disk of {self._db}."
            )
            remedy = "Free some space, or name a database on another disk with --db."
            if self.run_id is not None:
                remedy += f" What was measured is kept: continue with --resume {self.run_id}."
        else:
            death = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            files = [spec for spec in self._settings.workloads if ".py" in spec]
            error, code = f"The engine died while it started ({death}).", MachineError.exit_code
            remedy = f"What it printed is in {self.events_path.with_suffix('.log')}; run `tuneassist doctor`."
            if files:
                remedy = (
                    f"Loading {', '.join(files)} runs that file: see whether it ends the process. {remedy}"
                )
        self.ended = RunEnded(time.time(), "failed", code, error, remedy, {})
        return [self.ended]

    def alive(self) -> bool:
        """Whether the engine's process lives."""
        if self._process is not None:
            return self._process.poll() is None
        return engine_alive(self.pid, self._pid_started)

    @property
    def exit_code(self) -> int | None:
        """The engine's exit code, negative for a signal; None while it lives or if it is not our child."""
        return self._process.poll() if self._process is not None else None

    def stop(self) -> None:
        """End after the running trial; called again, at once."""
        self._signal(signal.SIGINT)

    def pause(self) -> None:
        """Wait after the running trial."""
        self._signal(signal.SIGUSR1)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._signal(signal.SIGUSR2)

    def restart(self) -> EngineSession:
        """Continue the run of an engine that died with a new engine.

        The run keeps its row where it had one; an engine that died before that starts it anew.
        """
        run_id, detachable = self.run_id, self._lifeline is None
        self.close()
        return EngineSession.start(
            self._settings, db=self._db, detachable=detachable, resume_run_id=run_id, debug=self._debug
        )

    def log_tail(self, lines: int) -> list[str]:
        """The last lines of what the engine printed."""
        try:
            text = self.events_path.with_suffix(".log").read_text(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-lines:]

    def wait(self) -> None:
        """Wait for our own engine to end after its last event."""
        if self._process is not None:
            self.close()
            self._process.wait()

    def close(self) -> None:
        """Let go of the engine: one that is not detachable stops."""
        if self._lifeline is not None:
            with contextlib.suppress(OSError):
                os.close(self._lifeline)
            self._lifeline = None

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None and self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
