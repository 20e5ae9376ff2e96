"""Index expressions along loops, on expressions made of plain classes named as TVM's."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tuneassist.cost_model.indices import Indices

EXTENTS = (6, 1, 35, 8)
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b if b else 0, "FloorMod": lambda a, b: a % b if b else 0,
    "Min": min, "Max": max,
}  # fmt: skip


def expr(kind: str, **fields: Any) -> Any:
    return type(kind, (SimpleNamespace,), {"__hash__": object.__hash__})(**fields)


LOOPS = [expr("Var", number=number) for number in range(len(EXTENTS))]


def drawn(random: np.random.Generator, depth: int) -> Any:
    """A random expression of the loops' variables."""
    if depth == 0 or random.random() < 0.2:
        return (
            random.choice(LOOPS) if random.random() < 0.7 else expr("IntImm", value=int(random.integers(9)))
        )
    kind = str(random.choice(list(OPERATIONS)))
    right = drawn(random, depth - 1)
    if kind in ("Mul", "FloorDiv", "FloorMod") and random.random() < 0.7:
        right = expr("IntImm", value=int(random.integers(9)))
    return expr(kind, a=drawn(random, depth - 1), b=right)


def evaluated(tree: Any, at: list[int]) -> int:
    kind = type(tree).__name__
    if kind == "Var":
        return at[int(tree.number)]
    if kind == "IntImm":
        return int(tree.value)
    return OPERATIONS[kind](evaluated(tree.a, at), evaluated(tree.b, at))


def indices() -> Indices:
    result = Indices()
    for depth, (var, extent) in enumerate(zip(LOOPS, EXTENTS, strict=True)):
        if extent == 1:
            result.set_zero(var)
        else:
            result.set_loop(var, depth, extent)
    return result


@pytest.mark.parametrize("seed", range(50))
def test_changes_are_those_of_the_expression_at_each_point(seed: int) -> None:
    tree = drawn(np.random.default_rng(seed), 5)
    base, changes = indices().value(tree)
    assert base == evaluated(tree, [0] * len(EXTENTS))
    for depth, extent in enumerate(EXTENTS):
        if extent > 1:
            for point, iteration in ((depth, 1), (~depth, extent - 1)):
                at = [0] * len(EXTENTS)
                at[depth] = iteration
                assert base + changes.get(point, 0) == evaluated(tree, at)


def test_a_variable_is_worth_what_it_was_last_set_to() -> None:
    values, var = indices(), expr("Var")
    assert values.value(var) == (0, {})
    values.set(var, expr("Mul", a=LOOPS[3], b=expr("IntImm", value=4)))
    shifted = expr("Add", a=var, b=expr("IntImm", value=2))
    assert values.value(shifted) == (2, {3: 4, ~3: 28})
    values.set(var, LOOPS[0])
    assert values.value(shifted) == (2, {0: 1, ~0: 5})


def test_each_statement_makes_the_loads_of_a_let_once() -> None:
    values, var, load = indices(), expr("Var"), expr("TensorLoad")
    values.let(var, expr("Add", a=load, b=LOOPS[3]))
    for _ in range(2):
        values.begin_statement()
        assert values.value(expr("Add", a=var, b=var)) == (0, {3: 2, ~3: 14})
        assert values.loads == [load]
        values.loads.clear()


def test_what_is_unknown_is_zero() -> None:
    assert indices().value(expr("Add", a=expr("Novel"), b=LOOPS[0])) == (0, {0: 1, ~0: 5})
