"""All trials that a model has seen, as examples to train on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.graph import AstGraph

Array = npt.NDArray[np.float64]

FAILED_PENALTY = float(np.log(2.0))
"""A failed trial ranks as if it took twice as long as the slowest that ran."""
FAST_WEIGHT = 3.0
"""The fastest schedule weighs 1 + this much as often as the slowest."""
FAST_SCALE = 0.7
"""Distance from the fastest, in log time, over which that falls to 1/e."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Trials of any number of workloads.

    Attributes:
        graphs: n of them.
        target: (n,) natural log of seconds less the mean of the workload's successful trials.
        estimate: (n,) natural log of the analytic estimate.
        failed: (n,) the target is only a rank: it failed, and was given a time slower than all others.
        workload: (n,) number of the workload.
        ordinal: (n,) position among the trials of the workload; it never changes.
        weight: (n,) more where fast schedules are.
    """

    graphs: list[AstGraph]
    target: Array
    estimate: Array
    failed: npt.NDArray[np.bool_]
    workload: npt.NDArray[np.int64]
    ordinal: npt.NDArray[np.int64]
    weight: Array

    def where(self, chosen: npt.NDArray[np.bool_]) -> Examples:
        """Those chosen, (n,), in the same order."""
        return Examples(
            [graph for graph, keep in zip(self.graphs, chosen, strict=True) if keep],
            self.target[chosen], self.estimate[chosen], self.failed[chosen], self.workload[chosen],
            self.ordinal[chosen], self.weight[chosen],
        )  # fmt: skip

    def centred(self, values: Array) -> Array:
        """(n,) values less their weighted mean over the successful trials of the workload."""
        mass = self.weight * ~self.failed
        total = np.bincount(self.workload, mass * values)
        count = np.bincount(self.workload, mass)
        result: Array = values - (total / np.maximum(count, 1e-9))[self.workload]
        return result


@dataclass(slots=True)
class _Trials:
    graphs: list[AstGraph] = field(default_factory=list)
    secs: list[float] = field(default_factory=list)


class Replay:
    """Trials by workload, in the order in which they came."""

    def __init__(self) -> None:
        self._seen: dict[str, _Trials] = {}

    def add(self, workload_hash: str, graphs: Sequence[AstGraph], secs: npt.ArrayLike) -> None:
        """Keep trials of a workload; seconds that are not finite and positive are failures."""
        values = np.asarray(secs, dtype=np.float64)
        if values.shape != (len(graphs),):
            raise ValueError(f"{len(graphs)} graphs need as many seconds, not an array {values.shape}")
        values = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        trials = self._seen.setdefault(workload_hash, _Trials())
        trials.graphs.extend(graphs)
        trials.secs.extend(values.tolist())

    def trials(self, workload_hash: str) -> tuple[list[AstGraph], Array]:
        """All trials of a workload: n graphs and (n,) seconds, nan where failed."""
        trials = self._seen.get(workload_hash, _Trials())
        return list(trials.graphs), np.array(trials.secs, dtype=np.float64)

    def measured(self, workload_hash: str) -> tuple[list[AstGraph], Array]:
        """The successful trials of a workload: n graphs and (n,) seconds."""
        graphs, secs = self.trials(workload_hash)
        known = np.isfinite(secs)
        return [g for g, ok in zip(graphs, known, strict=True) if ok], secs[known]

    @property
    def workloads(self) -> list[str]:
        """Hashes of the workloads with at least one successful trial."""
        return [key for key, trials in self._seen.items() if np.isfinite(trials.secs).any()]

    def examples(self) -> Examples:
        """Everything that can be learned from; workloads without a successful trial teach nothing."""
        parts: list[Examples] = []
        for number, key in enumerate(self.workloads):
            trials = self._seen[key]
            log_secs = np.log(np.array(trials.secs, dtype=np.float64))
            failed = np.isnan(log_secs)
            target = np.where(failed, log_secs[~failed].max() + FAILED_PENALTY, log_secs)
            parts.append(
                Examples(
                    graphs=trials.graphs,
                    target=target - log_secs[~failed].mean(),
                    estimate=np.array([graph.log_estimate for graph in trials.graphs]),
                    failed=failed,
                    workload=np.full(len(target), number),
                    ordinal=np.arange(len(target)),
                    weight=1.0 + FAST_WEIGHT * np.exp((target.min() - target) / FAST_SCALE),
                )
            )
        return _joined(parts)


def _joined(parts: Sequence[Examples]) -> Examples:
    def all_of(name: str, dtype: type) -> npt.NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])

    return Examples(
        graphs=[graph for part in parts for graph in part.graphs],
        target=all_of("target", np.float64),
        estimate=all_of("estimate", np.float64),
        failed=all_of("failed", np.bool_),
        workload=all_of("workload", np.int64),
        ordinal=all_of("ordinal", np.int64),
        weight=all_of("weight", np.float64),
    )
