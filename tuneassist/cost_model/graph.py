"""The AST graph of a scheduled module: what every cost model here sees.

Nodes are the function, its loops, blocks, stores, loads, branches, allocations and, per statement, each
kind of operation with its count. Edges run along the tree both ways, and from each store to the loads
that read it. Loops of one iteration and blocks that compilation removes have no node.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.features import COLUMNS, FEATURE_VERSION, node_features
from tuneassist.cost_model.hardware import Hardware, host
from tuneassist.cost_model.program import Walk
from tuneassist.cost_model.syntax import NODE_TYPES
from tuneassist.cost_model.walk import walk_all

if TYPE_CHECKING:
    from tuneassist.tvm_api import IRModule

__all__ = ["COLUMNS", "EDGE_KINDS", "FEATURE_VERSION", "NODE_TYPES", "AstGraph", "extract", "extract_batch"]

Ints = npt.NDArray[np.int64]

_ESTIMATE = COLUMNS.index("root.estimate_sum")
_LN2 = float(np.log(2.0))
EDGE_KINDS = ("down", "up", "flow", "flow_back")
"""Parent to child, child to parent, store to load, load to store; an edge's kind is the position here."""


@dataclass(frozen=True, slots=True, eq=False)
class AstGraph:
    """One scheduled module.

    Attributes:
        types: (nodes,) position of each node's type in `NODE_TYPES`.
        features: (nodes, len(COLUMNS)) float32.
        parents: (nodes,) each node's parent; -1 for the root, which is node 0.
        edges: (2, edges) source and target of each edge.
        edge_kinds: (edges,) position in `EDGE_KINDS`.
        flops: Arithmetic operations of one call.
        bytes: Bytes of the buffers that are passed in, each touched once.
        unknown: Classes of AST nodes that this version does not know, and how often each was seen.
        labels: A readable label for each node, if they were asked for.
    """

    types: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    parents: npt.NDArray[np.int64]
    edges: npt.NDArray[np.int64]
    edge_kinds: npt.NDArray[np.int64]
    flops: float
    bytes: float
    cores: int
    unknown: dict[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None

    @property
    def log_estimate(self) -> float:
        """Natural log of the analytic estimate of its cycles."""
        return float(self.features[0, _ESTIMATE]) * _LN2

    @property
    def num_nodes(self) -> int:
        """How many nodes it has."""
        return len(self.types)


def extract(
    mod: IRModule, cores: int, *, hardware: Hardware | None = None, labelled: bool = False
) -> AstGraph:
    """Build the AST graph of one scheduled module (block form, not lowered).

    Args:
        mod: What `Schedule.mod` holds.
        cores: Cores that the kernel may use.
        hardware: The machine it is for; None: this one.
        labelled: Whether to read names too, which is slow and only people need.
    """
    return extract_batch([mod], cores, hardware=hardware, labelled=labelled)[0]


def extract_batch(
    mods: Sequence[IRModule], cores: int, *, hardware: Hardware | None = None, labelled: bool = False
) -> list[AstGraph]:
    """Build the AST graphs of many scheduled modules; cheaper than one by one."""
    if not mods:
        return []
    machine = hardware or host(cores)
    with _collector_paused():
        # In a call of its own, so that the walks are gone when the collector returns.
        return _extract(mods, machine, labelled)


def _extract(mods: Sequence[IRModule], hardware: Hardware, labelled: bool) -> list[AstGraph]:
    walks = walk_all(mods, labelled=labelled)
    return _graphs(walks, *node_features(walks, hardware), hardware.cores)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector: a walk makes many objects and no cycles, and each collection that
    they cause goes through all objects of TVM's and torch's modules."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _graphs(
    walks: Sequence[Walk], features: npt.NDArray[np.float32], flops: npt.NDArray[np.float64], cores: int
) -> list[AstGraph]:
    """Cut a batch's nodes and edges into graphs; each owns its arrays, since few outlive the batch."""
    types = np.fromiter(chain.from_iterable(w.types for w in walks), np.int64)
    parents = np.fromiter(chain.from_iterable(w.parents for w in walks), np.int64)
    first_node = _starts([len(w.types) for w in walks])
    edges, kinds, first_edge = _edges(parents, first_node, [_flows(w) for w in walks])
    graphs = []
    for number, walked in enumerate(walks):
        nodes = slice(first_node[number], first_node[number + 1])
        span = slice(first_edge[number], first_edge[number + 1])
        graphs.append(
            AstGraph(
                types=types[nodes].copy(),
                features=features[nodes].copy(),
                parents=parents[nodes].copy(),
                edges=edges[:, span].copy(),
                edge_kinds=kinds[span].copy(),
                flops=float(flops[number]),
                bytes=sum(b.bytes for b in walked.buffers if not b.local),
                cores=cores,
                unknown=dict(walked.unknown),
                labels=None if walked.labels is None else tuple(walked.labels),
            )
        )
    return graphs


def _edges(parents: Ints, first_node: Ints, flows: list[list[tuple[int, int]]]) -> tuple[Ints, Ints, Ints]:
    """Edges of all graphs, graph by graph and within each by kind.

    Args:
        parents: (N,) each node's parent within its graph.
        first_node: (graphs + 1,) position of each graph's first node.
        flows: Of each graph, store and load of each flow.

    Returns:
        (2, E) edges, their (E,) kinds, and (graphs + 1,) positions of each graph's first edge.
    """
    per_tree, per_flow = np.diff(first_node) - 1, np.array([len(flow) for flow in flows])
    first_edge = _starts(2 * (per_tree + per_flow))
    graph = np.repeat(np.arange(len(flows)), per_tree + 1)
    child = np.arange(len(parents)) - first_node[graph]
    inner = child > 0
    graph, child, parent = graph[inner], child[inner], parents[inner]
    down = first_edge[graph] + child - 1
    of_flow = np.repeat(np.arange(len(flows)), per_flow)
    flow = np.fromiter(chain.from_iterable(chain.from_iterable(flows)), np.int64).reshape(-1, 2).T
    ahead = first_edge[of_flow] + 2 * per_tree[of_flow] + np.arange(len(of_flow)) - _starts(per_flow)[of_flow]
    edges = np.empty((2, first_edge[-1]), dtype=np.int64)
    kinds = np.empty(first_edge[-1], dtype=np.int64)
    tree = np.stack([parent, child])
    placed = (
        (down, tree),
        (down + per_tree[graph], tree[::-1]),
        (ahead, flow),
        (ahead + per_flow[of_flow], flow[::-1]),
    )
    for kind, (position, ends) in enumerate(placed):
        edges[:, position], kinds[position] = ends, kind
    return edges, kinds, first_edge


def _starts(counts: npt.ArrayLike) -> Ints:
    """(n + 1,) where each of n groups of these sizes starts, and where the last ends."""
    starts: Ints = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return starts


def _flows(walked: Walk) -> list[tuple[int, int]]:
    """Store node and load node of each flow: a load reads what its own statement, or one before, stores."""
    stores: dict[int, list[int]] = {}
    flows = []
    for statement in walked.statements:
        for access in statement.accesses:
            if access.store:
                stores.setdefault(access.buffer, []).append(access.node)
        for access in statement.accesses:
            if not access.store:
                flows += [(store, access.node) for store in stores.get(access.buffer, ())]
    return flows
