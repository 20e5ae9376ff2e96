"""Cycles of a statement from what its features say: the ranking before anything is learned.

A throughput bound in the manner of the roofline model (Williams et al., CACM 2009): arithmetic and
loads overlap, cache misses and loop control do not. The constants are round figures of a current
out-of-order x86-64 core.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CLOCK_HZ = 4e9
"""Turns cycles into seconds until measurements give the level."""

_ARITHMETIC = 0.5
_MEMORY = 0.75
_LOOP = 0.75
_L1_MISS, _L2_MISS, _L3_MISS = 1.0, 3.0, 20.0
"""Cycles for a line that comes from the next level; much of the latency is hidden."""
_FETCH = 0.5
_CODE_LIMIT = 2000.0
"""Instructions of straight-line code that the decoded-instruction caches hold, about."""


def cycles(
    *,
    iterations: Array,
    arithmetic: Array,
    memory: Array,
    spill: Array,
    straight_line: Array,
    loop_passes: Array,
    lines: Array,
    share: Array,
) -> Array:
    """Estimate each statement's cycles on the busiest core.

    Args:
        iterations: (S,) vector iterations (scalar ones where nothing is vectorised).
        arithmetic: (S,) arithmetic instructions executed.
        memory: (S,) loads and stores executed.
        spill: (S,) accumulators over vector registers, at least 1.
        straight_line: (S,) vector iterations in one pass of the unrolled code.
        loop_passes: (S,) passes of it.
        lines: (S, 3) cache lines fetched into L1, L2 and L3.
        share: (S,) of the work that the busiest core does.
    """
    computes = arithmetic > 0
    spilled = np.where(computes, iterations * (1.0 - 1.0 / spill), 0.0)
    code = straight_line * (arithmetic + memory) / iterations
    fetch = np.where(computes, iterations * np.minimum(code / _CODE_LIMIT, 1.0), 0.0)
    busy = np.maximum(_ARITHMETIC * arithmetic, _MEMORY * (memory + spilled))
    misses = lines @ np.array([_L1_MISS, _L2_MISS, _L3_MISS])
    total: Array = share * (busy + _LOOP * loop_passes + misses + _FETCH * fetch)
    return total
