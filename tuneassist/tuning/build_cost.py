"""What a build will cost, learned from the builds of the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.features import COLUMNS
from tuneassist.cost_model.graph import AstGraph, extract_batch
from tuneassist.cost_model.pooling import pool
from tuneassist.cost_model.syntax import TYPE_ID
from tuneassist.tvm_api import Schedule

_ENOUGH = 16
_RIDGE = 30.0
"""Strength of the penalty, in units of one standardised sample: there are more features than builds."""
_KEEP = 512
_SIZE_COLUMNS = tuple(
    COLUMNS.index(f"statement.{name}") for name in ("unrolled_by_tvm", "vector_registers", "loads")
)
_SIZE_EXPONENT = 0.2
"""How the time to build grows with the size, about: measured on conv2d, where the sizes span four decades."""

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
        self._log_sizes: list[float] = []
        self._log_secs: list[float] = []

    def learn(self, schedules: Sequence[Schedule], secs: Sequence[float | None]) -> None:
        """Take in builds and their CPU seconds (None: did not end)."""
        done = [(schedule, value) for schedule, value in zip(schedules, secs, strict=True) if value]
        if done:
            graphs = self._graphs([schedule for schedule, _ in done])
            self._features += list(_pooled(graphs))
            self._log_sizes += [_log_size(graph) for graph in graphs]
            self._log_secs += [float(np.log(value)) for _, value in done]
            del self._features[:-_KEEP], self._log_sizes[:-_KEEP], self._log_secs[:-_KEEP]

    def ratios(self, schedules: Sequence[Schedule]) -> Array:
        """(n,) predicted cost as a multiple of the median: that of builds known, else that of these.

        The larger of what was learned and of what the size alone suggests: what was learned does not
        reach beyond the sizes that were built.
        """
        graphs = self._graphs(schedules)
        log_sizes = np.array([_log_size(graph) for graph in graphs])
        if len(self._log_secs) < _ENOUGH or not graphs:
            by_size = log_sizes - np.median(log_sizes) if graphs else log_sizes
            return np.asarray(np.exp(_SIZE_EXPONENT * by_size), dtype=np.float64)
        by_size = _SIZE_EXPONENT * (log_sizes - np.median(self._log_sizes))
        learned = self._learned(_pooled(graphs)) - np.median(self._log_secs)
        return np.asarray(np.exp(np.maximum(by_size, learned)), dtype=np.float64)

    def _learned(self, features: Array) -> Array:
        """(n,) natural log of CPU seconds."""
        known, target = np.array(self._features), np.array(self._log_secs)
        mean, scale = known.mean(axis=0), known.std(axis=0) + 1e-6
        x = (known - mean) / scale
        # Fewer rows than columns: solve in the space of rows.
        dual = np.linalg.solve(x @ x.T + _RIDGE * np.eye(len(x)), target - target.mean())
        return np.asarray((features - mean) / scale @ (x.T @ dual) + target.mean(), dtype=np.float64)

    def _graphs(self, schedules: Sequence[Schedule]) -> list[AstGraph]:
        return extract_batch([schedule.mod for schedule in schedules], self._cores)


def _pooled(graphs: Sequence[AstGraph]) -> Array:
    return pool(graphs).astype(np.float64)


def _log_size(graph: AstGraph) -> float:
    """Natural log of the vector operations that the statements become once TVM has unrolled them."""
    x = graph.features
    found = np.isin(graph.types, [TYPE_ID["store"], TYPE_ID["call"]])
    unrolled, registers, loads = (np.exp2(x[found, column]) - 1.0 for column in _SIZE_COLUMNS)
    operations = np.sum(np.maximum(unrolled, 1.0) * np.maximum(registers, 1.0) * (1.0 + loads))
    return float(np.log1p(operations))
