"""Judges cost models on held-out workloads: all models see the same rows, splits and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.base import Ranker
from tuneassist.cost_model.bases import learning_on
from tuneassist.cost_model.learned import LearnedCostModel
from tuneassist.cost_model.metrics import by_component, evaluate
from tuneassist.cost_model.mixture import fit_mixture
from tuneassist.cost_model.replay import Examples, Replay
from tuneassist.errors import UsageError
from tuneassist.research.folds import Fold
from tuneassist.research.samples import WorkloadSamples

SHOTS = (0, 8, 16, 32)
"""Trials of the new workload that a model may learn from before it is judged on the others."""
NO_LIMIT_SECS = 1e9
_JUDGED_AT_LEAST = 20


@dataclass(frozen=True, slots=True)
class Score:
    """How one model did on one held-out workload.

    Attributes:
        split, fold, workload: What was held out.
        model: Its kind, or a variant's name.
        seed: Of the model and of the choice of shots.
        shots: Trials of the workload that it had seen.
        metrics: By name; see `metrics.evaluate`.
        components: The same within each component of the mixture of log times (only for 0 shots).
    """

    split: str
    fold: str
    workload: str
    model: str
    seed: int
    shots: int
    metrics: dict[str, float | None]
    components: tuple[dict[str, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """Predictions for one workload, for plots."""

    workload: str
    model: str
    predicted_secs: npt.NDArray[np.float64]
    measured_secs: npt.NDArray[np.float64]


def examples(workloads: Sequence[WorkloadSamples]) -> Examples:
    """All trials of these workloads, to train on."""
    return _replay(workloads).examples()


def judge(
    fold: Fold, name: str, base: Ranker, *, seed: int, shots: Sequence[int] = SHOTS,
    told: Callable[[Judged], None] = lambda judged: None,
) -> list[Score]:  # fmt: skip
    """Train a base on a fold and judge it on what is held out.

    Few-shot figures are those of the base and of what learns on top of it within a run (`transfer.py`),
    from `shots` trials drawn at random; they are left out of the judgement.

    Args:
        fold: What to train on and what to judge on.
        name: The model's, in the scores.
        base: Untrained.
        seed: Draws the shots.
        shots: How many.
        told: Takes the predictions without shots.
    """
    replay = _replay(fold.train)
    base.fit(replay.examples(), budget_secs=NO_LIMIT_SECS)
    level = common_level(base, fold.train)
    scores = []
    for workload in fold.test:
        order = np.random.default_rng([seed, len(workload.secs)]).permutation(len(workload.secs))
        for count in shots:
            if len(order) - count < _JUDGED_AT_LEAST:
                continue
            seen, left = workload.take(order[:count]), workload.take(order[count:])
            predicted = _predict(base, level, seen, left, seed)
            metrics = evaluate(predicted, left.secs)
            parts = () if count else _components(predicted, left.secs)
            scores.append(Score(fold.split, fold.name, workload.name, name, seed, count, metrics, parts))
            if not count:
                told(Judged(workload.name, name, predicted, left.secs))
    return scores


def _predict(
    base: Ranker, level: float, seen: WorkloadSamples, left: WorkloadSamples, seed: int
) -> npt.NDArray[np.float64]:
    model = LearnedCostModel(learning_on(base, seed=seed), level=level)
    if len(seen.secs):
        model.update(seen.key, seen.seen, seen.secs, budget_secs=NO_LIMIT_SECS)
    return model.predict(left.key, left.seen).secs


def common_level(base: Ranker, workloads: Sequence[WorkloadSamples]) -> float:
    """What to add to the log times of a workload that nothing was measured of."""
    levels = []
    for workload in workloads:
        valid = workload.measured()
        estimate = np.array([seen.log_estimate for seen in valid.seen])
        levels.append(
            float(np.mean(np.log(valid.secs) - estimate - base.correction(base.inputs(valid.seen))))
        )
    return float(np.mean(levels))


def _components(
    predicted: npt.NDArray[Any], measured: npt.NDArray[Any]
) -> tuple[dict[str, float | None], ...]:
    try:
        return tuple(by_component(predicted, measured, fit_mixture(np.log(measured))))
    except UsageError:
        return ()


def _replay(workloads: Sequence[WorkloadSamples]) -> Replay:
    replay = Replay()
    for workload in workloads:
        replay.add(workload.key, workload.seen, workload.secs)
    return replay
