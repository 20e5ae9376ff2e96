"""One pass over a scheduled module: its tree of nodes, and each statement's accesses along its loops.

What costs here is reading fields across TVM's FFI (about 0.1 us each, three times that for an item of an
array), so each is read once, nodes are told apart by their class, and variables by their handle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tuneassist.cost_model.indices import UNCHANGED, Indices
from tuneassist.cost_model.program import Access, Buffer, Loop, Statement, Walk
from tuneassist.cost_model.syntax import (
    ARITHMETIC,
    LEAVES,
    THREAD,
    TYPE_ID,
    call_kind,
    element_type,
)


def walk(mod: Any, *, labelled: bool = False) -> Walk:
    """Read one scheduled module in block form, as `walk_all` does."""
    return walk_all([mod], labelled=labelled)[0]


def walk_all(mods: Sequence[Any], *, labelled: bool = False) -> list[Walk]:
    """Read scheduled modules in block form.

    Args:
        mods: `tvm.IRModule`s; of each, every PrimFunc is walked under one root.
        labelled: Whether to keep a readable label for each node (reading names is slow).
    """
    shared = _Shared()
    return [_walk(mod, shared, labelled) for mod in mods]


def _walk(mod: Any, shared: _Shared, labelled: bool) -> Walk:
    walker = _Walker(shared, labelled)
    for _, function in sorted(mod.functions.items(), key=lambda item: str(item[0].name_hint)):
        if type(function).__name__ == "PrimFunc":
            try:
                walker.statement(function.body, 0)
            except RecursionError:
                walker.walk.unknown["nested too deeply"] += 1
        else:
            walker.unknown(function, 0)
    return walker.walk


class _Shared:
    """Facts of objects that modules of a batch have in common, by handle: valid while the modules live."""

    def __init__(self) -> None:
        from tuneassist import tvm_api

        self.items = tvm_api.array_items
        self.map_size = tvm_api.map_size
        self._handle = tvm_api.handle
        self._iter_vars: dict[int, tuple[list[Any], tuple[int, int, int]]] = {}
        self._buffers: dict[int, tuple[tuple[int, ...], float, bool, float]] = {}

    def iter_vars(self, array: Any) -> tuple[list[Any], tuple[int, int, int]]:
        """A block's variables, and how many of them are spatial, reductions, and others."""
        key = self._handle(array)
        known = self._iter_vars.get(key)
        if known is None:
            iter_vars, counts = self.items(array), [0, 0, 0]
            for iter_var in iter_vars:
                kind = iter_var.iter_type
                counts[0 if kind == 0 else 1 if kind == 2 else 2] += 1
            known = [iter_var.var for iter_var in iter_vars], (counts[0], counts[1], counts[2])
            self._iter_vars[key] = known
        return known

    def buffer(self, buffer: Any) -> tuple[tuple[int, ...], float, bool, float]:
        """A buffer's shape, bytes of an element, whether elements are floats, and bytes in all."""
        key = hash(buffer)
        known = self._buffers.get(key)
        if known is None:
            type_ = buffer.ty
            extents = self.items(type_.shape)
            shape = tuple(d.value if type(d).__name__ == "IntImm" else 1 for d in extents) or (1,)
            bits, is_float = element_type(type_.dtype)
            itemsize = bits / 8
            known = self._buffers[key] = shape, itemsize, is_float, math.prod(shape) * itemsize
        return known


class _Walker:
    def __init__(self, shared: _Shared, labelled: bool) -> None:
        self.walk = Walk(labels=[] if labelled else None)
        self._shared = shared
        self._items = shared.items
        self._path: list[Loop] = []
        self._indices = Indices()
        self._buffer_of: dict[int, int] = {}
        self._local: set[int] = set()
        self.node("root", -1, "function")

    def node(self, kind: str, parent: int, label: str = "") -> int:
        walk = self.walk
        number = len(walk.types)
        walk.types.append(TYPE_ID[kind])
        walk.parents.append(parent)
        if walk.labels is not None:
            walk.labels.append(label or kind)
        return number

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
        walk, path, indices, map_size = self.walk, self._path, self._indices, self._shared.map_size
        outside = len(path)
        while type(stmt).__name__ == "For":
            extent_node, annotations = stmt.extent, stmt.annotations
            extent = extent_node.value if type(extent_node).__name__ == "IntImm" else 1
            max_step, explicit = _unrolling(annotations) if map_size(annotations) else (0, 0)
            var = stmt.loop_var
            if extent == 1 and not max_step:
                # Nothing of it is left in the compiled kernel.
                indices.set_zero(var)
            else:
                label = f"for {var.name} in {extent}" if walk.labels is not None else ""
                parent = self.node("loop", parent, label)
                kind = stmt.kind
                loop = Loop(parent, extent, kind if kind < THREAD else THREAD, max_step, explicit)
                indices.set_loop(var, len(path), extent)
                path.append(loop)
                walk.loops.append(loop)
            stmt = stmt.body
        self.statement(stmt, parent)
        while len(path) > outside:
            loop = path.pop()
            if len(walk.types) == loop.node + 1:
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
        n_annotations = self._shared.map_size(annotations)
        if n_annotations and "meta_schedule.layout_rewrite_preproc" in annotations:
            # Compilation removes it: the weight is stored in the new layout beforehand.
            return
        iter_vars, kinds = self._shared.iter_vars(block.iter_vars)
        if realize is not None and iter_vars:
            for var, value in zip(iter_vars, self._items(realize.iter_values), strict=False):
                self._indices.set(var, value)
        init = block.init
        predicate = realize is not None and type(realize.predicate).__name__ != "IntImm"
        node = parent
        if parent or iter_vars or n_annotations:
            label = f"block {block.name_hint}" if self.walk.labels is not None else ""
            node = self.node("block", parent, label)
            flags = (int(init is not None), int(predicate), n_annotations)
            self.walk.blocks.append((node, *kinds, *flags))
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
        self._indices.let(stmt.var, stmt.value)
        body = getattr(stmt, "body", None)
        if body is not None:
            self.statement(body, parent)

    def attribute(self, stmt: Any, parent: int) -> None:
        self.statement(stmt.body, parent)

    # statements' expressions

    def _begin(self, node: int) -> Statement:
        self._indices.begin_statement()
        path = self._path
        return Statement(node, tuple(reversed(path)), math.prod([loop.extent for loop in path]))

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
            statement.count(kind)
            self._expression(expr.a, statement)
            self._expression(expr.b, statement)
        elif name == "TensorLoad":
            self._load(expr, statement)
        elif name in LEAVES:
            return
        elif name == "Call":
            statement.count(call_kind(expr.op))
            for arg in self._items(expr.args):
                self._expression(arg, statement)
        elif name == "Select":
            statement.count("select")
            for arg in (expr.condition, expr.true_value, expr.false_value):
                self._expression(arg, statement)
        elif name in ("Cast", "Broadcast", "Not"):
            statement.count("cast" if name == "Cast" else "compare")
            self._expression(expr.a if name == "Not" else expr.value, statement)
        elif name == "Let":
            self._indices.let(expr.var, expr.value)
            self._expression(expr.value, statement)
            self._expression(expr.body, statement)
        elif name == "Ramp":
            self._expression(expr.base, statement)
        else:
            self.walk.unknown[name] += 1
            statement.count("unknown")

    def _load(self, expr: Any, statement: Statement) -> None:
        buffer = expr.source
        label = f"load {buffer.name}" if self.walk.labels is not None else ""
        node = self.node("load", statement.node, label)
        self._access(node, buffer, expr.indices, statement, store=False)

    def _access(self, node: int, buffer: Any, indices: Any, statement: Statement, *, store: bool) -> None:
        value = self._indices.value
        changes = [value(index)[1] for index in self._items(indices)] or [UNCHANGED]
        statement.changes += changes
        statement.accesses.append(Access(node, self._buffer(buffer), store, len(changes)))
        if self._indices.loads:
            # Loads that an index itself makes.
            indirect, self._indices.loads = self._indices.loads, []
            for load in indirect:
                self._load(load, statement)

    def _buffer(self, buffer: Any) -> int:
        handle = hash(buffer)
        known = self._buffer_of.get(handle)
        if known is None:
            known = self._buffer_of[handle] = len(self.walk.buffers)
            self.walk.buffers.append(Buffer(*self._shared.buffer(buffer), handle in self._local))
        return known


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
