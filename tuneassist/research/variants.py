"""Variants of the graph network for the ablation table: each leaves one thing out, or changes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneassist.cost_model.base import Ranker
from tuneassist.cost_model.bases import base_ranker
from tuneassist.cost_model.transfer import MeanRanker


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of the table."""

    text: str
    """What is different."""
    network: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `NetworkSettings`."""
    trees: bool = False
    """Averaged with trees over pooled features."""
    copies: int = 1
    """Networks of different first weights, averaged."""

    def make(self, seed: int, epochs: int) -> Ranker:
        """The variant, untrained."""
        parts = [
            _network(seed + 101 * copy, epochs, self.network) for copy in range(self.copies)
        ]  # fmt: skip
        if self.trees:
            parts.append(base_ranker("tree", seed=seed))
        return parts[0] if len(parts) == 1 else MeanRanker("gnn", parts)


def _network(seed: int, epochs: int, network: Mapping[str, Any]) -> Ranker:
    whole = base_ranker("gnn", seed=seed, epochs=epochs, **network)
    assert isinstance(whole, MeanRanker)
    return whole.parts[0]


VARIANTS = {
    "gnn-net": Variant("the graph network alone"),
    "gnn-no-flow": Variant("no edges from stores to loads", {"edge_kinds": ("down", "up")}),
    "gnn-no-edges": Variant("no edges: nodes see only their graph's mean", {"edge_kinds": ()}),
    "gnn-no-mean": Variant("nodes do not see their graph's mean", {"whole": False}),
    "gnn-no-gate": Variant("no gates in the readout", {"gated": False}),
    "gnn-1-layer": Variant("one layer instead of three", {"layers": 1}),
    "gnn-wide": Variant("128 units instead of 64", {"width": 128, "dropout": 0.3}),
    "gnn-3-nets": Variant("three networks, averaged", copies=3),
}
"""Of the graph network alone, by name; `gnn` itself is the network averaged with trees."""
