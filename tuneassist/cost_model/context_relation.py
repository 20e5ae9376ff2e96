"""Context relation features: AutoTVM's fixed extractor, as a baseline.

Re-implemented from the description of Chen et al., "Learning to Optimize Tensor Programs" (2018, arXiv
1805.08166), since TVM no longer has it. It looks at the statement of a module that does most of the work.
*Context* is what is known of each loop around it, and of each (buffer, loop) pair. *Relations* sum the
context up independently of the number of loops: for each threshold t = 0..19, the largest value that one
quantity takes among the loops on which another is at most t.

Where the description leaves a choice: quantities of two values are taken as log2 of |x| + 1, with x's sign,
before thresholds are applied; a relation without such a loop is 0. A thread is one iteration of the parallel
loops, so its counts say what one core touches. Loops of one iteration are left out, as they are of the graph.
AutoTVM appended the values of a template's knobs; MetaSchedule has no fixed knobs, and the two unrolling
pragmas stand for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.indices import Changes, address_changes
from tuneassist.cost_model.program import Loop, Statement, Walk
from tuneassist.cost_model.row_trees import Rows
from tuneassist.cost_model.syntax import PARALLEL, THREAD
from tuneassist.cost_model.walk import walk_all

if TYPE_CHECKING:
    from tuneassist.tvm_api import IRModule

Array = npt.NDArray[np.float64]

BUFFERS = 5
"""Accesses that are kept: the store, then loads in the order of the statement."""
LOOPS = 12
"""Innermost loops whose context is kept."""
THRESHOLDS = 20
RELATIONS = (("count", "reuse"), ("reuse", "count"), ("count", "top_down"), ("top_down", "count"))
"""(x, y): the largest y among the loops whose x is at most the threshold."""

_LOOP = ("length", "level", "top_down", "bottom_up", "serial", "parallel", "vectorized", "unrolled", "thread")
_ACCESS = ("stride", "mod", "count", "reuse", "thread_count", "thread_reuse")
COLUMNS = (
    *(f"buffer{b}.{y}_by_{x}.{t}" for b in range(BUFFERS) for x, y in RELATIONS for t in range(THRESHOLDS)),
    *(f"loop{i}.{name}" for i in range(LOOPS) for name in _LOOP),
    *(f"loop{i}.buffer{b}.{name}" for i in range(LOOPS) for b in range(BUFFERS) for name in _ACCESS),
    "unroll_max_step", "unroll_explicit",
)  # fmt: skip
"""Of the feature vector: relations of each buffer, context of each loop (0 is the innermost), pragmas."""


def features(mods: Sequence[IRModule]) -> list[Rows]:
    """Extract the features of scheduled modules (block form, not lowered).

    Returns:
        For each module one row: `values` is (1, len(COLUMNS)) float32; all 0 for a module without a store.
    """
    return [Rows(_vector(walked).astype(np.float32)[None, :]) for walked in walk_all(mods)]


def _vector(walked: Walk) -> Array:
    statements = [s for s in walked.statements if s.accesses and s.accesses[0].store]
    if not statements:
        return np.zeros(len(COLUMNS))
    main = max(statements, key=_work)
    loops, touches = _loop_context(main.loops), _touches(walked, main)
    relations = np.zeros((BUFFERS, len(RELATIONS), THRESHOLDS))
    for b, touch in enumerate(touches):
        quantities = {"count": touch[:, 2], "reuse": touch[:, 3], "top_down": loops[:, 2]}
        for r, (x, y) in enumerate(RELATIONS):
            relations[b, r] = _relation(quantities[x], quantities[y])
    kept = min(len(loops), LOOPS)
    of_loops, of_pairs = np.zeros((LOOPS, len(_LOOP))), np.zeros((LOOPS, BUFFERS, len(_ACCESS)))
    of_loops[:kept] = loops[:kept]
    for b, touch in enumerate(touches):
        of_pairs[:kept, b] = touch[:kept]
    pragma = next((loop for loop in main.loops if loop.unroll_max_step), None)
    pragmas = [0, 0] if pragma is None else [pragma.unroll_max_step, pragma.unroll_explicit]
    return np.concatenate([relations.ravel(), of_loops.ravel(), of_pairs.ravel(), _log(pragmas)])


def _work(statement: Statement) -> tuple[int, int, int]:
    """Iterations; then depth; then accesses, since a reduction's initialisation may sit in the same nest."""
    return statement.iterations, len(statement.loops), len(statement.accesses)


def _loop_context(loops: Sequence[Loop]) -> Array:
    """(loops, len(_LOOP)) of a nest, innermost first."""
    extents = np.array([loop.extent for loop in loops], dtype=np.float64)
    inside = np.cumprod(extents)
    outside = np.cumprod(extents[::-1])[::-1]
    level = np.arange(len(loops), 0, -1)
    kinds = np.array([loop.kind for loop in loops], dtype=np.int64)
    one_hot = (kinds[:, None] == np.arange(THREAD + 1)).astype(np.float64)
    return np.column_stack([_log(extents), _log(level), _log(outside), _log(inside), one_hot])


def _touches(walked: Walk, statement: Statement) -> list[Array]:
    """Of each access that is kept, (loops, len(_ACCESS)) along the loops, innermost first."""
    extents = np.array([loop.extent for loop in statement.loops], dtype=np.float64)
    threads = np.array([loop.kind in (PARALLEL, THREAD) for loop in statement.loops], dtype=bool)
    found, start = [], 0
    for access in statement.accesses[:BUFFERS]:
        indices = statement.changes[start : start + access.dims]
        start += access.dims
        address = address_changes(indices, walked.buffers[access.buffer].shape)
        found.append(_touch(address, extents, threads))
    return found


def _touch(address: Changes, extents: Array, threads: npt.NDArray[np.bool_]) -> Array:
    """How an access moves along loops, from how its address changes."""
    inwards = range(len(extents) - 1, -1, -1)
    step = np.array([address.get(depth, 0) for depth in inwards], dtype=np.float64)
    reach = np.array([address.get(~depth, 0) for depth in inwards], dtype=np.float64)
    moves = (step != 0) | (reach != 0)
    # A loop that runs through a division moves only every so many iterations.
    stride = np.where(step != 0, step, reach / np.maximum(extents - 1, 1))
    wraps = (step != 0) & (reach != step * (extents - 1))
    mod = np.where(wraps, np.abs(reach / np.where(step != 0, step, 1.0)) + 1, -1.0)
    count = np.cumprod(np.where(moves, extents, 1.0))
    reuse = np.cumprod(np.where(moves, 1.0, extents))
    # How many times what one thread touches all threads inside a loop touch; 0 for loops within a thread.
    thread_count = np.where(threads, count / np.cumprod(np.where(moves & ~threads, extents, 1.0)), 0.0)
    thread_reuse = np.where(threads, reuse / np.cumprod(np.where(moves | threads, 1.0, extents)), 0.0)
    return np.column_stack([_log(v) for v in (stride, mod, count, reuse, thread_count, thread_reuse)])


def _relation(x: Array, y: Array) -> Array:
    """(THRESHOLDS,) the largest y among the loops whose x is at most t; 0 where there is none."""
    reached = x[None, :] <= np.arange(THRESHOLDS)[:, None] + 1e-9
    largest: Array = np.where(reached, y[None, :], 0.0).max(axis=1, initial=0.0)
    return largest


def _log(values: Any) -> Array:
    """sign(x) log2(|x| + 1)"""
    x = np.asarray(values, dtype=np.float64)
    result: Array = np.sign(x) * np.log2(np.abs(x) + 1)
    return result
