"""Rankers that are trained on many workloads, before any run; wider than those that learn within one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.base import Array, Ranker
from tuneassist.cost_model.registry import COPIES, MODULE_KINDS, row_ranker
from tuneassist.cost_model.replay import Examples
from tuneassist.cost_model.stack import StackedRanker
from tuneassist.cost_model.transfer import MeanRanker, TransferredRanker
from tuneassist.errors import UsageError

BASES = ("gnn", "gcn", "mlp", "tree", "context-relation", "per-store", "estimate", "random")
"""`gnn` is the mean of a graph network and trees; `estimate` is the analytic estimate alone."""
EPOCHS = 14
_WIDTH = 64
_TREES = 250


class FixedRanker:
    """Learns nothing: the analytic estimate as it is (`estimate`), or chance (`random`)."""

    def __init__(self, kind: str, *, seed: int) -> None:
        self.kind = kind
        self._random = np.random.default_rng(seed)

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        return {"kind": self.kind}

    def inputs(self, graphs: Sequence[Any]) -> int:
        """How many there are."""
        return len(graphs)

    def correction(self, inputs: int) -> Array:
        """Return (n,) zeros, or noise that drowns the estimate."""
        return np.zeros(inputs) if self.kind == "estimate" else 1e3 * self._random.random(inputs)

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Learn nothing."""

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over nothing."""


def base_ranker(
    kind: str, *, seed: int = 0, threads: int = 1, epochs: int = EPOCHS, **network: Any
) -> Ranker:
    """A ranker to train on many workloads.

    Args:
        kind: One of `BASES`.
        seed: Decides first weights and training.
        threads: Threads that it may use.
        epochs: Passes of a network over all examples.
        network: Fields of `NetworkSettings` to set otherwise.

    Raises:
        UsageError: There is no such kind.
    """
    if kind in ("estimate", "random"):
        return FixedRanker(kind, seed=seed)
    if kind in MODULE_KINDS:
        return row_ranker(kind, seed, threads)
    if kind == "tree":
        from tuneassist.cost_model.tree import TreeRanker

        return TreeRanker(seed=seed, threads=threads, rounds=_TREES)
    if kind == "gnn":
        parts = (
            _network(kind, seed, threads, epochs, network),
            base_ranker("tree", seed=seed, threads=threads),
        )
        return MeanRanker(kind, parts)
    if kind in ("gcn", "mlp"):
        return _network(kind, seed, threads, epochs, network)
    raise UsageError(f"There is no cost model {kind!r} to train.", remedy=f"Known: {', '.join(BASES)}.")


def _network(kind: str, seed: int, threads: int, epochs: int, fields: dict[str, Any]) -> Ranker:
    from tuneassist.cost_model.neural import PRESETS, NetworkRanker
    from tuneassist.cost_model.training import TrainingSettings

    return NetworkRanker(
        kind,
        seed=seed,
        threads=threads,
        network=replace(PRESETS[kind], **{"width": _WIDTH, **fields}),
        training=TrainingSettings(epochs=epochs, batch_size=256, learning_rate=2e-3),
    )


def transferable(kind: str, *, seed: int = 0, threads: int = 1, epochs: int = EPOCHS) -> TransferredRanker:
    """A base of that kind, untrained as yet, with what learns on top of it within a run."""
    base = base_ranker(kind, seed=seed, threads=threads, epochs=epochs)
    return learning_on(base, seed=seed, threads=threads)


def learning_on(base: Ranker, *, seed: int, threads: int = 1) -> TransferredRanker:
    """A base, trained or to be trained, with what learns on top of it within a run."""
    residual = StackedRanker(base.kind, [_residual_maker(base.kind, seed, threads)], copies=COPIES)
    return TransferredRanker(base, residual)


def _residual_maker(kind: str, seed: int, threads: int) -> Any:
    """What makes copy number i of that which learns on top of a base."""
    if kind in MODULE_KINDS:
        return lambda copy: row_ranker(kind, seed + copy, threads)
    from tuneassist.cost_model.tree import TreeRanker

    return lambda copy: TreeRanker(seed=1009 * seed + copy, threads=threads)
