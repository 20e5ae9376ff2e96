"""What the classes and operators of TVM's IR are called here."""

from __future__ import annotations

from typing import Any

NODE_TYPES = (
    "root", "loop", "block", "store", "load", "if", "alloc", "call",
    "add", "mul", "div", "minmax", "compare", "select", "math", "cast", "bits", "unknown",
)  # fmt: skip
"""Types of AST nodes; a node's type id is the position here. Append only: checkpoints depend on it."""
TYPE_ID = {name: index for index, name in enumerate(NODE_TYPES)}

SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD = range(5)

ARITHMETIC = {
    "Add": "add", "Sub": "add", "Mul": "mul", "Div": "div", "Mod": "div", "FloorDiv": "div",
    "FloorMod": "div", "Min": "minmax", "Max": "minmax", "EQ": "compare", "NE": "compare",
    "LT": "compare", "LE": "compare", "GT": "compare", "GE": "compare", "And": "compare", "Or": "compare",
    "BitwiseAnd": "bits", "BitwiseOr": "bits", "BitwiseXor": "bits", "LShift": "bits", "RShift": "bits",
}  # fmt: skip
LEAVES = frozenset(("IntImm", "FloatImm", "StringImm", "Var", "SizeVar"))
CALLS = {
    "if_then_else": "select", "likely": "select", "fma": "mul", "shift_left": "bits", "shift_right": "bits",
    "bitwise_and": "bits", "bitwise_or": "bits", "bitwise_xor": "bits", "bitwise_not": "bits",
    "reinterpret": "cast", "pow": "math", "sqrt": "math", "rsqrt": "math", "exp": "math", "exp2": "math",
    "log": "math", "log2": "math", "tanh": "math", "sigmoid": "math", "erf": "math", "fabs": "math",
    "floor": "math", "ceil": "math", "round": "math", "sin": "math", "cos": "math",
}  # fmt: skip

_OPS: dict[int, tuple[Any, str]] = {}
_DTYPES: dict[Any, tuple[int, bool]] = {}


def call_kind(op: Any) -> str:
    """Node type of a call; operators are few and live for ever, so each name is read once."""
    known = _OPS.get(hash(op))
    if known is None:
        name = str(getattr(op, "name", "")).rpartition(".")[2]
        known = _OPS[hash(op)] = (op, CALLS.get(name, "call"))
    return known[1]


def element_type(dtype: Any) -> tuple[int, bool]:
    """Bits of one element, and whether it is a float."""
    known = _DTYPES.get(dtype)
    if known is None:
        name = str(dtype)
        digits = "".join(c if c.isdigit() else " " for c in name.partition("x")[0]).split()
        bits = 8 if name.startswith("bool") or not digits else int(digits[0])
        known = _DTYPES[dtype] = (bits, "float" in name)
    return known
