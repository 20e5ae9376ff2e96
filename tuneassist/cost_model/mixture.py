"""How the log times of one workload are distributed: one normal distribution, or several.

Tomczak et al. (2019) found execution times to look like a Gaussian mixture, whose components of low
probability are the hard ones to predict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuneassist.errors import UsageError

Array = npt.NDArray[np.float64]

MIN_TRIALS = 20
"""Fewer do not tell one component from two, and the normality test holds from here on."""
MAX_COMPONENTS = 6
_NARROWEST = 0.04
"""Standard deviation in log time that repeats of one kernel show: no component is narrower than noise."""
_SEED = 0
_STARTS = 3


@dataclass(frozen=True, slots=True)
class Mixture:
    """A Gaussian mixture of the natural log of seconds; components in order of their means, fastest first.

    Attributes:
        weights: (k,) share of each component.
        means: (k,)
        stds: (k,) standard deviations.
        bic: Bayesian information criterion (lower is better) of the mixture, the lowest of 1 to
            `MAX_COMPONENTS` components.
        normal_bic: That of one normal distribution.
        normality_p: p-value of D'Agostino and Pearson's test that log times are normal.
    """

    weights: Array
    means: Array
    stds: Array
    bic: float
    normal_bic: float
    normality_p: float

    @property
    def components(self) -> int:
        """k, how many components."""
        return len(self.weights)

    def densities(self, log_secs: npt.ArrayLike) -> Array:
        """Return (n, k): each component's share of the density at (n,) log times."""
        values = np.asarray(log_secs, dtype=np.float64)[:, None]
        scaled = (values - self.means) / self.stds
        result: Array = self.weights / (self.stds * np.sqrt(2 * np.pi)) * np.exp(-0.5 * scaled**2)
        return result

    def component(self, log_secs: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return (n,): the component that each of (n,) log times most likely belongs to."""
        values = np.asarray(log_secs, dtype=np.float64)[:, None]
        # In logs: far from all components, every density underflows.
        logs = np.log(self.weights / self.stds) - 0.5 * ((values - self.means) / self.stds) ** 2
        chosen: npt.NDArray[np.int64] = np.argmax(logs, axis=1)
        return chosen


def fit_mixture(log_secs: npt.ArrayLike) -> Mixture:
    """Fit mixtures of 1 to `MAX_COMPONENTS` components and return the one of the lowest BIC.

    Args:
        log_secs: (n,) natural logs of seconds of the valid trials of one workload.

    Raises:
        UsageError: There are fewer than `MIN_TRIALS`, or all are equal.
    """
    from scipy import stats
    from sklearn.mixture import GaussianMixture

    values = np.asarray(log_secs, dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < MIN_TRIALS:
        raise UsageError(
            f"{len(values)} valid trials are too few for a distribution: it takes {MIN_TRIALS}.",
            remedy="Measure more of this workload.",
        )
    if np.ptp(values) < 1e-9:
        raise UsageError(
            f"All {len(values)} valid trials took the same time, {np.exp(values[0]):.3g} s.",
            remedy="Measure different schedules; times that are all equal have no distribution.",
        )
    column = values[:, None]
    fits = [
        GaussianMixture(k, n_init=_STARTS, reg_covar=_NARROWEST**2, random_state=_SEED).fit(column)
        for k in range(1, min(MAX_COMPONENTS, len(np.unique(values))) + 1)
    ]
    scores = [float(fit.bic(column)) for fit in fits]
    best = fits[int(np.argmin(scores))]
    order = np.argsort(best.means_[:, 0])
    return Mixture(
        weights=best.weights_[order],
        means=best.means_[order, 0],
        stds=np.sqrt(best.covariances_[order, 0, 0]),
        bic=min(scores),
        normal_bic=scores[0],
        normality_p=float(stats.normaltest(values).pvalue),
    )
