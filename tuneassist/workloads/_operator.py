"""What an operator kind is: parameters, tensors, arithmetic and checks, without TVM or torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec
from tuneassist.workloads._params import Param, Values, choice, flag

FLOATS = ("float32", "float16", "bfloat16")
FLOATS_AND_INT8 = (*FLOATS, "int8")

ACTIVATION_FLOPS = {
    "none": 0,
    "relu": 1,
    "relu6": 2,
    "tanh": 1,
    "sigmoid": 4,
    "silu": 5,
    "gelu": 5,
    "gelu_tanh": 9,
}
"""Operations for one element; a call of exp, tanh or erf counts as one.

sigmoid = 1/(1+exp(-x)); silu = x*sigmoid(x); gelu = x*0.5*(1+erf(x*c)) (Hendrycks and Gimpel, 2016), and
gelu_tanh its approximation 0.5*x*(1+tanh(c*(x+0.044715*x^3))) from the same paper, as GPT-2 uses it.
"""

Tensors = tuple[tuple[TensorSpec, ...], TensorSpec]


def _one(_: Values) -> float:
    return 1.0


def _fine(_: Values) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator kind. Every function takes values that `params` accepted."""

    kind: str
    summary: str
    params: tuple[Param, ...]
    tensors: Callable[[Values], Tensors]
    """Inputs in the order of the kernel's arguments, and the output that follows them."""
    flops: Callable[[Values], int]
    """Arithmetic operations of one call; a multiply-add counts as two, a padded zero as any number."""
    check: Callable[[Values], None] = _fine
    """Raise `UsageError` for values that don't go together."""
    fan_in: Callable[[Values], float] = _one
    """Products summed for one output: the second input is scaled by its root, so outputs are about 1."""
    magnitude: Callable[[Values], float] = _one
    """Typical size of an output element on `make_inputs`, for absolute tolerances."""
    packs: str = ""
    """The input that may be pre-packed when `prepack` is 1; empty for kinds without that parameter."""

    @property
    def usage(self) -> str:
        """The spec's form: required parameters, then the others with their defaults."""
        required = ",".join(f"{param.name}=..." for param in self.params if param.default is None)
        optional = ", ".join(f"{p.name}={p.default}" for p in self.params if p.default is not None)
        return f"{self.kind}:{required} (and {optional})"


def dtype_param(allowed: tuple[str, ...]) -> Param:
    """The element type of the inputs."""
    return choice("dtype", allowed, "float32", help="element type of the inputs")


def prepack_param(default: int) -> Param:
    """Whether the weight is a constant whose layout the tuner may choose."""
    return flag("prepack", default, help="1: the weight is a constant, so the tuner may choose its layout")


def epilogue_params() -> tuple[Param, ...]:
    """Bias and activation that are fused behind a product."""
    return (
        flag("bias", 0, help="1: add a bias to each output channel"),
        choice("act", tuple(ACTIVATION_FLOPS), "none", help="activation fused behind the product"),
    )


def epilogue_flops(values: Values, outputs: int) -> int:
    """Operations of the fused bias and activation over that many output elements."""
    return outputs * (int(values.bias) + ACTIVATION_FLOPS[values.act])


def check_epilogue(values: Values) -> None:
    """An int8 product is an int32: the activations that need fractions don't apply."""
    if values.dtype == "int8" and values.act not in ("none", "relu", "relu6"):
        raise UsageError(
            f"act={values.act} does not apply to dtype=int8: its sums are whole numbers.",
            remedy="Take act=none, relu or relu6, or a floating-point dtype.",
        )


def output_dtype(dtype: str) -> str:
    """Products of int8 are summed, and left, in int32; a float product has the type of its inputs."""
    return "int32" if dtype == "int8" else dtype


def with_bias(values: Values, inputs: tuple[TensorSpec, ...], channels: int) -> tuple[TensorSpec, ...]:
    """Append the bias, which is added to the sums and so has their type, if there is one."""
    if not values.bias:
        return inputs
    return (*inputs, TensorSpec("bias", (channels,), output_dtype(values.dtype)))


def elements(shape: tuple[int, ...]) -> int:
    """Elements of a tensor of that shape."""
    return math.prod(shape)
