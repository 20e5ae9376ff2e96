"""What the app needs from outside, as Protocols; tests give it fakes of the same shape.

Threading: the app calls a `Reader` and a `Commands` from worker threads, a `Session` from one follower
thread, except for `stop`, `pause` and `resume`, which only send a signal and may come from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tuneassist.events import Event
from tuneassist.records import Round, Run, RunSettings, Task, Trial, WorkloadInfo
from tuneassist.storage.models import ModelRow
from tuneassist.storage.queries import RunRow, TrialRow


@dataclass(frozen=True, slots=True)
class KnownBest:
    """What the store holds of one workload on this machine."""

    best_secs: float | None
    trials: int


class Reader(Protocol):
    """Reads the store. Every method opens what it needs, so any thread may call; all raise `StoreError`.

    A store that does not exist yet is an empty one.
    """

    def runs(
        self,
        *,
        pattern: str = "",
        order: str = "id",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        """Runs whose workloads, note, target or status contain `pattern`; `order` is a field of `RunRow`."""
        ...

    def run_row(self, run_id: int) -> RunRow: ...
    def run(self, run_id: int) -> Run: ...
    def tasks(self, run_id: int) -> Sequence[Task]: ...
    def rounds(self, run_id: int) -> Sequence[Round]: ...

    def trials(
        self,
        run_id: int,
        *,
        task_id: int | None = None,
        status: str = "",
        order: str = "ordinal",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> Sequence[TrialRow]:
        """One page. `status` is empty (all), `failed`, or a trial status; `order` a field of `TrialRow`."""
        ...

    def trials_after(self, run_id: int, ordinal: int, *, limit: int) -> Sequence[Trial]:
        """Full trials in order of ordinal, from the one after `ordinal` on."""
        ...

    def trial(self, trial_id: int) -> TrialRow: ...
    def trial_id(self, run_id: int, ordinal: int) -> int:
        """Raises `UsageError` if the store does not hold it (yet)."""
        ...

    def best_curve(self, task_id: int) -> Sequence[tuple[int, float, float]]:
        """(trial of the task, seconds since the run started, best latency) at each improvement."""
        ...

    def known_best(self) -> Mapping[str, KnownBest]:
        """By workload spec, on this machine."""
        ...

    def models(self) -> Sequence[ModelRow]: ...


class Session(Protocol):
    """One engine, followed (`tuneassist.session.EngineSession`)."""

    @property
    def events_path(self) -> Path: ...
    @property
    def pid(self) -> int | None: ...
    def poll(self) -> list[Event]: ...
    def alive(self) -> bool: ...
    def stop(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def restart(self) -> Session: ...
    def log_tail(self, lines: int) -> list[str]: ...


class Engines(Protocol):
    """Starts engines and attaches to them."""

    def start(self, settings: RunSettings, *, resume_run_id: int | None = None) -> Session: ...
    def attach(self, run: Run) -> Session: ...


class Commands(Protocol):
    """Runs `tuneassist` subcommands in processes of their own, against this store."""

    def run(self, *args: str, timeout_secs: float = 120.0, ok_codes: Sequence[int] = (0,)) -> str:
        """Return stdout. Raises the `TuneAssistError` of any other exit code, with the command's words."""
        ...

    def close(self) -> None:
        """End those that run; whoever waits for one gets its error."""
        ...


class Catalogue(Protocol):
    """Workloads and targets, known without TVM."""

    def workloads(self) -> Sequence[WorkloadInfo]: ...
    def parse_workload(self, spec: str) -> WorkloadInfo:
        """Raises `UsageError`."""
        ...

    def describe_target(self, spec: str) -> str:
        """The target in words. Raises `UsageError`."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """All of them, and where the store is."""

    db: Path
    reader: Reader
    engines: Engines
    commands: Commands
    catalogue: Catalogue
    theme: str | None = None
    defaults: RunSettings = field(default_factory=RunSettings)
    """What the new-run form starts from (the settings file)."""
    clock: Callable[[], float] = time.time
