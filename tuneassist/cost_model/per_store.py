"""TVM's own features, one row for each buffer that the lowered module stores to: a baseline.

`PerStoreFeature` is what MetaSchedule's XGB model sees. It lowers each module first, which is what it costs.
With `RowTrees(COLUMN_COUNT, form="score")` the baseline is that model but for three things: it trains on as
few trials as there are (the stock model is random up to 100), for a fixed number of rounds (the stock model
stops on its training error), and with a weight for each trial beside the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tuneassist.cost_model.row_trees import Rows

if TYPE_CHECKING:
    from tuneassist.tvm_api import IRModule, Target

COLUMN_COUNT = 164
"""Of a row: TVM's defaults (5 buffers a store, 10 samples of the arithmetic intensity curve)."""


def features(mods: Sequence[IRModule], target: Target, *, threads: int = 1) -> list[Rows]:
    """Extract the features of scheduled modules.

    Args:
        mods: n of them, in block form.
        target: What they are scheduled for, which decides how they are lowered.
        threads: Threads that the extraction may use.

    Returns:
        For each module `values` (buffers stored to, COLUMN_COUNT) float32; no row where nothing is stored.
    """
    from tuneassist.tvm_api import Schedule, load_tensor_intrinsics, ms

    if not mods:
        return []
    load_tensor_intrinsics(target.kind.name)
    context = ms.TuneContext(target=target, num_threads=threads)
    candidates = [ms.search_strategy.MeasureCandidate(Schedule(mod), []) for mod in mods]
    found = ms.feature_extractor.PerStoreFeature().extract_from(context, candidates)
    return [Rows(_rows(tensor.numpy())) for tensor in found]


def _rows(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) if values.size else np.zeros((0, COLUMN_COUNT), np.float32)
