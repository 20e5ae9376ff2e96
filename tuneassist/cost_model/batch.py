"""Many AST graphs as one disconnected graph of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        edges: (2, E): source node times the number of kinds plus the edge's kind, and target node.
        edge_weights: (E,) 1 / how many edges of its kind the target has, so that sums are means.
        size: G.
    """

    types: Tensor
    features: Tensor
    graph: Tensor
    edges: Tensor
    edge_weights: Tensor
    size: int

    def to(self, device: torch.device) -> GraphBatch:
        """The same on another device."""
        if device == self.types.device:
            return self
        return replace(
            self, types=self.types.to(device), features=self.features.to(device), graph=self.graph.to(device),
            edges=self.edges.to(device), edge_weights=self.edge_weights.to(device),
        )  # fmt: skip

    def mean_of(self, values: Tensor) -> Tensor:
        """(G, width) means over the nodes of each graph of (N, width) values."""
        total = torch.zeros(self.size, values.shape[1], device=values.device).index_add(0, self.graph, values)
        count = torch.bincount(self.graph, minlength=self.size).clamp(min=1)
        return total / count[:, None]

    def along(self, used_kinds: Tensor) -> GraphBatch:
        """The same with edges of other kinds weighing nothing; `used_kinds` is (kinds,) of 0 and 1."""
        kind = self.edges[0] % len(EDGE_KINDS)
        return replace(self, edge_weights=self.edge_weights * used_kinds[kind])


def collate(graphs: Sequence[AstGraph]) -> GraphBatch:
    """Join graphs into one batch; the order of graphs is kept."""
    sizes = np.array([g.num_nodes for g in graphs])
    offsets = np.cumsum(sizes) - sizes
    edges = np.concatenate([g.edges for g in graphs], axis=1)
    edges = edges + np.repeat(offsets, [g.edges.shape[1] for g in graphs])
    kinds = np.concatenate([g.edge_kinds for g in graphs])
    of_kind = edges[1] * len(EDGE_KINDS) + kinds
    edges[0] = edges[0] * len(EDGE_KINDS) + kinds
    return GraphBatch(
        types=torch.from_numpy(np.concatenate([g.types for g in graphs])),
        features=torch.from_numpy(np.concatenate([g.features for g in graphs])),
        graph=torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
        edges=torch.from_numpy(edges),
        edge_weights=torch.from_numpy((1.0 / np.bincount(of_kind)[of_kind]).astype(np.float32)),
        size=len(graphs),
    )
