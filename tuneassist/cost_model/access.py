"""How statements touch memory along the loops around them, for a whole batch of modules at once.

Shapes: S statements, A accesses, R index rows (the dimensions of each access in turn), D the depth of
the deepest loop nest. Loops are counted from the innermost. "At level k" means: over one run of the k
innermost loops, so level 0 is one iteration and level D the whole statement.

The footprint follows the working-set argument of the tiling literature (Wolf and Lam, PLDI 1991): the
deepest level whose footprint fits a cache is brought in once for each run of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.hardware import Hardware
from tuneassist.cost_model.program import Buffer, Statement
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
    count, deepest = len(statements), max((len(s.loops) for s in statements), default=0)
    extent, kind = np.ones((count, deepest)), np.full((count, deepest), -1, dtype=np.int64)
    depth = np.array([len(s.loops) for s in statements], dtype=np.int64)
    max_step, explicit_pragma, body = np.zeros(count), np.zeros(count, dtype=bool), np.ones(count)
    for row, statement in enumerate(statements):
        body[row] = len(statement.accesses) + sum(statement.ops.values())
        if statement.loops:
            extent[row, : depth[row]] = [loop.extent for loop in statement.loops]
            kind[row, : depth[row]] = [loop.kind for loop in statement.loops]
            pragma = next((loop for loop in statement.loops if loop.unroll_max_step), None)
            if pragma is not None:
                max_step[row], explicit_pragma[row] = pragma.unroll_max_step, bool(pragma.unroll_explicit)
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
        extent=extent, kind=kind, depth=depth, iters=iters, vector=vector, explicit=explicit,
        unrolled=np.maximum(explicit, unasked), max_step=max_step,
        parallel=np.prod(np.where(kind == PARALLEL, extent, 1.0), axis=1),
    )  # fmt: skip


def accesses(
    statements: Sequence[tuple[Statement, Sequence[Buffer]]], nest: Nests, hardware: Hardware
) -> Accesses:
    """Follow every access along its loops.

    Args:
        statements: S of them, each with at least one access, and their module's buffers.
        nest: Their loops.
        hardware: Gives the cache line.
    """
    deepest = nest.extent.shape[1]
    flat = [
        (row, access, buffers[access.buffer])
        for row, (s, buffers) in enumerate(statements)
        for access in s.accesses
    ]
    shape = np.array([d for _, access, buffer in flat for d in _shape(buffer, access.dims)], dtype=np.float64)
    dims = np.array([access.dims for _, access, _ in flat], dtype=np.int64)
    last = np.cumsum(dims) - 1
    start = last - dims + 1
    of_row = np.repeat(np.arange(len(flat)), dims)
    statement = np.array([row for row, _, _ in flat], dtype=np.int64)
    step, span = _differences([s for s, _ in statements], len(shape), deepest)

    extent = nest.extent[statement][of_row]
    region, distinct = np.ones((len(shape), deepest + 1)), np.ones((len(shape), deepest + 1))
    np.cumsum(span, axis=1, out=region[:, 1:])
    region[:, 1:] += 1
    np.minimum(region, shape[:, None], out=region)
    np.cumprod(np.where(span > 0, extent, 1.0), axis=1, out=distinct[:, 1:])
    np.minimum(distinct, region, out=distinct)
    elements = np.multiply.reduceat(distinct, start, axis=0)
    itemsize = np.array([buffer.itemsize for _, _, buffer in flat])
    run, run_distinct = _runs(region, distinct, shape, last, dims)
    lines = elements / run_distinct * (1.0 + (run - 1.0) * itemsize[:, None] / hardware.line_bytes)
    np.minimum(lines, elements, out=lines)

    multiplier = _row_major(shape, last, dims)
    stride = np.add.reduceat(step * multiplier[:, None], start, axis=0)
    reach = np.add.reduceat(span * multiplier[:, None], start, axis=0)
    first = np.searchsorted(statement, np.arange(len(statements)))
    buffer = np.array([access.buffer for _, access, _ in flat], dtype=np.int64)
    store = np.array([access.store for _, access, _ in flat])
    mine = first[statement]
    repeated = (
        ~store & store[mine] & (buffer == buffer[mine])
        & (stride == stride[mine]).all(axis=1) & (reach == reach[mine]).all(axis=1)
    )  # fmt: skip
    return Accesses(
        statement=statement, node=np.array([access.node for _, access, _ in flat], dtype=np.int64),
        first=first, store=store, repeated=repeated,
        updates=store & np.bincount(statement, repeated)[statement].astype(bool),
        itemsize=itemsize,
        buffer_bytes=np.array([math.prod(b.shape) * b.itemsize for _, _, b in flat]),
        local=np.array([b.local for _, _, b in flat]), is_float=np.array([b.is_float for _, _, b in flat]),
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


def _shape(buffer: Buffer, dims: int) -> tuple[int, ...]:
    """The buffer's shape with as many dimensions as the access has indices."""
    if len(buffer.shape) == dims:
        return buffer.shape
    return (1,) * (dims - len(buffer.shape)) + buffer.shape[len(buffer.shape) - dims :] if dims else ()


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
