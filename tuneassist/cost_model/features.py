"""Numeric features of AST nodes, computed for a whole batch of modules at once.

Every quantity that can be large enters as log2(1 + x), strides as sign(x) * log2(1 + |x|) (Chen et al.,
"Learning to Optimize Tensor Programs", 2018). Each node type has columns of its own; a node has zeros in
the others'. `COLUMNS` names them all, in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model import access as acc
from tuneassist.cost_model.access import Accesses, Array, Nests
from tuneassist.cost_model.estimate import cycles
from tuneassist.cost_model.hardware import Hardware
from tuneassist.cost_model.program import Statement, Walk
from tuneassist.cost_model.syntax import PARALLEL

Features = npt.NDArray[np.float32]

FEATURE_VERSION = 1
"""Changes with every change of what a column means: a checkpoint fits one version only."""

INNERMOST = 4
"""Loops whose strides are features of an access."""

STATEMENT_COLUMNS = (
    "iterations", "depth", "vector", "vector_is_power_of_two", "vector_fills_registers", "vector_popcount",
    "vector_registers", "vector_utilisation", "vector_memory_ops", "unroll_max_step", "unroll_explicit",
    "unrolled", "unrolled_by_tvm", "unrolled_vectors", "accumulators", "accumulator_spill",
    "spatial_segment", "reduction_segment", "outer_spatial_segment", "outer_reduction_segment",
    "parallel", "parallel_imbalance", "iterations_per_core", "arithmetic", "arithmetic_instructions",
    "memory_instructions", "loop_overhead", "l1_traffic", "l2_traffic", "l3_traffic", "l1_fit", "l2_fit",
    "l3_fit", "task_bytes", "flops_per_memory", "flops_per_l1_line", "flops_per_l2_line", "estimate", "loads",
    "gathers",
)  # fmt: skip
ACCESS_COLUMNS = (
    "is_store", "is_repeated", "itemsize", "is_float", "is_local", "buffer_bytes",
    *(f"stride_{i}" for i in range(INNERMOST)), *(f"invariant_{i}" for i in range(INNERMOST)),
    "contiguous", "broadcast", "strided", "reuse", "unrolled_distinct", "unrolled_reuse", "hoisted",
    "memory_ops", "memory_ops_per_iteration", "line_use", "footprint_unrolled", "footprint_task", "footprint",
    "l1_lines", "l2_lines", "l1_refetch", "l2_refetch", "parallel_shared",
)  # fmt: skip
LOOP_COLUMNS = (
    "extent", "serial", "parallel", "vectorized", "unrolled", "thread", "top_down", "bottom_up", "reduction",
    "height", "straight_line", "max_step", "explicit", "footprint", "touched", "loop_reuse",
)  # fmt: skip
BLOCK_COLUMNS = ("spatial", "reduce", "other", "has_init", "has_predicate", "annotations")
COUNT_COLUMNS = ("count", "executed")
ROOT_COLUMNS = (
    "cores", "vector_bytes", "l1", "l2", "l3", "flops", "statements", "estimate_sum", "estimate_max",
    "parallel_min",
)  # fmt: skip
_GROUPS = {
    "statement": STATEMENT_COLUMNS, "access": ACCESS_COLUMNS, "loop": LOOP_COLUMNS, "block": BLOCK_COLUMNS,
    "count": COUNT_COLUMNS, "root": ROOT_COLUMNS,
}  # fmt: skip
COLUMNS = tuple(f"{group}.{name}" for group, names in _GROUPS.items() for name in names)
OFFSETS = {group: COLUMNS.index(f"{group}.{names[0]}") for group, names in _GROUPS.items()}
_ARITHMETIC = ("add", "mul", "div", "minmax", "compare", "select", "math", "cast", "bits", "call", "unknown")
_MATH_COST = {"math": 10.0, "div": 4.0, "call": 4.0}
"""Instructions for one of these, about: polynomial approximations and divisions are no single ones."""


def log2(values: Array) -> Array:
    """sign(x) * log2(1 + |x|)."""
    return np.sign(values) * np.log2(1.0 + np.abs(values))


def node_features(walks: Sequence[Walk], hardware: Hardware) -> tuple[Features, Array]:
    """Fill in the features of every node of a batch.

    Args:
        walks: The modules.
        hardware: The machine that they are for.

    Returns:
        (N, len(COLUMNS)) features of all nodes in turn, and (modules,) arithmetic operations.
    """
    offsets = np.cumsum([0, *(len(w.types) for w in walks)])
    x = np.zeros((int(offsets[-1]), len(COLUMNS)), dtype=np.float32)
    _put(x, offsets[:-1], "root", _root(hardware, len(walks)))
    _simple_nodes(x, walks, offsets)
    pairs = [(w, s) for w in walks for s in w.statements if s.accesses]
    of_module = np.array([m for m, w in enumerate(walks) for s in w.statements if s.accesses], dtype=np.int64)
    if not pairs:
        return x, np.zeros(len(walks))
    statements = [s for _, s in pairs]
    lanes = np.array(
        [hardware.lanes(w.buffers[s.accesses[0].buffer].itemsize) for w, s in pairs], dtype=np.float64
    )
    nest = acc.nests(statements, lanes)
    buffers = [buffer for w in walks for buffer in w.buffers]
    first_buffer = np.cumsum([0, *(len(w.buffers) for w in walks)])[of_module]
    access = acc.accesses(statements, nest, buffers, first_buffer, hardware)
    access_features, memory_ops, gathers, traffic = _accesses(nest, access, lanes, hardware)
    _put(x, offsets[of_module[access.statement]] + access.node, "access", access_features)
    features, estimate, flops = _statements(
        statements, nest, access, lanes, hardware, memory_ops, gathers, traffic
    )
    _put(x, offsets[of_module] + np.array([s.node for s in statements]), "statement", features)
    _loops(x, nest, access, offsets[of_module], hardware)
    total_flops: Array = np.bincount(of_module, weights=flops, minlength=len(walks)).astype(np.float64)
    _totals(x, offsets[:-1], of_module, nest, estimate, total_flops, len(walks))
    return x, total_flops


def _put(x: Features, rows: acc.Ints, group: str, values: Array) -> None:
    x[rows, OFFSETS[group] : OFFSETS[group] + values.shape[1]] = values


def _root(hardware: Hardware, count: int) -> Array:
    row = [hardware.cores, hardware.vector_bytes, hardware.l1_bytes, hardware.l2_bytes, hardware.l3_bytes]
    return np.tile(log2(np.array(row, dtype=np.float64)), (count, 1))


def _simple_nodes(x: Features, walks: Sequence[Walk], offsets: acc.Ints) -> None:
    """Blocks, loops' own facts, operations and allocations."""
    blocks = [
        (base + node, *rest) for base, w in zip(offsets, walks, strict=False) for node, *rest in w.blocks
    ]
    if blocks:
        table = np.array(blocks)
        _put(x, table[:, 0], "block", table[:, 1:].astype(np.float64))
    counts: list[tuple[int, float, float]] = []
    for base, w in zip(offsets, walks, strict=False):
        counts += [(base + node, w.buffers[buffer].bytes, 0.0) for node, buffer in w.allocs]
        counts += [
            (base + node, count, float(count * w.statements[statement].iterations))
            for node, count, statement in w.ops
        ]
    if counts:
        counted = np.array(counts)
        _put(x, counted[:, 0].astype(np.int64), "count", log2(counted[:, 1:]))


def _accesses(
    nest: Nests, a: Accesses, lanes: Array, hardware: Hardware
) -> tuple[Array, Array, Array, Array]:
    """Features of accesses; and per access its executed memory instructions, gathers and (3,) cache lines."""
    s = a.statement
    iters, vector, unrolled = nest.iters[s], nest.vector[s], nest.unrolled[s]
    total = iters[:, -1]
    rows = np.arange(len(s))
    stride0 = np.abs(a.stride[:, 0]) if a.stride.shape[1] else np.zeros(len(s))
    still = a.invariant[:, 0] if a.invariant.shape[1] else np.ones(len(s), dtype=bool)
    vectorised = vector > 1
    broadcast, contiguous = still, (stride0 == 1) & ~still
    strided = ~broadcast & ~contiguous
    width = lanes[s]
    pieces = np.floor(vector / width) + _popcount(np.mod(vector, width))
    machine = np.where(broadcast | ~vectorised, 1.0, np.where(contiguous, pieces, vector))
    base = np.where(vectorised & ~still, vector, 1.0)
    distinct = acc.at_level(a.elements, unrolled) / base
    straight = acc.at_level(iters, unrolled) / vector
    # Loops just around the straight-line code that leave the address alone: LLVM keeps it in a register.
    hoist = _hoist_level(a.invariant, unrolled)
    memory = distinct * machine * total / acc.at_level(iters, hoist)
    memory = np.where(a.repeated, 0.0, memory * np.where(a.updates, 2.0, 1.0))
    gathers = np.where(strided & vectorised, total, 0.0)

    weight = np.where(a.repeated, 0.0, 1.0)[:, None]
    footprint = np.add.reduceat(a.lines * weight, a.first, axis=0) * hardware.line_bytes
    caches = (hardware.l1_bytes, hardware.l2_bytes, hardware.l3_bytes / hardware.cores)
    levels = [acc.fitting_level(footprint, size) for size in caches]
    traffic = np.stack(
        [acc.at_level(a.lines, k[s]) * total / acc.at_level(iters, k[s]) for k in levels], axis=1
    )
    traffic *= weight
    task = np.maximum(nest.depth - (nest.kind == PARALLEL).sum(axis=1), 0)[s]
    all_lines = a.lines[:, -1]
    inner = np.zeros((len(s), 2 * INNERMOST))
    known = min(INNERMOST, a.stride.shape[1])
    inner[:, :known] = log2(a.stride[:, :known])
    inner[:, INNERMOST : INNERMOST + known] = a.invariant[:, :known] & (nest.kind[s, :known] >= 0)
    lines_unrolled = acc.at_level(a.lines, unrolled)
    shared = acc.at_level(a.elements, task) * nest.parallel[s] / np.maximum(a.elements[:, -1], 1.0)
    columns = [
        a.store, a.repeated, log2(a.itemsize), a.is_float, a.local, log2(a.buffer_bytes), *inner.T,
        contiguous, broadcast, strided, np.log2(total / a.elements[:, -1]), log2(distinct),
        np.log2(straight / distinct),
        log2(acc.at_level(iters, hoist) / acc.at_level(iters, unrolled)), log2(memory),
        memory / total * vector,
        acc.at_level(a.elements, unrolled) * a.itemsize / (lines_unrolled * hardware.line_bytes),
        log2(lines_unrolled), log2(a.lines[rows, task]), log2(all_lines),
        log2(traffic[:, 0]), log2(traffic[:, 1]), np.log2(np.maximum(traffic[:, 0] / all_lines, 1.0)),
        np.log2(np.maximum(traffic[:, 1] / all_lines, 1.0)), log2(shared),
    ]  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float64), memory, gathers, traffic


def _hoist_level(invariant: acc.Bools, unrolled: acc.Ints) -> acc.Ints:
    """(A,) the level up to which nothing changes the address beyond the straight-line code."""
    depth = np.arange(invariant.shape[1])[None, :]
    still = np.logical_and.accumulate(invariant | (depth < unrolled[:, None]), axis=1)
    level: acc.Ints = still.sum(axis=1)
    return level


def _popcount(values: Array) -> Array:
    return np.bitwise_count(values.astype(np.int64)).astype(np.float64)


def _statements(
    statements: Sequence[Statement], nest: Nests, a: Accesses, lanes: Array, hardware: Hardware,
    memory_ops: Array, gathers: Array, traffic: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Features of statements, their estimated cycles, and their arithmetic operations."""
    total, vector, unrolled = nest.iters[:, -1], nest.vector, nest.unrolled
    registers = np.ceil(vector / lanes)
    memory, gathered = np.add.reduceat(memory_ops, a.first), np.add.reduceat(gathers, a.first)
    lines = np.add.reduceat(traffic, a.first, axis=0)
    arithmetic = np.array([sum(s.ops.values()) for s in statements], dtype=np.float64)
    costly = np.array([sum(n * _MATH_COST.get(k, 1.0) for k, n in s.ops.items()) for s in statements])
    instructions = total / vector * registers * costly
    # The store's own access tells which loops reduce.
    reduces = a.invariant[a.first] & (nest.extent > 1) & a.store[a.first][:, None]
    segments = _segments(reduces, nest.extent)
    still = a.invariant[a.first, 0] if a.invariant.shape[1] else np.ones(len(total), dtype=bool)
    accumulators = acc.at_level(a.elements[a.first], unrolled) / np.where(still, 1.0, vector) * registers
    windows = acc.at_level(nest.iters, unrolled)
    vectors = np.add.reduceat(acc.at_level(a.elements, unrolled[a.statement]), a.first) / vector
    overhead = total / windows
    chunks = np.ceil(nest.parallel / hardware.cores)
    imbalance = chunks * hardware.cores / nest.parallel
    slowdown = chunks / nest.parallel
    spill = np.maximum(accumulators / hardware.registers, 1.0)
    estimate = cycles(
        iterations=total / vector, arithmetic=instructions, memory=memory, spill=spill,
        straight_line=windows / vector, loop_passes=overhead, lines=lines, share=slowdown,
    )  # fmt: skip
    footprint = (
        np.add.reduceat(np.where(a.repeated[:, None], 0.0, a.lines), a.first, axis=0) * hardware.line_bytes
    )
    caches = (hardware.l1_bytes, hardware.l2_bytes, hardware.l3_bytes / hardware.cores)
    fits = [log2(acc.at_level(nest.iters, acc.fitting_level(footprint, size))) for size in caches]
    task = np.maximum(nest.depth - (nest.kind == PARALLEL).sum(axis=1), 0)
    flops = total * arithmetic
    columns = [
        log2(total), nest.depth, log2(vector), _popcount(vector) == 1, np.mod(vector, lanes) == 0,
        _popcount(vector),
        registers, vector / (registers * lanes), np.floor(vector / lanes) + _popcount(np.mod(vector, lanes)),
        log2(nest.max_step), nest.explicit > 0, log2(windows / vector),
        log2(acc.at_level(nest.iters, nest.explicit)),
        log2(vectors), log2(accumulators), np.log2(spill),
        *segments, log2(nest.parallel), np.log2(imbalance), log2(total * slowdown), log2(arithmetic),
        log2(instructions), log2(memory), log2(overhead), *log2(lines).T, *fits,
        log2(acc.at_level(footprint, task)), log2(flops / np.maximum(memory, 1)),
        log2(flops / np.maximum(lines[:, 0], 1)), log2(flops / np.maximum(lines[:, 1], 1)), log2(estimate),
        np.bincount(a.statement, minlength=len(total)) - 1, log2(gathered),
    ]  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float64), estimate, flops


def _segments(reduces: acc.Bools, extent: Array) -> list[Array]:
    """log2 iterations of the innermost spatial loops, the reduction around them, and the next pair."""
    size = np.log2(extent)
    real = extent > 1
    # Segment number of each loop: it grows where spatial and reduction loops alternate.
    change = np.zeros_like(reduces, dtype=np.int64)
    state = np.zeros(len(reduces), dtype=bool)
    for column in range(reduces.shape[1]):
        now = np.where(real[:, column], reduces[:, column], state)
        change[:, column] = now != state
        state = now
    number = np.cumsum(change, axis=1)
    return [(size * (number == k)).sum(axis=1) for k in range(4)]


def _loops(x: Features, nest: Nests, a: Accesses, base: acc.Ints, hardware: Hardware) -> None:
    """Features of loops: the largest over the statements inside."""
    rows, columns = np.nonzero(nest.kind >= 0)
    if not len(rows):
        return
    node = nest.loop_node + base[rows]
    extent, kind, total = nest.extent[rows, columns], nest.kind[rows, columns], nest.iters[rows, -1]
    inside = nest.iters[rows, columns]
    footprint = (
        np.add.reduceat(np.where(a.repeated[:, None], 0.0, a.lines), a.first, axis=0) * hardware.line_bytes
    )
    once, whole = footprint[rows, columns], footprint[rows, columns + 1]
    one_hot = [kind == k for k in range(5)]
    reduction = a.invariant[a.first][rows, columns] & a.store[a.first][rows]
    steps = log2(nest.max_step)[rows]
    largest = np.stack([
        log2(extent), *one_hot, log2(total / (inside * extent)), log2(inside), reduction, columns + 1.0,
        columns < nest.unrolled[rows], steps, nest.explicit[rows] > 0, log2(once), log2(whole),
        np.log2(np.maximum(once * extent / np.maximum(whole, 1.0), 1.0)),
    ], axis=1).astype(np.float64)  # fmt: skip
    order = np.argsort(node, kind="stable")
    each, first = np.unique(node[order], return_index=True)
    _put(x, each, "loop", np.maximum.reduceat(largest[order], first, axis=0))


def _totals(
    x: Features, roots: acc.Ints, of_module: acc.Ints, nest: Nests, estimate: Array, flops: Array, count: int
) -> None:
    start = OFFSETS["root"] + ROOT_COLUMNS.index("flops")
    largest, parallel = np.zeros(count), np.full(count, np.inf)
    np.maximum.at(largest, of_module, estimate)
    np.minimum.at(parallel, of_module, nest.parallel)
    parallel[np.isinf(parallel)] = 0.0
    statements = np.bincount(of_module, minlength=count).astype(np.float64)
    total: Array = np.bincount(of_module, weights=estimate, minlength=count).astype(np.float64)
    x[roots, start : start + 5] = np.stack(
        [log2(flops), statements, log2(total), log2(largest), log2(parallel)], axis=1
    )
