"""The AST graph of a scheduled module: what every cost model here sees.

Nodes are the function, its loops, blocks, stores, loads, branches, allocations and, per statement, each
kind of operation with its count. Edges run along the tree both ways, and from each store to the loads
that read it. Loops of one iteration and blocks that compilation removes have no node.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
        walks = walk_all(mods, labelled=labelled)
        x, flops = node_features(walks, machine)
        features = x.astype(np.float32)
        graphs, start = [], 0
        for walked, operations in zip(walks, flops, strict=True):
            end = start + len(walked.types)
            graphs.append(_graph(walked, features[start:end].copy(), float(operations), machine.cores))
            start = end
    return graphs


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


def _graph(walked: Walk, features: npt.NDArray[np.float32], flops: float, cores: int) -> AstGraph:
    parents = np.array(walked.parents, dtype=np.int64)
    child = np.arange(1, len(parents))
    parent = parents[1:]
    flow = np.array(_flows(walked), dtype=np.int64).reshape(-1, 2).T
    edges = np.concatenate([[parent, child], [child, parent], flow, flow[::-1]], axis=1)
    sizes = [len(child), len(child), flow.shape[1], flow.shape[1]]
    return AstGraph(
        types=np.array(walked.types, dtype=np.int64),
        features=features,
        parents=parents,
        edges=edges,
        edge_kinds=np.repeat(np.arange(len(EDGE_KINDS)), sizes),
        flops=flops,
        bytes=sum(math.prod(b.shape) * b.itemsize for b in walked.buffers if not b.local),
        cores=cores,
        unknown=dict(walked.unknown),
        labels=None if walked.labels is None else tuple(walked.labels),
    )


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
