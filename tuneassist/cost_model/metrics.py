"""How a cost model is judged on the trials of one task. All figures are None where they have no meaning.

`predicted` and `measured` are seconds (lower is faster), (n,) both; entries that are not finite are left
out. To judge a score where higher is better, pass its negative.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from tuneassist.cost_model.mixture import Mixture

Values = npt.ArrayLike
Array = npt.NDArray[np.float64]

NOISE = 0.04
"""Pairs whose measurements differ by less than this share are not counted: the usual spread of repeats."""
CALIBRATION_FACTOR = 1.5
"""A prediction within this factor of what was measured counts as calibrated."""


def pairwise_accuracy(predicted: Values, measured: Values, *, noise: float = NOISE) -> float | None:
    """Share of pairs that the model orders as measured; equal predictions count half.

    Args:
        predicted: What the model says.
        measured: What was measured.
        noise: Pairs with `slower / faster - 1` below it are left out.

    Returns:
        Between 0 and 1, or None if no pair is left.
    """
    p, m = _finite(predicted, measured)
    if len(p) < 2:
        return None
    i, j = np.triu_indices(len(p), k=1)
    low, high = np.minimum(m[i], m[j]), np.maximum(m[i], m[j])
    counted = (high > low) & (high - low >= noise * np.abs(low))
    if not counted.any():
        return None
    agreement = np.sign(p[i] - p[j]) * np.sign(m[i] - m[j])
    return float(((agreement[counted] + 1) / 2).mean())


def spearman(predicted: Values, measured: Values) -> float | None:
    """Spearman's rank correlation, or None with fewer than 2 values or all equal."""
    return _correlation(stats.spearmanr, predicted, measured)


def kendall(predicted: Values, measured: Values) -> float | None:
    """Kendall's tau-b, or None with fewer than 2 values or all equal."""
    return _correlation(stats.kendalltau, predicted, measured)


def top_k_score(predicted: Values, measured: Values, k: int) -> float | None:
    """Best measured / best measured among the k that the model ranks first; 1 is perfect."""
    p, m = _finite(predicted, measured)
    if not len(p) or k < 1:
        return None
    chosen = m[np.argsort(p, kind="stable")[:k]].min()
    return float(m.min() / chosen) if chosen > 0 else None


def rmse_log(predicted: Values, measured: Values) -> float | None:
    """Root mean square error of the natural logarithm of seconds."""
    p, m = _positive(predicted, measured)
    return float(np.sqrt(np.mean((np.log(p) - np.log(m)) ** 2))) if len(p) else None


def r2_log(predicted: Values, measured: Values) -> float | None:
    """R2 of log seconds, or None with fewer than 2 values or all measured equal."""
    p, m = _positive(predicted, measured)
    if len(p) < 2:
        return None
    target = np.log(m)
    spread = float(((target - target.mean()) ** 2).sum())
    return 1.0 - float(((np.log(p) - target) ** 2).sum()) / spread if spread > 0 else None


def mape(predicted: Values, measured: Values) -> float | None:
    """Mean of |predicted - measured| / measured."""
    p, m = _positive(predicted, measured)
    return float(np.mean(np.abs(p - m) / m)) if len(p) else None


def within_factor(predicted: Values, measured: Values, factor: float = CALIBRATION_FACTOR) -> float | None:
    """Calibration: the share of predictions within that factor of what was measured, either way."""
    p, m = _positive(predicted, measured)
    return float(np.mean(np.abs(np.log(p) - np.log(m)) <= np.log(factor))) if len(p) else None


def bias_log(predicted: Values, measured: Values) -> float | None:
    """Mean of log predicted less log measured: above 0, the model holds these for slower than they are."""
    p, m = _positive(predicted, measured)
    return float(np.mean(np.log(p) - np.log(m))) if len(p) else None


def evaluate(
    predicted: Values, measured: Values, *, ks: Sequence[int] = (1, 5, 10), noise: float = NOISE
) -> dict[str, float | None]:
    """All of the above by name."""
    return {
        "pairwise_accuracy": pairwise_accuracy(predicted, measured, noise=noise),
        "spearman": spearman(predicted, measured),
        "kendall": kendall(predicted, measured),
        **{f"top_{k}": top_k_score(predicted, measured, k) for k in ks},
        "rmse_log": rmse_log(predicted, measured),
        "r2_log": r2_log(predicted, measured),
        "mape": mape(predicted, measured),
        "calibration": within_factor(predicted, measured),
        "bias_log": bias_log(predicted, measured),
    }


def by_component(predicted: Values, measured: Values, mixture: Mixture) -> list[dict[str, float | None]]:
    """All of the above inside each component of the mixture fitted to the measured log times.

    A trial belongs to the component that most likely gave its measured time. A component that is rare
    hardly shows in figures over all trials; here it can't hide.

    Args:
        predicted: (n,) seconds.
        measured: (n,) seconds.
        mixture: Of the measured log seconds of the task.

    Returns:
        For each component, the fastest first: `mean_secs` and `weight`, `count` and `share` of the trials
        that belong to it, and the figures of `evaluate` among them alone. `pairwise_across` is the share
        of pairs of a member with a trial of another component that the model orders as measured.
    """
    p, m = _positive(predicted, measured)
    member = mixture.component(np.log(m))
    return [
        {
            "mean_secs": float(np.exp(mixture.means[k])),
            "weight": float(mixture.weights[k]),
            "count": int(np.sum(member == k)),
            "share": float(np.mean(member == k)) if len(m) else None,
            "pairwise_across": _accuracy_across(p, m, member == k),
            **evaluate(p[member == k], m[member == k]),
        }
        for k in range(mixture.components)
    ]


def _accuracy_across(p: Array, m: Array, inside: npt.NDArray[np.bool_]) -> float | None:
    """Pairwise accuracy over the pairs of one inside with one outside."""
    measured = m[inside][:, None] - m[~inside][None, :]
    low = np.minimum(m[inside][:, None], m[~inside][None, :])
    counted = (measured != 0) & (np.abs(measured) >= NOISE * np.abs(low))
    if not counted.any():
        return None
    agreement = np.sign(p[inside][:, None] - p[~inside][None, :]) * np.sign(measured)
    return float(((agreement[counted] + 1) / 2).mean())


def _finite(predicted: Values, measured: Values) -> tuple[Array, Array]:
    p, m = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if p.ndim != 1 or p.shape != m.shape:
        raise ValueError(f"predicted and measured must be (n,) both, not {p.shape} and {m.shape}")
    known = np.isfinite(p) & np.isfinite(m)
    return p[known], m[known]


def _positive(predicted: Values, measured: Values) -> tuple[Array, Array]:
    p, m = _finite(predicted, measured)
    known = (p > 0) & (m > 0)
    return p[known], m[known]


def _correlation(statistic: object, predicted: Values, measured: Values) -> float | None:
    p, m = _finite(predicted, measured)
    if len(p) < 2 or np.ptp(p) == 0 or np.ptp(m) == 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(statistic(p, m).statistic)  # type: ignore[operator]
    return value if np.isfinite(value) else None
