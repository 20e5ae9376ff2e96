"""One task of a run as a viewer shows it: exact counts, thinned series. Times are seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tuneassist.records import FAILURES, Trial, TrialStatus
from tuneassist.ui.series import Thinned, tail

NEWEST_POINTS = 128
TOP = 8


class ScatterPoint(NamedTuple):
    """One valid trial that had a prediction."""

    predicted_secs: float
    measured_secs: float


class BestPoint(NamedTuple):
    """The best latency from this trial on."""

    trial: int
    """Trials of the task so far."""
    elapsed_secs: float
    best_secs: float


class QualityPoint(NamedTuple):
    """How well the cost model ordered one round."""

    round: int
    spearman: float | None
    pairwise_accuracy: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Trials by how they ended."""

    ok: int = 0
    build_error: int = 0
    build_timeout: int = 0
    run_error: int = 0
    run_timeout: int = 0
    duplicate: int = 0

    def add(self, status: TrialStatus) -> Counts:
        """Return the counts with one trial more."""
        name = status.value
        return replace(self, **{name: getattr(self, name) + 1})

    @property
    def failed(self) -> int:
        """Trials that ended in an error or a time-out."""
        return self.build_error + self.build_timeout + self.run_error + self.run_timeout

    @property
    def total(self) -> int:
        """All trials."""
        return self.ok + self.failed + self.duplicate

    def by_failure(self) -> tuple[tuple[str, int], ...]:
        """Kinds of failure that happened, with their counts."""
        pairs = ((status.value, int(getattr(self, status.value))) for status in FAILURES)
        return tuple((name, count) for name, count in pairs if count)


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task as the run goes on."""

    task_id: int
    name: str
    workload: str = ""
    op: str = ""
    weight: int = 1
    flops: int = 0
    earlier_trials: int = 0
    """Trials that the store held when the viewer's stream began and that it does not contain."""
    counts: Counts = Counts()
    top: tuple[tuple[float, int], ...] = ()
    """(seconds, ordinal) of the fastest trials not known to be wrong, best first."""
    untuned_secs: float | None = None
    pytorch_secs: float | None = None
    baseline_errors: tuple[tuple[str, str], ...] = ()
    confirmed: tuple[tuple[int, float, bool | None], ...] = ()
    """(ordinal, seconds, output correct) of each trial measured again at the end."""
    ended: str = ""
    """Why it gets no more trials; empty while it does."""
    detail: str = ""
    round: int = 0
    points: Thinned[ScatterPoint] = field(default_factory=Thinned)
    newest: tuple[ScatterPoint, ...] = ()
    """Points of the newest round, also among `points` unless thinned away."""
    best: Thinned[BestPoint] = field(default_factory=Thinned)
    quality: Thinned[QualityPoint] = field(default_factory=lambda: Thinned(cap=256))

    @property
    def best_secs(self) -> float | None:
        """The best latency so far."""
        return self.top[0][0] if self.top else None

    @property
    def best_trial(self) -> int | None:
        """Ordinal of the best trial within the run."""
        return self.top[0][1] if self.top else None

    @property
    def trials(self) -> int:
        """Trials of this task, those before the stream included."""
        return self.earlier_trials + self.counts.total

    @property
    def gflops(self) -> float | None:
        """Throughput of the best trial."""
        return self.flops / self.best_secs / 1e9 if self.best_secs and self.flops else None

    def speedup(self, baseline_secs: float | None) -> float | None:
        """How many times faster than a baseline the best trial is."""
        return baseline_secs / self.best_secs if self.best_secs and baseline_secs else None


def positive(value: Any) -> float | None:
    """The value as a positive finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None


def with_trial(task: TaskState, trial: Trial, elapsed_secs: float) -> TaskState:
    """Return the task with one trial more."""
    task = replace(task, counts=task.counts.add(trial.status))
    if trial.round != task.round:
        task = replace(task, round=trial.round, newest=())
    measured = positive(trial.best_of)
    if trial.status is not TrialStatus.OK or measured is None:
        return task
    predicted = positive(trial.predicted_secs)
    if predicted is not None:
        point = ScatterPoint(predicted, measured)
        task = replace(task, points=task.points.add(point), newest=tail(task.newest, point, NEWEST_POINTS))
    if trial.correct is False:
        return task
    return _with_top(task, (*task.top, (measured, trial.ordinal)), elapsed_secs)


def with_confirmation(
    task: TaskState, ordinal: int, secs: float, correct: bool | None, elapsed_secs: float
) -> TaskState:
    """Return the task after a top trial was measured again; a wrong output takes it out of the top."""
    task = replace(task, confirmed=(*task.confirmed, (ordinal, secs, correct))[-TOP:])
    others = tuple(entry for entry in task.top if entry[1] != ordinal)
    return _with_top(task, others if correct is False else (*others, (secs, ordinal)), elapsed_secs)


def _with_top(task: TaskState, top: tuple[tuple[float, int], ...], elapsed_secs: float) -> TaskState:
    before = task.best_secs
    task = replace(task, top=tuple(sorted(top)[:TOP]))
    now = task.best_secs
    if now is None or now == before:
        return task
    return replace(task, best=task.best.add(BestPoint(task.trials, elapsed_secs, now)))
