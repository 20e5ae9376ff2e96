"""How statements touch memory along the loops around them, for a whole batch of modules at once.

Shapes: S statements, A accesses, R index rows (the dimensions of each access in turn), D the depth of
the deepest loop nest. Loops are counted from the innermost. "At level k" means: over one run of the k
innermost loops, so level 0 is one iteration and level D the whole statement.

The footprint follows the working-set argument of the tiling literature (Wolf and Lam, PLDI 1991): the
deepest level whose footprint fits a cache is brought in once for each run of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.hardware import Hardware
from tuneassist.cost_model.program import Access, Buffer, Loop, Statement
from tuneassist.cost_model.syntax import PARALLEL, SERIAL, UNROLLED, VECTORIZED

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LLVM_UNROLL_BUDGET = 160.0
"""Instructions up to which LLVM unrolls an inner loop by itself: about half of its cost threshold (300)."""
UNROLL_DEPTH = 8
"""Loops that TVM unrolls at most, one in the other (`auto_max_depth` of its UnrollLoop)."""


@dataclass(frozen=True)
class Nests:
    """The loops around each statement."""

    loop_node: Ints
    """Node in its module of each loop of each statement in turn."""
    extent: Array
    """(S, D), 1 where there is no loop."""
    kind: Ints
    """(S, D), -1 where there is no loop."""
    depth: Ints
    """(S,)"""
    iters: Array
    """(S, D + 1): iterations at each level."""
    vector: Array
    """(S,): extent of the vectorised loop, 1 if there is none."""
    unrolled: Ints
    """(S,): level up to which the code is straight line: TVM's unrolling or LLVM's, whichever is more."""
    explicit: Ints
    """(S,): level up to which TVM unrolls."""
    max_step: Array
    parallel: Array
    """(S,): iterations of parallel loops."""


@dataclass(frozen=True)
class Accesses:
    """What each access does along its statement's loops."""

    statement: Ints
    node: Ints
    first: Ints
    """(S,): position of each statement's first access."""
    store: Bools
    repeated: Bools
    """(A,): reads what the statement stores (a reduction), so it is not counted again."""
    updates: Bools
    """(A,): stores what the statement also reads."""
    itemsize: Array
    buffer_bytes: Array
    local: Bools
    is_float: Bools
    stride: Array
    """(A, D): elements from one iteration to the next of each loop."""
    invariant: Bools
    """(A, D): the loop does not change the address."""
    elements: Array
    """(A, D + 1): distinct elements at each level."""
    lines: Array
    """(A, D + 1): distinct cache lines at each level."""


def nests(statements: Sequence[Statement], lanes: Array) -> Nests:
    """Lay out the loops of the statements and find what becomes straight-line code.

    Args:
        statements: S of them.
        lanes: (S,) elements of the statement's type in a vector register.
    """
    loops = _table((s.loops for s in statements), len(Loop._fields))
    depth = np.array([len(s.loops) for s in statements], dtype=np.int64)
    count, deepest = len(statements), int(depth.max(initial=0))
    row = np.repeat(np.arange(count), depth)
    column = np.arange(len(row)) - np.repeat(np.cumsum(depth) - depth, depth)
    extent, kind = np.ones((count, deepest)), np.full((count, deepest), -1, dtype=np.int64)
    extent[row, column], kind[row, column] = loops[:, 1], loops[:, 2]
    # The innermost pragma counts.
    annotated = np.flatnonzero(loops[:, 3])
    asked, innermost = np.unique(row[annotated], return_index=True)
    max_step, explicit_pragma = np.zeros(count), np.zeros(count, dtype=bool)
    max_step[asked] = loops[annotated[innermost], 3]
    explicit_pragma[asked] = loops[annotated[innermost], 4] != 0
    body = np.array([len(s.accesses) + sum(s.ops.values()) for s in statements], dtype=np.float64)
    iters = np.ones((count, deepest + 1))
    np.cumprod(extent, axis=1, out=iters[:, 1:])
    vectorised = kind == VECTORIZED
    vector = np.prod(np.where(vectorised, extent, 1.0), axis=1)
    steps = iters[:, 1:] / np.cumprod(np.where(vectorised, extent, 1.0), axis=1)
    below = np.cumsum((extent > 1) & ~vectorised, axis=1)
    forced = vectorised | (kind == UNROLLED)
    serial = forced | (kind == SERIAL)
    by_tvm = serial & (
        forced | (explicit_pragma[:, None] & (steps <= max_step[:, None]) & (below <= UNROLL_DEPTH))
    )
    instructions = body * np.ceil(vector / lanes)
    by_llvm = serial & (forced | (steps * instructions[:, None] <= LLVM_UNROLL_BUDGET))
    explicit, unasked = _run_length(by_tvm), _run_length(by_llvm)
    return Nests(
        loop_node=loops[:, 0], extent=extent, kind=kind, depth=depth, iters=iters, vector=vector,
        explicit=explicit, unrolled=np.maximum(explicit, unasked), max_step=max_step,
        parallel=np.prod(np.where(kind == PARALLEL, extent, 1.0), axis=1),
    )  # fmt: skip


def accesses(
    statements: Sequence[Statement],
    nest: Nests,
    buffers: Sequence[Buffer],
    first_buffer: Ints,
    hardware: Hardware,
) -> Accesses:
    """Follow every access along its loops.

    Args:
        statements: S of them, each with at least one access.
        nest: Their loops.
        buffers: Those of all modules.
        first_buffer: (S,) position of the first buffer of the statement's module.
        hardware: Gives the cache line.
    """
    deepest = nest.extent.shape[1]
    node, buffer, store, dims = _table((s.accesses for s in statements), len(Access._fields)).T
    statement = np.repeat(np.arange(len(statements)), [len(s.accesses) for s in statements])
    buffer = buffer + first_buffer[statement]
    store = store.astype(bool)
    last = np.cumsum(dims) - 1
    start = last - dims + 1
    of_row = np.repeat(np.arange(len(dims)), dims)
    shape = _extents(buffers, buffer[of_row], np.arange(len(of_row)) - last[of_row])
    step, span = _differences(statements, len(shape), deepest)

    extent = nest.extent[statement][of_row]
    region, distinct = np.ones((len(shape), deepest + 1)), np.ones((len(shape), deepest + 1))
    np.cumsum(span, axis=1, out=region[:, 1:])
    region[:, 1:] += 1
    np.minimum(region, shape[:, None], out=region)
    np.cumprod(np.where(span > 0, extent, 1.0), axis=1, out=distinct[:, 1:])
    np.minimum(distinct, region, out=distinct)
    elements = np.multiply.reduceat(distinct, start, axis=0)
    itemsize = np.array([b.itemsize for b in buffers])[buffer]
    run, run_distinct = _runs(region, distinct, shape, last, dims)
    lines = elements / run_distinct * (1.0 + (run - 1.0) * itemsize[:, None] / hardware.line_bytes)
    np.minimum(lines, elements, out=lines)

    multiplier = _row_major(shape, last, dims)
    stride = np.add.reduceat(step * multiplier[:, None], start, axis=0)
    reach = np.add.reduceat(span * multiplier[:, None], start, axis=0)
    first = np.searchsorted(statement, np.arange(len(statements)))
    mine = first[statement]
    repeated = (
        ~store & store[mine] & (buffer == buffer[mine])
        & (stride == stride[mine]).all(axis=1) & (reach == reach[mine]).all(axis=1)
    )  # fmt: skip
    return Accesses(
        statement=statement, node=node, first=first, store=store, repeated=repeated,
        updates=store & np.bincount(statement, repeated)[statement].astype(bool),
        itemsize=itemsize,
        buffer_bytes=np.array([b.bytes for b in buffers])[buffer],
        local=np.array([b.local for b in buffers])[buffer],
        is_float=np.array([b.is_float for b in buffers])[buffer],
        stride=stride, invariant=reach == 0, elements=elements, lines=lines,
    )  # fmt: skip


def fitting_level(footprint_bytes: Array, cache_bytes: float) -> Ints:
    """The outermost level whose footprint fits a cache.

    Args:
        footprint_bytes: (S, D + 1), growing along the levels.
        cache_bytes: Size of the cache.

    Returns:
        (S,) levels, 0 where even one iteration is too large.
    """
    level: Ints = np.maximum((footprint_bytes <= cache_bytes).sum(axis=1) - 1, 0)
    return level


def at_level(values: Array, level: Ints) -> Array:
    """Pick from (N, levels) the (N,) values at the levels given."""
    picked: Array = values[np.arange(len(values)), level]
    return picked


def _run_length(mask: Bools) -> Ints:
    """How many of each row's first entries are true in a row."""
    lengths: Ints = np.logical_and.accumulate(mask, axis=1).sum(axis=1)
    return lengths


def _table(rows: Iterable[Sequence[tuple[int, ...]]], width: int) -> Ints:
    """(rows, width) numbers of tuples that come in groups."""
    return np.fromiter(chain.from_iterable(chain.from_iterable(rows)), np.int64).reshape(-1, width)


def _extents(buffers: Sequence[Buffer], buffer: Ints, from_last: Ints) -> Array:
    """(R,) extent of each row's buffer in a dimension, counted back from the last one, which is 0.

    It is 1 where the buffer has no such dimension.
    """
    dims = np.array([len(b.shape) for b in buffers])
    flat = np.array([extent for b in buffers for extent in b.shape], dtype=np.float64)
    end = np.cumsum(dims) - 1
    there = -from_last < dims[buffer]
    return np.where(there, flat[np.where(there, end[buffer] + from_last, 0)], 1.0)


def _differences(statements: Sequence[Statement], rows: int, deepest: int) -> tuple[Array, Array]:
    """Each index row's step and span along each loop: (R, D) both; spans are absolute."""
    changes = [change for statement in statements for change in statement.changes]
    depth = np.repeat([len(s.loops) for s in statements], [len(s.changes) for s in statements])
    sizes = np.fromiter(map(len, changes), np.int64, rows)
    row, total = np.repeat(np.arange(rows), sizes), int(sizes.sum())
    point = np.fromiter(chain.from_iterable(changes), np.int64, total)
    change = np.fromiter(chain.from_iterable(c.values() for c in changes), np.float64, total)
    first = point >= 0
    # Points count loops from the outermost.
    column = depth[row] - 1 - np.where(first, point, ~point)
    step, span = np.zeros((rows, deepest)), np.zeros((rows, deepest))
    step[row[first], column[first]] = change[first]
    span[row[~first], column[~first]] = np.abs(change[~first])
    return step, span


def _runs(region: Array, distinct: Array, shape: Array, last: Ints, dims: Ints) -> tuple[Array, Array]:
    """Length of the contiguous runs of elements, and the distinct elements in one: (A, D + 1) both.

    The last dimension's region is contiguous; where it covers its dimension, the one before joins on.
    """
    run, within = region[last].copy(), distinct[last].copy()
    joined = region[last] >= shape[last][:, None]
    for back in range(1, int(dims.max(initial=1))):
        row = np.maximum(last - back, 0)
        joined &= (dims > back)[:, None]
        if not joined.any():
            break
        np.multiply(run, region[row], out=run, where=joined)
        np.multiply(within, distinct[row], out=within, where=joined)
        joined &= region[row] >= shape[row][:, None]
    return run, within


def _row_major(shape: Array, last: Ints, dims: Ints) -> Array:
    """(R,) elements that each index row counts for in a dense buffer."""
    multiplier = np.ones(len(shape))
    for back in range(1, int(dims.max(initial=1))):
        row = (last - back)[dims > back]
        multiplier[row] = multiplier[row + 1] * shape[row + 1]
    return multiplier
