"""What index expressions are worth along the loops around them, without symbolic algebra.

An expression is evaluated at 2L + 1 points of its L loops: all loops at 0, each loop alone at 1, each loop
alone at its last iteration. The differences are each loop's stride and span. An expression depends on few
of the loops, so a value is kept as what it is where all loops are at 0, and the changes from that at
those other points where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Changes = dict[int, int]
"""By point: d is where the loop of depth d (the outermost is 0) is at 1, and ~d where it is at its end."""
Value = tuple[int, Changes]
"""The value where all loops are at 0, and the changes from it. Values are shared: never modified."""

UNCHANGED: Changes = {}
_ZERO: Value = (0, UNCHANGED)


def _divide(a: int, b: int) -> int:
    return a // b if b else 0


def _modulo(a: int, b: int) -> int:
    return a % b if b else 0


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "FloorDiv": _divide, "Div": _divide, "FloorMod": _modulo, "Mod": _modulo, "Min": min, "Max": max,
    "Mul": lambda a, b: a * b,
}  # fmt: skip


def address_changes(indices: Sequence[Changes], shape: Sequence[int]) -> Changes:
    """How the row-major address of an access changes along loops, in elements.

    Args:
        indices: Of each dimension of the access.
        shape: Of the buffer.
    """
    total: Changes = {}
    for position, changes in enumerate(indices[: len(shape)]):
        size = math.prod(shape[position + 1 :])
        for point, change in changes.items():
            total[point] = total.get(point, 0) + change * size
    return total


class Indices:
    """Evaluates the index expressions of one function; variables are told apart by their handle."""

    def __init__(self) -> None:
        self.loads: list[Any] = []
        """Loads that the expressions evaluated contain; whoever takes them empties the list."""
        self._values: dict[int, Value] = {}
        self._lets: dict[int, Any] = {}
        self._evaluated_lets: list[int] = []

    def set_loop(self, var: Any, depth: int, extent: int) -> None:
        """From here on `var` is the variable of the loop of that depth."""
        self._values[hash(var)] = (0, {depth: 1, ~depth: extent - 1})

    def set_zero(self, var: Any) -> None:
        """From here on `var` is 0."""
        self._values[hash(var)] = _ZERO

    def set(self, var: Any, expr: Any) -> None:
        """From here on `var` is what the expression is worth."""
        self._values[hash(var)] = self.value(expr)

    def let(self, var: Any, expr: Any) -> None:
        """As `set`, but each statement that uses `var` makes the loads of the expression again."""
        self._lets[hash(var)] = expr

    def begin_statement(self) -> None:
        """The expressions that follow belong to another statement."""
        for handle in self._evaluated_lets:
            del self._values[handle]
        self._evaluated_lets.clear()

    def value(self, expr: Any) -> Value:
        """Evaluate an expression at the points; what is unknown is 0."""
        name = type(expr).__name__
        if name == "Var":
            return self._values.get(hash(expr)) or self._let(expr)
        if name == "IntImm":
            return expr.value, UNCHANGED
        if name in ("Add", "Sub", "Mul"):
            changes: Changes = {}
            return self._sum(expr, 1, changes), changes
        operate = _OPERATIONS.get(name)
        if operate is not None:
            return self._pointwise(operate, expr)
        if name == "TensorLoad":
            self.loads.append(expr)
        elif name == "Cast":
            return self.value(expr.value)
        elif name == "Ramp":
            return self.value(expr.base)
        return _ZERO

    def _sum(self, expr: Any, factor: int, changes: Changes) -> int:
        """Add `factor` times the expression: its changes to those given, the rest is returned.

        Sums of variables times numbers are by far the commonest, so they make no value for each term.
        """
        total = 0
        while True:
            name = type(expr).__name__
            if name == "Add":
                total += self._sum(expr.b, factor, changes)
                expr = expr.a
            elif name == "Sub":
                total += self._sum(expr.b, -factor, changes)
                expr = expr.a
            elif name == "Mul":
                right = expr.b
                if type(right).__name__ != "IntImm":
                    value = self._pointwise(_OPERATIONS[name], expr)
                    break
                factor *= right.value
                expr = expr.a
            elif name == "Var":
                value = self._values.get(hash(expr)) or self._let(expr)
                break
            else:
                value = self.value(expr)
                break
        base, own = value
        for point, change in own.items():
            changes[point] = changes.get(point, 0) + factor * change
        return total + factor * base

    def _pointwise(self, operate: Callable[[int, int], int], expr: Any) -> Value:
        a, a_changes = self.value(expr.a)
        b, b_changes = self.value(expr.b)
        base = operate(a, b)
        changes: Changes = {}
        if b_changes:
            for point in a_changes | b_changes:
                changes[point] = operate(a + a_changes.get(point, 0), b + b_changes.get(point, 0)) - base
        else:
            for point, change in a_changes.items():
                changes[point] = operate(a + change, b) - base
        return base, changes

    def _let(self, var: Any) -> Value:
        handle = hash(var)
        bound = self._lets.get(handle)
        if bound is None:
            return _ZERO
        value = self._values[handle] = self.value(bound)
        self._evaluated_lets.append(handle)
        return value
