"""The graph convolutional network over ASTs, and the same without propagation.

Tomczak, Lepert, Wiggers, "Simulating Execution Time of Tensor Programs using Graph Neural Networks"
(2019): a node's type is embedded in 32 dimensions and joined to its features, one encoder is shared by
all nodes, graph convolutions propagate, and all nodes are aggregated into one prediction.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import MessagePassing

from tuneassist.cost_model.batch import GraphBatch
from tuneassist.cost_model.features import COLUMNS
from tuneassist.cost_model.graph import EDGE_KINDS
from tuneassist.cost_model.syntax import NODE_TYPES

LEAST_SCALE = 0.5
"""A column that hardly varied in what was seen first must not explode when it does."""
EMBEDDING = 32
"""Dimensions of a node type's embedding, as in the paper."""


class RelationalLayer(MessagePassing):  # type: ignore[misc]
    """One graph convolution with weights of its own for each edge kind, and a residual connection.

    The mean over each kind of edge and a linear layer over all of them: R-GCN (Schlichtkrull et al.,
    2018). The layer is linear, so each node is mixed once for each kind, and edges carry the result.

    Args:
        width: Of a node's state.
        dropout: Share of units dropped in training.
        whole: Every node also sees the mean over its graph, as from a node linked to all (Gilmer et al.,
            2017, section 5.2): loops nest deeper than there are layers.
    """

    def __init__(self, width: int, dropout: float, *, whole: bool = False) -> None:
        super().__init__(aggr="add")
        self.whole = whole
        self.mix = nn.Linear(width * (1 + whole + len(EDGE_KINDS)), width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Return (N, width) from (N, width)."""
        nodes, width = h.shape
        kinds = len(EDGE_KINDS)
        # The columns of the weights belong to the node itself, to each kind of edge, and to the graph.
        own, *by_kind = torch.split(self.mix.weight, width, dim=1)
        mixed = functional.linear(h, own, self.mix.bias)
        if self.whole:
            mixed = mixed + functional.linear(batch.mean_of(h), by_kind.pop())[batch.graph]
        sent = functional.linear(h, torch.cat(by_kind)).view(nodes * kinds, width)
        mixed = mixed + self.propagate(
            batch.edges, x=(sent, None), weight=batch.edge_weights[:, None], size=(nodes * kinds, nodes)
        )
        added: Tensor = self.dropout(torch.relu(self.norm(mixed)))
        return h + added

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """Return (E, width) what each edge carries."""
        return x_j * weight

    def aggregate(self, inputs: Tensor, index: Tensor, dim_size: int) -> Tensor:
        """Return (N, width) sums over the edges of each target; faster than the library's own."""
        return inputs.new_zeros(dim_size, inputs.shape[1]).index_add(0, index, inputs)


class NodewiseLayer(nn.Module):
    """What stands in for a graph convolution where nodes must not see each other."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Return (N, width) from (N, width)."""
        added: Tensor = self.dropout(torch.relu(self.norm(self.mix(h))))
        return h + added


class AstNetwork(nn.Module):
    """What to add to the log of the analytic estimate, so that it ranks programs of a workload.

    The readout is a sum of one number per node, so each node's share of it is exact.

    Args:
        propagate: Whether nodes see their neighbours (`gcn`) or only themselves (`mlp`).
        width: Of the hidden layers.
        layers: Graph convolutions.
        dropout: Share of units dropped in training.
        edge_kinds: Those of `EDGE_KINDS` along which it propagates.
        whole: Nodes see their whole graph's mean too.
        gated: A node's share counts by a gate that it decides on (Li et al., 2016, equation 7).
    """

    used_kinds: Tensor

    def __init__(
        self,
        *,
        propagate: bool = True,
        width: int = 32,
        layers: int = 3,
        dropout: float = 0.1,
        edge_kinds: Sequence[str] = EDGE_KINDS,
        whole: bool = False,
        gated: bool = False,
    ) -> None:
        super().__init__()
        used = torch.tensor([float(kind in edge_kinds) for kind in EDGE_KINDS])
        self.register_buffer("used_kinds", used, persistent=False)
        self.uses_all = bool(used.all())
        self.embedding = nn.Embedding(len(NODE_TYPES), EMBEDDING)
        self.register_buffer("mean", torch.zeros(len(COLUMNS)))
        self.register_buffer("scale", torch.full((len(COLUMNS),), 8.0))
        self.encoder = nn.Sequential(nn.Linear(EMBEDDING + len(COLUMNS), width), nn.ReLU())
        self.layers = nn.ModuleList(
            [
                RelationalLayer(width, dropout, whole=whole) if propagate else NodewiseLayer(width, dropout)
                for _ in range(layers)
            ]
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))
        self.gate = nn.Linear(width, 1) if gated else None
        last = self.head[-1]
        assert isinstance(last, nn.Linear)
        # Before any training the estimate alone ranks.
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.embedding.weight.device

    def standardise(self, features: Tensor) -> None:
        """Scale each column by what it is in these nodes, where it is not zero.

        Args:
            features: (N, len(COLUMNS)).
        """
        there = features != 0
        count = there.sum(dim=0).clamp(min=1)
        self.mean = features.sum(dim=0) / count
        spread = torch.where(there, features - self.mean, 0.0).square().sum(dim=0) / count
        self.scale = spread.sqrt().clamp(min=LEAST_SCALE)

    def node_scores(self, batch: GraphBatch) -> Tensor:
        """Return (N,): what each node adds to its graph's correction."""
        # A zero means that the column is another node type's, or that there is nothing of the kind.
        x = torch.where(batch.features == 0, 0.0, (batch.features - self.mean) / self.scale)
        h = self.encoder(torch.cat([self.embedding(batch.types), x], dim=1))
        seen = batch if self.uses_all else batch.along(self.used_kinds)
        for layer in self.layers:
            h = layer(h, seen)
        scores: Tensor = self.head(h).squeeze(1)
        return scores if self.gate is None else scores * torch.sigmoid(self.gate(h).squeeze(1))

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return (G,) corrections of log time; a lower one is a faster program than estimated."""
        scores = self.node_scores(batch)
        return torch.zeros(batch.size, device=scores.device).index_add(0, batch.graph, scores)
