"""One vector of fixed length for a whole AST graph, for models that are not graph networks.

It holds the root's features, those of the statement that computes most, of its store and loads, the
extents of its innermost loops, and what the other statements add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.features import ACCESS_COLUMNS, COLUMNS, OFFSETS, ROOT_COLUMNS, STATEMENT_COLUMNS
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.syntax import TYPE_ID

LOADS = 3
"""Loads of the main statement that are kept, those that keep still in the innermost loops first."""
LOOPS = 6
"""Extents of the main statement's innermost loops that are kept."""
OTHERS = 2
"""Statements beside the main one that are kept, costliest first."""

_STATEMENT = slice(OFFSETS["statement"], OFFSETS["statement"] + len(STATEMENT_COLUMNS))
_ACCESS = slice(OFFSETS["access"], OFFSETS["access"] + len(ACCESS_COLUMNS))
_ROOT = slice(OFFSETS["root"], OFFSETS["root"] + len(ROOT_COLUMNS))
_EXTENT = COLUMNS.index("loop.extent")
_COLUMN = {name: COLUMNS.index(name) for name in COLUMNS}
_ADDITIVE = [
    _COLUMN[f"statement.{name}"]
    for name in ("estimate", "arithmetic_instructions", "memory_instructions", "loop_overhead", "l1_traffic",
                 "l2_traffic", "l3_traffic", "gathers", "iterations")
]  # fmt: skip
_OTHER = [
    _COLUMN[name]
    for name in ("statement.iterations", "statement.vector", "statement.vector_utilisation",
                 "statement.unrolled", "statement.estimate", "statement.memory_instructions",
                 "statement.l2_traffic", "statement.gathers", "statement.parallel",
                 "access.contiguous", "access.line_use")
]  # fmt: skip

POOLED_COLUMNS = (
    *(f"root.{c}" for c in ROOT_COLUMNS),
    *(f"main.{c}" for c in STATEMENT_COLUMNS),
    *(f"store.{c}" for c in ACCESS_COLUMNS),
    *(f"load{i}.{c}" for i in range(LOADS) for c in ACCESS_COLUMNS),
    *(f"loop{i}.extent" for i in range(LOOPS)),
    *(f"total.{COLUMNS[c]}" for c in _ADDITIVE),
    *(f"other{i}.{COLUMNS[c]}" for i in range(OTHERS) for c in _OTHER),
)


def pool(graphs: Sequence[AstGraph]) -> npt.NDArray[np.float32]:
    """Return (graphs, len(POOLED_COLUMNS)) features."""
    out = np.zeros((len(graphs), len(POOLED_COLUMNS)), dtype=np.float32)
    for row, graph in enumerate(graphs):
        out[row] = _pooled(graph)
    return out


def owners(graph: AstGraph) -> npt.NDArray[np.int64]:
    """Return (len(POOLED_COLUMNS),) the node of each column; the root for sums and for what is absent."""
    chosen = _choose(graph)
    if chosen is None:
        return np.zeros(len(POOLED_COLUMNS), dtype=np.int64)
    loads = [*chosen.loads, *[0] * (LOADS - len(chosen.loads))]
    loops = [*chosen.loops, *[0] * (LOOPS - len(chosen.loops))]
    others = [*chosen.others, *[0] * (OTHERS - len(chosen.others))]
    return np.concatenate(
        [
            np.zeros(len(ROOT_COLUMNS)), np.full(len(STATEMENT_COLUMNS) + len(ACCESS_COLUMNS), chosen.main),
            np.repeat(loads, len(ACCESS_COLUMNS)), loops, np.zeros(len(_ADDITIVE)),
            np.repeat(others, len(_OTHER)),
        ]
    ).astype(np.int64)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The nodes whose features are kept."""

    sites: npt.NDArray[np.int64]
    main: int
    loads: npt.NDArray[np.int64]
    loops: list[int]
    others: npt.NDArray[np.int64]


def _choose(graph: AstGraph) -> _Chosen | None:
    """None for a graph without a statement."""
    x, types = graph.features, graph.types
    sites = np.flatnonzero((types == TYPE_ID["store"]) | (types == TYPE_ID["call"]))
    if not len(sites):
        return None
    work = x[sites, _COLUMN["statement.arithmetic_instructions"]] + x[sites, _COLUMN["statement.iterations"]]
    main = int(sites[np.argmax(work)])
    found = np.flatnonzero((types == TYPE_ID["load"]) & (graph.parents == main))
    found = found[x[found, _COLUMN["access.is_repeated"]] == 0]
    key = [
        x[found, _COLUMN["access.buffer_bytes"]],
        *(-x[found, _COLUMN[f"access.invariant_{i}"]] for i in (2, 1, 0)),
    ]
    loops: list[int] = []
    node = int(graph.parents[main])
    while node >= 0 and len(loops) < LOOPS:
        if types[node] == TYPE_ID["loop"]:
            loops.append(node)
        node = int(graph.parents[node])
    rest = sites[sites != main]
    rest = rest[np.argsort(-x[rest, _COLUMN["statement.estimate"]], kind="stable")][:OTHERS]
    return _Chosen(sites, main, found[np.lexsort(key)][:LOADS], loops, rest)


def _pooled(graph: AstGraph) -> npt.NDArray[np.float32]:
    x, chosen = graph.features, _choose(graph)
    if chosen is None:
        return np.concatenate([x[0, _ROOT], np.zeros(len(POOLED_COLUMNS) - len(ROOT_COLUMNS), np.float32)])
    loads, loops = np.zeros((LOADS, len(ACCESS_COLUMNS)), np.float32), np.zeros(LOOPS, np.float32)
    others = np.zeros((OTHERS, len(_OTHER)), np.float32)
    loads[: len(chosen.loads)] = x[chosen.loads, _ACCESS]
    loops[: len(chosen.loops)] = x[chosen.loops, _EXTENT]
    others[: len(chosen.others)] = x[chosen.others][:, _OTHER]
    total = np.log2(np.exp2(x[chosen.sites][:, _ADDITIVE]).sum(axis=0))
    return np.concatenate(
        [
            x[0, _ROOT], x[chosen.main, _STATEMENT], x[chosen.main, _ACCESS], loads.ravel(), loops, total,
            others.ravel(),
        ]
    )  # fmt: skip
