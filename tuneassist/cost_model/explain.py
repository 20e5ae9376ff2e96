"""What each AST node adds to a predicted log time.

The readout of the networks is a sum over nodes, and the analytic estimate is split among statements by
their share of the cycles, so the contributions and the constant add up to the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tuneassist.cost_model.batch import collate
from tuneassist.cost_model.features import COLUMNS
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.learned import LearnedCostModel
from tuneassist.cost_model.neural import NetworkRanker
from tuneassist.cost_model.stack import StackedRanker
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
        UsageError: The model is not made of networks alone.
    """
    ranker = model.ranker
    groups = ranker.groups if isinstance(ranker, StackedRanker) else ((ranker,),)
    weights = ranker.weights if isinstance(ranker, StackedRanker) else np.ones(1)
    contributions = _estimate(graph)
    batch = collate([graph])
    for weight, group in zip(weights, groups, strict=True):
        for copy in group:
            if not isinstance(copy, NetworkRanker):
                raise UsageError(
                    f"A {model.kind} model can't be explained node by node.", remedy="Use gcn or mlp."
                )
            with torch.inference_mode():
                contributions += weight / len(group) * copy.network.node_scores(batch).numpy()
    constant = model.level(workload_hash)
    return Explanation(contributions, constant, constant + float(contributions.sum()))


def _estimate(graph: AstGraph) -> npt.NDArray[np.float64]:
    """(nodes,) the log of the analytic estimate, split by the statements' cycles."""
    cycles = np.exp2(graph.features[:, _ESTIMATE].astype(np.float64)) - 1.0
    total = cycles.sum()
    if total <= 0:
        cycles[0] = total = 1.0
    return np.asarray(graph.log_estimate * cycles / total)
