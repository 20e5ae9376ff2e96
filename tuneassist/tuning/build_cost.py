"""What a build will cost, learned from the builds of the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.graph import extract_batch
from tuneassist.cost_model.pooling import pool
from tuneassist.tvm_api import Schedule

_ENOUGH = 16
_RIDGE = 30.0
"""Strength of the penalty, in units of one standardised sample: there are more features than builds."""
_KEEP = 512

Array = npt.NDArray[np.float64]


class BuildCost:
    """Ridge regression of the log of CPU seconds on a schedule's pooled AST features.

    LLVM's time has a heavy tail: a tenth of the schedules, unrolled very far, takes a third of it.

    Args:
        cores: Cores of the target.
    """

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._features: list[Array] = []
        self._log_secs: list[float] = []

    def learn(self, schedules: Sequence[Schedule], secs: Sequence[float | None]) -> None:
        """Take in builds and their CPU seconds (None: did not end)."""
        done = [(schedule, value) for schedule, value in zip(schedules, secs, strict=True) if value]
        if done:
            self._features += list(self._pooled([schedule for schedule, _ in done]))
            self._log_secs += [float(np.log(value)) for _, value in done]
            del self._features[:-_KEEP], self._log_secs[:-_KEEP]

    def ratios(self, schedules: Sequence[Schedule]) -> Array:
        """(n,) predicted cost as a multiple of the median build; ones while too few builds are known."""
        if len(self._log_secs) < _ENOUGH or not schedules:
            return np.ones(len(schedules))
        known, target = np.array(self._features), np.array(self._log_secs)
        mean, scale = known.mean(axis=0), known.std(axis=0) + 1e-6
        x = (known - mean) / scale
        # Fewer rows than columns: solve in the space of rows.
        dual = np.linalg.solve(x @ x.T + _RIDGE * np.eye(len(x)), target - target.mean())
        log_secs = (self._pooled(schedules) - mean) / scale @ (x.T @ dual) + target.mean()
        return np.asarray(np.exp(log_secs - np.median(target)), dtype=np.float64)

    def _pooled(self, schedules: Sequence[Schedule]) -> Array:
        return pool(extract_batch([schedule.mod for schedule in schedules], self._cores)).astype(np.float64)
