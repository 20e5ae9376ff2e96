"""What each AST node adds to a predicted log time.

The readout of the networks is a sum over nodes, and the analytic estimate is split among statements by
their share of the cycles, so the contributions and the constant add up to the prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tuneassist.cost_model.base import Array, Ranker
from tuneassist.cost_model.batch import collate
from tuneassist.cost_model.features import COLUMNS
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.learned import LearnedCostModel
from tuneassist.cost_model.neural import NetworkRanker
from tuneassist.cost_model.pooling import owners
from tuneassist.cost_model.stack import StackedRanker
from tuneassist.cost_model.transfer import MeanRanker, TransferredRanker
from tuneassist.cost_model.tree import TreeRanker
from tuneassist.errors import UsageError

_ESTIMATE = COLUMNS.index("statement.estimate")


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a prediction comes about.

    Attributes:
        contributions: (nodes,) what each node adds to the natural log of seconds.
        constant: The workload's level, the same for all its candidates.
        log_secs: Natural log of the predicted seconds: constant + the sum of contributions.
    """

    contributions: npt.NDArray[np.float64]
    constant: float
    log_secs: float


def explain(model: LearnedCostModel, workload_hash: str, graph: AstGraph) -> Explanation:
    """Split a model's prediction among the nodes of a graph.

    Raises:
        UsageError: The model has parts that do not see the graph.
    """
    contributions, constant = _split(model.ranker, graph, model.kind)
    contributions = _estimate(graph) + contributions
    constant += model.level(workload_hash)
    return Explanation(contributions, constant, constant + float(contributions.sum()))


def _split(ranker: Ranker, graph: AstGraph, kind: str) -> tuple[Array, float]:
    """(nodes,) what each node adds to a ranker's correction, and what is added whatever the nodes are."""
    if isinstance(ranker, NetworkRanker):
        with torch.inference_mode():
            return ranker.network.node_scores(collate([graph])).numpy().astype(np.float64), 0.0
    if isinstance(ranker, TreeRanker):
        *shares, constant = ranker.shares(ranker.inputs([graph]))[0]
        return np.bincount(owners(graph), shares, minlength=graph.num_nodes).astype(np.float64), constant
    if isinstance(ranker, TransferredRanker):
        return _sum([(1.0, ranker.base), (1.0, ranker.residual)], graph, kind)
    if isinstance(ranker, MeanRanker):
        return _sum([(1 / len(ranker.parts), part) for part in ranker.parts], graph, kind)
    if isinstance(ranker, StackedRanker):
        weighted = [
            (float(weight) / len(group), copy)
            for weight, group in zip(ranker.weights, ranker.groups, strict=True)
            for copy in group
            if weight > 0
        ]
        return _sum(weighted, graph, kind)
    raise UsageError(
        f"A {kind} model can't be explained node by node: it does not see the graph.",
        remedy="Use gnn, gcn, mlp or tree.",
    )


def _sum(weighted: Sequence[tuple[float, Ranker]], graph: AstGraph, kind: str) -> tuple[Array, float]:
    contributions, constant = np.zeros(graph.num_nodes), 0.0
    for weight, part in weighted:
        of_nodes, whatever = _split(part, graph, kind)
        contributions += weight * of_nodes
        constant += weight * whatever
    return contributions, constant


def _estimate(graph: AstGraph) -> npt.NDArray[np.float64]:
    """(nodes,) the log of the analytic estimate, split by the statements' cycles."""
    cycles = np.exp2(graph.features[:, _ESTIMATE].astype(np.float64)) - 1.0
    total = cycles.sum()
    if total <= 0:
        cycles[0] = total = 1.0
    return np.asarray(graph.log_estimate * cycles / total)
