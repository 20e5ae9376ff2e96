"""Strata of schedules: what random sampling hits seldom, and what decides how fast a kernel is.

Random schedules crowd where most decisions lead; the fast ones are few (vector widths that fill the
machine's registers above all). A data set drawn at random alone teaches a model little about them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.pooling import POOLED_COLUMNS, pool

Stratum = tuple[int, ...]

_VECTOR, _FILLS, _UNROLLED, _PARALLEL = (
    POOLED_COLUMNS.index(f"main.{name}")
    for name in ("vector", "vector_fills_registers", "unrolled", "parallel")
)
_UNROLL_STEP = 2.0
"""Doublings of the unrolled body that fall into one stratum."""


def strata(graphs: Sequence[AstGraph]) -> list[Stratum]:
    """The stratum of each schedule: vector width, unrolling and parallel extent of its main statement."""
    pooled = pool(graphs)
    keys = np.stack(
        [
            np.round(pooled[:, _VECTOR]), np.round(pooled[:, _FILLS]),
            np.floor(pooled[:, _UNROLLED] / _UNROLL_STEP), np.round(pooled[:, _PARALLEL]),
        ],
        axis=1,
    ).astype(int)  # fmt: skip
    return [tuple(key) for key in keys.tolist()]


def pick_evenly(keys: Sequence[Stratum], count: int, taken: Counter[Stratum]) -> list[int]:
    """Positions of up to `count` schedules, each from the stratum that has the fewest so far.

    Args:
        keys: The stratum of each schedule.
        count: How many are wanted.
        taken: How many of each stratum were picked before; brought up to date.
    """
    waiting: dict[Stratum, list[int]] = {}
    for position, key in enumerate(keys):
        waiting.setdefault(key, []).append(position)
    picked: list[int] = []
    while waiting and len(picked) < count:
        rarest = min(waiting, key=lambda key: (taken[key], waiting[key][0]))
        picked.append(waiting[rarest].pop(0))
        taken[rarest] += 1
        if not waiting[rarest]:
            del waiting[rarest]
    return picked
