"""One pass over a scheduled module: its tree of nodes, and each statement's accesses along its loops.

What costs here is reading fields across TVM's FFI (about 0.1 us each), so each is read once, nodes are
told apart by their class, and variables by their handle.

An index expression is not analysed symbolically. It is evaluated with numpy at 2L + 1 points of the L
loops around the statement: all loops at 0, each loop alone at 1, each loop alone at its last iteration.
The differences are each loop's stride and span.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.program import Access, Buffer, Loop, Statement, Walk
from tuneassist.cost_model.syntax import (
    ARITHMETIC,
    INTEGER,
    LEAVES,
    THREAD,
    TYPE_ID,
    call_kind,
    element_type,
)

IntArray = npt.NDArray[np.int64]


def walk(mod: Any, *, labelled: bool = False) -> Walk:
    """Read a scheduled module in block form.

    Args:
        mod: A `tvm.IRModule`; every PrimFunc in it is walked under one root.
        labelled: Whether to keep a readable label for each node (reading names is slow).
    """
    from tuneassist.tvm_api import array_items

    walker = _Walker(array_items, labelled)
    for _, function in sorted(mod.functions.items(), key=lambda item: str(item[0].name_hint)):
        if type(function).__name__ == "PrimFunc":
            try:
                walker.statement(function.body, 0)
            except RecursionError:
                walker.walk.unknown["nested too deeply"] += 1
        else:
            walker.unknown(function, 0)
    return walker.walk


class _Walker:
    def __init__(self, items: Callable[[Any], list[Any]], labelled: bool) -> None:
        self.walk = Walk(labels=[] if labelled else None)
        self._path: list[Loop] = []
        self._loop_of: dict[int, int] = {}
        """Depth in the path of each loop variable, by handle; -1 for a loop of one iteration."""
        self._bound: dict[int, Any] = {}
        """Expression of each block iteration variable, by handle."""
        self._buffer_of: dict[int, int] = {}
        self._local: set[int] = set()
        # Points of the statement at hand, and what variables are worth there.
        self._points: IntArray = np.zeros((0, 1), dtype=np.int64)
        self._values: dict[int, Any] = {}
        self._indirect: list[Any] = []
        self._items = items
        self.node("root", -1, "function")

    def node(self, kind: str, parent: int, label: str = "") -> int:
        walk = self.walk
        walk.types.append(TYPE_ID[kind])
        walk.parents.append(parent)
        if walk.labels is not None:
            walk.labels.append(label or kind)
        return len(walk.types) - 1

    def unknown(self, obj: Any, parent: int) -> None:
        name = type(obj).__name__
        self.walk.unknown[name] += 1
        self.node("unknown", parent, name)

    # statements

    def statement(self, stmt: Any, parent: int) -> None:
        visit = _STATEMENTS.get(type(stmt).__name__)
        if visit is None:
            self._generic(stmt, parent)
        else:
            visit(self, stmt, parent)

    def _generic(self, stmt: Any, parent: int) -> None:
        """A statement class never seen: counted, and what it holds is walked as far as it looks known."""
        self.unknown(stmt, parent)
        node = len(self.walk.types) - 1
        for name in ("body", "then_case", "else_case"):
            inner = getattr(stmt, name, None)
            if inner is not None and type(inner).__name__ in _STATEMENTS:
                self.statement(inner, node)

    def seq(self, stmt: Any, parent: int) -> None:
        for inner in self._items(stmt.seq):
            self.statement(inner, parent)

    def loop(self, stmt: Any, parent: int) -> None:
        """A nest of loops: one loop in the other is by far the commonest, so no call is made for each."""
        walk, path, loop_of = self.walk, self._path, self._loop_of
        opened: list[tuple[Loop, int]] = []
        while type(stmt).__name__ == "For":
            extent_node, annotations = stmt.extent, stmt.annotations
            extent = extent_node.value if type(extent_node).__name__ == "IntImm" else 1
            max_step, explicit = _unrolling(annotations) if len(annotations) else (0, 0)
            var = stmt.loop_var
            if extent == 1 and not max_step:
                # Nothing of it is left in the compiled kernel.
                loop_of[hash(var)] = -1
            else:
                label = f"for {var.name} in {extent}" if walk.labels is not None else ""
                parent = self.node("loop", parent, label)
                loop = Loop(parent, extent, min(int(stmt.kind), THREAD), max_step, explicit)
                loop_of[hash(var)] = len(path)
                path.append(loop)
                walk.loops.append(loop)
                opened.append((loop, len(walk.statements)))
            stmt = stmt.body
        self.statement(stmt, parent)
        for loop, before in reversed(opened):
            path.pop()
            if len(walk.statements) == before and len(walk.types) == loop.node + 1:
                self._drop_last(loop)

    def _drop_last(self, loop: Loop) -> None:
        """Forget a loop in which nothing is left."""
        walk = self.walk
        walk.types.pop()
        walk.parents.pop()
        walk.loops.remove(loop)
        if walk.labels is not None:
            walk.labels.pop()

    def realize(self, stmt: Any, parent: int) -> None:
        self.block(stmt.block, parent, stmt)

    def block(self, block: Any, parent: int, realize: Any = None) -> None:
        annotations = block.annotations
        n_annotations = len(annotations)
        if n_annotations and "meta_schedule.layout_rewrite_preproc" in annotations:
            # Compilation removes it: the weight is stored in the new layout beforehand.
            return
        kinds = [0, 0, 0]
        iter_vars = self._items(block.iter_vars)
        if iter_vars:
            values = self._items(realize.iter_values) if realize is not None else []
            for iter_var, value in zip(iter_vars, values, strict=False):
                var = iter_var.var
                self._bound[hash(var)] = value
                iter_type = int(iter_var.iter_type)
                kinds[0 if iter_type == 0 else 1 if iter_type == 2 else 2] += 1
        init = block.init
        predicate = realize is not None and type(realize.predicate).__name__ != "IntImm"
        node = parent
        if parent or iter_vars or n_annotations:
            label = f"block {block.name_hint}" if self.walk.labels is not None else ""
            node = self.node("block", parent, label)
            flags = (int(init is not None), int(predicate), n_annotations)
            self.walk.blocks.append((node, kinds[0], kinds[1], kinds[2], *flags))
        for buffer in self._items(block.alloc_buffers):
            self._local.add(hash(buffer))
            label = f"alloc {buffer.name}" if self.walk.labels is not None else ""
            self.walk.allocs.append((self.node("alloc", node, label), self._buffer(buffer)))
        if init is not None:
            self.statement(init, node)
        self.statement(block.body, node)

    def store(self, stmt: Any, parent: int) -> None:
        buffer = stmt.buffer
        label = f"store {buffer.name}" if self.walk.labels is not None else ""
        node = self.node("store", parent, label)
        statement = self._begin(node)
        self._access(node, buffer, stmt.indices, statement, store=True)
        self._expression(stmt.value, statement)
        self._finish(statement)

    def evaluate(self, stmt: Any, parent: int) -> None:
        value = stmt.value
        if type(value).__name__ in LEAVES:
            return
        statement = self._begin(self.node("call", parent))
        self._expression(value, statement)
        self._finish(statement)

    def branch(self, stmt: Any, parent: int) -> None:
        node = self.node("if", parent)
        statement = self._begin(node)
        self._expression(stmt.condition, statement)
        self._finish(statement)
        self.statement(stmt.then_case, node)
        if stmt.else_case is not None:
            self.statement(stmt.else_case, node)

    def let(self, stmt: Any, parent: int) -> None:
        self._bound[hash(stmt.var)] = stmt.value
        body = getattr(stmt, "body", None)
        if body is not None:
            self.statement(body, parent)

    def attribute(self, stmt: Any, parent: int) -> None:
        self.statement(stmt.body, parent)

    # statements' expressions

    def _begin(self, node: int) -> Statement:
        loops = tuple(reversed(self._path))
        depth = len(loops)
        if len(self._points) != depth:
            self._points = np.zeros((depth, 2 * depth + 1), dtype=np.int64)
        points = self._points
        for position, loop in enumerate(loops):
            points[position, 1 + position] = 1
            points[position, 1 + depth + position] = loop.extent - 1
        self._values = {}
        return Statement(node, loops)

    def _finish(self, statement: Statement) -> None:
        index = len(self.walk.statements)
        for kind, count in statement.ops.items():
            self.walk.ops.append((self.node(kind, statement.node), count, index))
        self.walk.statements.append(statement)

    def _expression(self, expr: Any, statement: Statement) -> None:
        """Count the arithmetic of an expression and note its loads."""
        name = type(expr).__name__
        kind = ARITHMETIC.get(name)
        if kind is not None:
            statement.ops[kind] += 1
            self._expression(expr.a, statement)
            self._expression(expr.b, statement)
        elif name == "TensorLoad":
            self._load(expr, statement)
        elif name in LEAVES:
            return
        elif name == "Call":
            statement.ops[call_kind(expr.op)] += 1
            for arg in self._items(expr.args):
                self._expression(arg, statement)
        elif name == "Select":
            statement.ops["select"] += 1
            for arg in (expr.condition, expr.true_value, expr.false_value):
                self._expression(arg, statement)
        elif name in ("Cast", "Broadcast", "Not"):
            statement.ops["cast" if name == "Cast" else "compare"] += 1
            self._expression(expr.a if name == "Not" else expr.value, statement)
        elif name == "Let":
            self._bound[hash(expr.var)] = expr.value
            self._expression(expr.value, statement)
            self._expression(expr.body, statement)
        elif name == "Ramp":
            self._expression(expr.base, statement)
        else:
            self.walk.unknown[name] += 1
            statement.ops["unknown"] += 1

    def _load(self, expr: Any, statement: Statement) -> None:
        buffer = expr.source
        label = f"load {buffer.name}" if self.walk.labels is not None else ""
        node = self.node("load", statement.node, label)
        self._access(node, buffer, expr.indices, statement, store=False)

    def _access(self, node: int, buffer: Any, indices: Any, statement: Statement, *, store: bool) -> None:
        values = [self._value(index) for index in self._items(indices)] or [0]
        statement.values += values
        statement.accesses.append(Access(node, self._buffer(buffer), store, len(values)))
        # Loads that an index itself makes.
        indirect, self._indirect = self._indirect, []
        for load in indirect:
            self._load(load, statement)

    def _buffer(self, buffer: Any) -> int:
        handle = hash(buffer)
        known = self._buffer_of.get(handle)
        if known is None:
            type_ = buffer.ty
            shape = tuple(
                d.value if type(d).__name__ == "IntImm" else 1 for d in self._items(type_.shape)
            ) or (1,)
            bits, is_float = element_type(type_.dtype)
            known = self._buffer_of[handle] = len(self.walk.buffers)
            self.walk.buffers.append(Buffer(shape, bits / 8, is_float, handle in self._local))
        return known

    def _value(self, expr: Any) -> Any:
        """The expression at the points: an int, or an array (2L + 1,). What is unknown counts as 0."""
        name = type(expr).__name__
        if name == "Var":
            value = self._values.get(hash(expr))
            return self._variable(expr) if value is None else value
        if name == "IntImm":
            return expr.value
        operate = INTEGER.get(name)
        if operate is not None:
            right = expr.b
            return operate(
                self._value(expr.a), right.value if type(right).__name__ == "IntImm" else self._value(right)
            )
        if name == "TensorLoad":
            self._indirect.append(expr)
            return 0
        if name == "Cast":
            return self._value(expr.value)
        if name == "Ramp":
            return self._value(expr.base)
        return 0

    def _variable(self, var: Any) -> Any:
        handle = hash(var)
        depth = self._loop_of.get(handle)
        if depth is None:
            bound = self._bound.get(handle)
            value = 0 if bound is None else self._value(bound)
        else:
            value = 0 if depth < 0 else self._points[len(self._path) - 1 - depth].copy()
        self._values[handle] = value
        return value


def _unrolling(annotations: Any) -> tuple[int, int]:
    """The step limit and whether it is explicit, as MetaSchedule's postprocessor annotates loops."""
    try:
        return (
            int(annotations.get("pragma_auto_unroll_max_step", 0)),
            int(annotations.get("pragma_unroll_explicit", 0)),
        )
    except (TypeError, ValueError):
        return 0, 0


_STATEMENTS: dict[str, Callable[[_Walker, Any, int], None]] = {
    "SeqStmt": _Walker.seq, "For": _Walker.loop, "SBlockRealize": _Walker.realize, "SBlock": _Walker.block,
    "BufferStore": _Walker.store, "Evaluate": _Walker.evaluate, "IfThenElse": _Walker.branch,
    "LetStmt": _Walker.let, "Bind": _Walker.let, "AttrStmt": _Walker.attribute,
}  # fmt: skip
