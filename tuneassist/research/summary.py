"""Tables over many scores: means with spread, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuneassist.research.evaluate import Score

HEADLINE = ("pairwise_accuracy", "spearman", "top_1", "top_5", "top_10", "rmse_log", "calibration")


@dataclass(frozen=True, slots=True)
class Mean:
    """A metric of a model over workloads.

    Attributes:
        mean: Over workloads, seeds averaged first.
        error: Standard error of that mean over workloads.
        seeds: Standard deviation of the mean between seeds; None with one seed.
        count: Workloads.
    """

    mean: float
    error: float
    seeds: float | None
    count: int


def means(scores: Sequence[Score], metric: str, *, model: str, shots: int) -> Mean | None:
    """The mean of one metric; None where no workload has it."""
    table = _table(scores, metric, model, shots)
    if not table:
        return None
    by_workload = np.array([np.mean(list(values.values())) for values in table.values()])
    seeds = sorted({seed for values in table.values() for seed in values})
    by_seed = [
        np.mean([values[seed] for values in table.values() if seed in values]) for seed in seeds
    ]  # fmt: skip
    return Mean(
        float(by_workload.mean()), _error(by_workload),
        float(np.std(by_seed, ddof=1)) if len(seeds) > 1 else None, len(by_workload),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one model is than another on the same workloads.

    Attributes:
        mean: Of the paired differences.
        error: Standard error of that mean.
        better: Workloads on which the first is better.
        count: Workloads.
    """

    mean: float
    error: float
    better: int
    count: int


def difference(
    scores: Sequence[Score], metric: str, *, model: str, against: str, shots: int
) -> Difference | None:
    """Paired difference of a metric (higher is better), workload by workload, seeds averaged."""
    first, second = _table(scores, metric, model, shots), _table(scores, metric, against, shots)
    shared = [name for name in first if name in second]
    if not shared:
        return None
    values = np.array([np.mean(list(first[n].values())) - np.mean(list(second[n].values())) for n in shared])
    return Difference(float(values.mean()), _error(values), int((values > 0).sum()), len(values))


def _table(scores: Sequence[Score], metric: str, model: str, shots: int) -> dict[str, dict[int, float]]:
    """Values by workload and seed."""
    found: dict[str, dict[int, float]] = {}
    for score in scores:
        value = score.metrics.get(metric)
        if score.model == model and score.shots == shots and value is not None:
            found.setdefault(score.workload, {})[score.seed] = value
    return found


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
