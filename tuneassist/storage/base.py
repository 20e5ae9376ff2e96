"""The contract that every form of the store holds (one test suite runs over all of them).

Threading: a store belongs to the thread that opened it. One process writes a run; any number read it.
Ordering: rows come back in the order of `ordinal` (trials), `id` (runs, tasks) and `round` (rounds).
Errors: `StoreError` for anything that the file, the disk or another process is to blame for.
Durability: when a writing method returns, its row survives a kill of this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from tuneassist.records import Machine, Round, Run, RunSettings, RunStatus, TargetInfo, Task, Trial


class Store(Protocol):
    """Runs, tasks and trials, kept."""

    path: str

    # what a run stands on: each returns the id of the equal row, which it adds if there is none
    def machine_id(self, machine: Machine) -> int: ...
    def target_id(self, target: TargetInfo) -> int: ...
    def workload_id(
        self,
        *,
        hash: str,  # noqa: A002
        name: str,
        spec: str,
        op: str,
        flops: int,
        mod_json: str,
    ) -> int:
        """`hash` identifies; the other columns are those of the first time it was seen."""
        ...

    # runs
    def create_run(
        self, *, target_id: int, machine_id: int, settings: RunSettings, pid: int, pid_started: float,
        events_path: str,
    ) -> int: ...  # fmt: skip
    def claim_run(self, run_id: int, *, pid: int, pid_started: float, events_path: str) -> None:
        """Mark the run as running under this engine; `StoreError` if a live engine holds it."""
        ...

    def set_run_status(self, run_id: int, status: RunStatus) -> None: ...
    def end_run(self, run_id: int, status: RunStatus, *, result_json: str) -> None:
        """Set status, end time and result, and clear the engine."""
        ...

    def run(self, run_id: int) -> Run:
        """`UsageError` (nearest ids named) if there is none."""
        ...

    def settings(self, run_id: int) -> RunSettings: ...
    def target(self, target_id: int) -> TargetInfo: ...
    def machine(self, machine_id: int) -> Machine: ...

    # tasks
    def add_task(self, run_id: int, workload_id: int, *, name: str, weight: int) -> int: ...
    def set_task_baseline(
        self, task_id: int, *, untuned_secs: float | None = None, pytorch_secs: float | None = None
    ) -> None:
        """Set those given; None leaves a column as it is."""
        ...

    def set_task_error(self, task_id: int, error: str) -> None: ...
    def tasks(self, run_id: int) -> list[Task]: ...

    # trials
    def add_trial(self, trial: Trial) -> int: ...
    def add_trials(self, trials: Iterable[Trial]) -> int:
        """Add all or, if one is refused, none (an import); return how many."""
        ...

    def update_measurement(self, trial_id: int, *, run_secs: Sequence[float], best_of: float) -> None:
        """Replace the repeats of an ok trial (it was measured again)."""
        ...

    def set_correct(self, trial_id: int, correct: bool) -> None: ...
    def trials(self, run_id: int, *, task_id: int | None = None, after_ordinal: int = 0) -> list[Trial]: ...
    def last_ordinal(self, run_id: int) -> int:
        """0 if the run has no trial."""
        ...

    def top_trials(
        self, workload_hash: str, *, target_id: int, machine_id: int, limit: int, run_id: int | None = None
    ) -> list[Trial]:
        """The fastest ok trials not known to be wrong, best first, over all runs or of one run."""
        ...

    def measured_trials(
        self, workload_hash: str, *, target_id: int, machine_id: int, limit: int | None = None
    ) -> Iterator[Trial]:
        """Every trial of the workload here over all runs, newest run first, failures included."""
        ...

    # rounds
    def add_round(self, record: Round) -> None: ...
    def rounds(self, run_id: int) -> list[Round]: ...

    # facts about a machine, measured once (the CPU model that compiles best, peak GFLOPS)
    def machine_fact(self, machine_id: int, name: str) -> Any | None:
        """The JSON value kept under that name, or None."""
        ...

    def set_machine_fact(self, machine_id: int, name: str, value: Any) -> None: ...

    def close(self) -> None: ...
