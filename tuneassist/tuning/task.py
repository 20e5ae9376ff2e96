"""One task of a run: its workload, its search, and how far it is."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuneassist.records import FAILURES, Trial, TrialStatus, WorkloadInfo
from tuneassist.storage.base import Store
from tuneassist.tuning.guides import Guide
from tuneassist.tuning.measuring import Job, Limits
from tuneassist.tuning.scheduler import TaskProgress
from tuneassist.tuning.search import TaskSearch
from tuneassist.tvm_api import IRModule, module_to_text

_LEARN_AT_MOST = 512
"""Stored trials that a task starts from; more would delay the first measurement."""
_ENOUGH_BUILDS = 16
_SLOWEST_BUILD = 20.0
_BUILD_FLOOR_SECS = 3.0
_IMPROVEMENT = 0.005
"""A trial counts as better when it is so by this share: less is noise."""


@dataclass(slots=True)
class TuneTask:
    """A task while the engine works on it."""

    id: int
    run_id: int
    target_id: int
    machine_id: int
    info: WorkloadInfo
    mod: IRModule
    workload_hash: str
    weight: int
    target_json: str
    limits: Limits
    folder: Path
    """Holds the task's inputs and reference output."""
    guide: Guide | None = None
    search: TaskSearch | None = None
    trials: int = 0
    valid: int = 0
    rounds: int = 0
    since_better: int = 0
    round_secs: float = 0.0
    """What building and measuring the last round took."""
    best_secs: float | None = None
    best_by_round: list[float] = field(default_factory=list)
    pairs: list[tuple[float, float]] = field(default_factory=list)
    """Predicted and measured seconds of every valid trial that had a prediction."""
    failures: dict[str, int] = field(default_factory=lambda: {str(status): 0 for status in FAILURES})
    ended: str | None = None
    """Why it gets no more trials; None while it may."""
    baselined: bool = False
    _build_secs: deque[float] = field(default_factory=lambda: deque(maxlen=256))

    @property
    def inputs_path(self) -> Path:
        return self.folder / "inputs.npz"

    @property
    def reference_path(self) -> Path:
        return self.folder / "reference.npy"

    def job(self, mod: IRModule, *, prepacked: bool = True) -> Job:
        """The job that builds and measures a module of this task."""
        return Job(module_to_text(mod), self.target_json, prepacked)

    def leaders(self, store: Store, limit: int) -> list[Trial]:
        """The fastest trials of this run that are not known to be wrong, best first."""
        return store.top_trials(
            self.workload_hash, target_id=self.target_id, machine_id=self.machine_id, limit=limit,
            run_id=self.run_id,
        )  # fmt: skip

    def progress(self) -> TaskProgress:
        """What the scheduler of tasks looks at."""
        return TaskProgress(
            self.weight, self.info.flops, tuple(self.best_by_round), self.rounds, self.ended is None
        )

    def limits_now(self) -> Limits:
        """The limits, with a build given up after many times what builds of this task usually take.

        A few schedules, unrolled very far, keep LLVM busy for a minute; one of them costs as much as a
        hundred others, and kernels that large are not the fast ones.
        """
        if len(self._build_secs) < _ENOUGH_BUILDS:
            return self.limits
        usual = _SLOWEST_BUILD * statistics.median(self._build_secs)
        return replace(self.limits, build_cpu_secs=max(usual, _BUILD_FLOOR_SECS))

    def count(self, trial: Trial) -> None:
        """Take in one trial, of this run or (on resuming) of before."""
        self.trials += 1
        if trial.build_secs is not None:
            self._build_secs.append(trial.build_secs)
        self.since_better += 1
        if trial.status in FAILURES:
            self.failures[trial.status] += 1
        if trial.status is TrialStatus.OK and trial.best_of is not None:
            self.valid += 1
            if trial.predicted_secs is not None:
                self.pairs.append((trial.predicted_secs, trial.best_of))
            if self.best_secs is None or trial.best_of < self.best_secs * (1 - _IMPROVEMENT):
                self.since_better = 0
            self.best_secs = min(trial.best_of, self.best_secs or trial.best_of)

    def close_round(self) -> None:
        """Note where the task stands after a round."""
        self.rounds += 1
        if self.best_secs is not None:
            self.best_by_round.append(self.best_secs)

    def start_from(self, trials: list[Trial], *, budget_secs: float) -> int:
        """Prime search and guide with stored trials, best first; return how many could be used.

        Trials whose trace no longer applies (another TVM wrote it) are passed over, and the rest of them
        too once `budget_secs` is spent; none of these is proposed again as long as its hash is known.
        """
        assert self.search is not None and self.guide is not None
        for trial in trials:
            self.search.mark_seen(trial.module_hash)
        deadline = time.monotonic() + budget_secs
        schedules: list[Any] = []
        secs: list[float | None] = []
        for trial in sorted(trials, key=_speed)[:_LEARN_AT_MOST]:
            if time.monotonic() > deadline:
                break
            try:
                schedule = self.search.replay(trial.trace_json)
            except ValueError:
                continue
            schedules.append(schedule)
            secs.append(trial.best_of)
            if trial.run_secs:
                self.search.add_measured(schedule, trial.run_secs)
        self.guide.learn(schedules, secs, budget_secs=budget_secs)
        return len(schedules)


def _speed(trial: Trial) -> float:
    return trial.best_of if trial.best_of is not None else float("inf")
