"""Many AST graphs as one disconnected graph of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tuneassist.cost_model.graph import EDGE_KINDS, AstGraph


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """G graphs with N nodes in all.

    Attributes:
        types: (N,) type ids.
        features: (N, len(COLUMNS)).
        graph: (N,) which graph each node belongs to.
        edges: (2, E): source node, and target node plus N times the edge's kind.
        edge_weights: (E,) 1 / how many edges of its kind the target has, so that sums are means.
        size: G.
    """

    types: Tensor
    features: Tensor
    graph: Tensor
    edges: Tensor
    edge_weights: Tensor
    size: int


def collate(graphs: Sequence[AstGraph]) -> GraphBatch:
    """Join graphs into one batch; the order of graphs is kept."""
    sizes = np.array([g.num_nodes for g in graphs])
    offsets = np.cumsum(sizes) - sizes
    nodes = int(sizes.sum())
    edges = np.concatenate([g.edges for g in graphs], axis=1)
    edges = edges + np.repeat(offsets, [g.edges.shape[1] for g in graphs])
    edges[1] += nodes * np.concatenate([g.edge_kinds for g in graphs])
    incoming = np.bincount(edges[1], minlength=nodes * len(EDGE_KINDS))
    return GraphBatch(
        types=torch.from_numpy(np.concatenate([g.types for g in graphs])),
        features=torch.from_numpy(np.concatenate([g.features for g in graphs])),
        graph=torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
        edges=torch.from_numpy(edges),
        edge_weights=torch.from_numpy((1.0 / incoming[edges[1]]).astype(np.float32)),
        size=len(graphs),
    )
