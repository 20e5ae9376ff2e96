"""Makes cost models by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuneassist.cost_model.base import CostModel, Ranker
from tuneassist.errors import UsageError

if TYPE_CHECKING:
    from tuneassist.cost_model.row_trees import Rows
    from tuneassist.tvm_api import IRModule, Target

KINDS = ("gnn", "gcn", "mlp", "tree", "ensemble")
"""Models that see an `AstGraph` of each candidate."""
MODULE_KINDS = ("context-relation", "per-store")
"""Baselines that see `Rows` of each candidate, which `module_rows` extracts."""
COPIES = 3
"""Copies of each ranker, each trained on all but every third trial of a workload."""
_SEEDS = 1009
"""Keeps the copies' seeds apart from those of another run's seed."""


def create_cost_model(kind: str, *, seed: int = 0, threads: int = 1) -> CostModel:
    """Return a fresh model, or one with the weights of a checkpoint.

    Args:
        kind: One of `KINDS` or `MODULE_KINDS`, or the path of a checkpoint.
        seed: Decides first weights and training.
        threads: Threads that the model may use. It uses one: its tensors are so small that a second
            hardly helps on an idle machine, and waits for its turn on a busy one.

    Raises:
        UsageError: The kind names neither a model nor a usable checkpoint.
    """
    from tuneassist.cost_model.learned import LearnedCostModel

    known = (*KINDS, *MODULE_KINDS)
    if kind in known:
        return LearnedCostModel(_ranker(kind, seed, min(threads, 1)))
    if not Path(kind).is_file():
        raise UsageError(
            f"{kind!r} is neither a cost model nor a file.",
            remedy=f"Use one of {', '.join(known)}, or the path of a checkpoint.",
        )
    from tuneassist.cost_model import checkpoint

    named = str(checkpoint.header(kind)["architecture"].get("kind"))
    if named not in known:
        raise UsageError(
            f"The checkpoint {kind} holds a model of kind {named!r}, which this version does not know.",
            remedy=f"Known kinds: {', '.join(known)}.",
        )
    if checkpoint.header(kind)["architecture"].get("transferred"):
        from tuneassist.cost_model.bases import transferable

        ranker: Ranker = transferable(named, seed=seed, threads=min(threads, 1))
    else:
        ranker = _ranker(named, seed, min(threads, 1))
    model = LearnedCostModel(ranker)
    model.load(kind)
    return model


def module_rows(kind: str, mods: Sequence[IRModule], target: Target, *, threads: int = 1) -> list[Rows]:
    """What a model of one of `MODULE_KINDS` sees of each scheduled module."""
    if kind == "per-store":
        from tuneassist.cost_model import per_store

        return per_store.features(mods, target, threads=threads)
    from tuneassist.cost_model import context_relation

    return context_relation.features(mods)


def _ranker(kind: str, seed: int, threads: int) -> Ranker:
    if kind in MODULE_KINDS:
        return row_ranker(kind, seed, threads)
    from tuneassist.cost_model.stack import StackedRanker

    parts = {"ensemble": ("gcn", "tree"), "gnn": ("gnn", "tree")}.get(kind, (kind,))
    makers = [_maker(part, seed, threads) for part in parts]
    return StackedRanker(kind, makers, copies=COPIES)


def row_ranker(kind: str, seed: int, threads: int) -> Ranker:
    """A baseline's ranker, which sees `Rows`."""
    from tuneassist.cost_model import context_relation, per_store
    from tuneassist.cost_model.row_trees import RowRanker

    seed *= _SEEDS
    if kind == "per-store":
        return RowRanker(kind, per_store.COLUMN_COUNT, form="score", seed=seed, threads=threads)
    return RowRanker(kind, len(context_relation.COLUMNS), form="log", seed=seed, threads=threads)


def _maker(kind: str, seed: int, threads: int) -> Callable[[int], Ranker]:
    if kind == "tree":
        from tuneassist.cost_model.tree import TreeRanker

        return lambda copy: TreeRanker(seed=_SEEDS * seed + copy, threads=threads)
    from tuneassist.cost_model.neural import NetworkRanker

    return lambda copy: NetworkRanker(kind, seed=_SEEDS * seed + copy, threads=threads)
