"""The app's services on this machine: the SQLite file, engine processes, `tuneassist` subcommands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tuneassist.config import load_config
from tuneassist.errors import BY_EXIT_CODE, MachineError, TuneAssistError
from tuneassist.processes import module_command
from tuneassist.records import Run, RunSettings, WorkloadInfo
from tuneassist.ui.services import Services, Session
from tuneassist.ui.store_reader import StoreReader


class LocalEngines:
    """Engines as child processes that outlive the app when the user leaves them running."""

    def __init__(self, db: Path) -> None:
        self._db = db

    def start(self, settings: RunSettings, *, resume_run_id: int | None = None) -> Session:
        """Start an engine."""
        from tuneassist.session import EngineSession

        return EngineSession.start(settings, db=self._db, detachable=True, resume_run_id=resume_run_id)

    def attach(self, run: Run) -> Session:
        """Follow a run."""
        from tuneassist.session import EngineSession

        return EngineSession.attach(run, db=self._db)


class LocalCommands:
    """`tuneassist` subcommands as child processes; their heavy imports never enter the app."""

    def __init__(self, db: Path) -> None:
        self._db = db
        self._running: set[subprocess.Popen[str]] = set()

    def close(self) -> None:
        """End those that run: whoever waits for one would keep the app from ending."""
        for process in tuple(self._running):
            process.kill()

    def run(self, *args: str, timeout_secs: float = 120.0, ok_codes: Sequence[int] = (0,)) -> str:
        """Return stdout of `tuneassist ARGS`, on this database.

        Raises:
            TuneAssistError: It failed: its own message; or it took too long.
        """
        command = module_command("tuneassist", *args)
        shown = f"tuneassist {' '.join(args)}"
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", env={**os.environ, "TUNEASSIST_DB": str(self._db.absolute())},
        )  # fmt: skip
        self._running.add(process)
        try:
            stdout, stderr = process.communicate(timeout=timeout_secs)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise MachineError(
                f"`{shown}` took more than {timeout_secs:.0f} s and was ended.",
                remedy="Run it in a shell to see what keeps it.",
            ) from error
        finally:
            self._running.discard(process)
        if process.returncode not in ok_codes:
            kind = BY_EXIT_CODE.get(process.returncode, TuneAssistError)
            said = (stderr.strip() or stdout.strip())[-4000:]
            raise kind(f"`{shown}` failed (exit {process.returncode}).", remedy=said)
        return stdout


class LocalCatalogue:
    """The workload catalogue and the target parser, loaded when first asked."""

    def workloads(self) -> Sequence[WorkloadInfo]:
        """All catalogued workloads, then the built-in models."""
        from tuneassist.workloads.models import list_models
        from tuneassist.workloads.spec import list_workloads

        return [*list_workloads(), *list_models()]

    def parse_workload(self, spec: str) -> WorkloadInfo:
        """The workload of a spec. Raises `UsageError`."""
        from tuneassist.workloads.spec import parse_workload

        return parse_workload(spec)

    def describe_target(self, spec: str) -> str:
        """The target in words. Raises `UsageError`."""
        from tuneassist.targets import spec as grammar
        from tuneassist.targets.machine import this_machine

        match grammar.parse_target(spec):
            case grammar.Native():
                machine = this_machine()
                return f"{machine.cpu}, {machine.cores} cores allowed"
            case grammar.Named(name):
                return f"the TVM tag or kind {name}"
            case grammar.Described(config):
                return " ".join(f"{key}={value}" for key, value in config.items())
            case grammar.OldStyle(kind, options):
                return f"old style, becomes kind={kind} " + " ".join(
                    f"{key}={value}" for key, value in options
                )
            case grammar.Remote(key, host, port, _):
                return f"device {key} behind the tracker {host}:{port}"


def local_services(db: Path) -> Services:
    """Everything that the app needs, over this database and the settings file."""
    config = load_config()
    given = {
        name: value
        for name in ("target", "trials", "cost_model", "seed")
        if (value := getattr(config, name)) is not None
    }
    return Services(
        db=db,
        reader=StoreReader(db),
        engines=LocalEngines(db),
        commands=LocalCommands(db),
        catalogue=LocalCatalogue(),
        theme=config.theme,
        defaults=RunSettings(**given),
    )
