"""How well predictions order what was measured, without SciPy, which takes a viewer too long to import."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rank_figures(predicted: Floats, measured: Floats) -> tuple[float | None, float | None]:
    """Spearman's rank correlation and pairwise accuracy of predictions, both (num_trials,).

    Pairs with equal measurements are left out. Both are None where they are undefined.
    """
    if len(predicted) < 2:
        return None, None
    ranks = [_ranks(values) for values in (predicted, measured)]
    spread = [float(rank.std()) for rank in ranks]
    rho = None
    if min(spread) > 0:
        rho = float(
            np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())) / (spread[0] * spread[1])
        )
    upper = np.triu_indices(len(predicted), k=1)
    order = np.sign(measured[upper[0]] - measured[upper[1]])
    said = np.sign(predicted[upper[0]] - predicted[upper[1]])
    decided = order != 0
    pairs = float(np.mean(order[decided] == said[decided])) if decided.any() else None
    return rho, pairs


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, equal values sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts + 1) / 2)[inverse]
    return ranks
