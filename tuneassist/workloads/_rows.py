"""Softmax, normalisation, element-wise chains, reductions, transpose and pooling."""

from __future__ import annotations

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec
from tuneassist.workloads._convolutions import out_extent
from tuneassist.workloads._operator import (
    ACTIVATION_FLOPS,
    FLOATS,
    FLOATS_AND_INT8,
    Operator,
    Tensors,
    dtype_param,
    elements,
)
from tuneassist.workloads._params import Param, Values, choice, number_choice, size

STEPS = {
    **{name: cost for name, cost in ACTIVATION_FLOPS.items() if name != "none"},
    "bias": 1,
    "add": 1,
    "mul": 1,
}
"""Steps of an element-wise chain, with the operations of each for one element."""
_STEP_INPUT = {"bias": "row", "add": "full", "mul": "full"}


def steps(values: Values) -> list[str]:
    """The steps of an element-wise chain in order."""
    return str(values.chain).split("+")


def _chain_param() -> Param:
    def parse(text: str) -> str:
        unknown = [step for step in text.split("+") if step not in STEPS]
        if unknown:
            raise ValueError(f"holds {unknown[0]!r}, which is no step")
        return text

    return Param(
        "chain", f"steps joined by +, each of {', '.join(STEPS)}", parse, None, "steps, first to last"
    )


def _elementwise(v: Values) -> Tensors:
    inputs = [TensorSpec("data", (v.m, v.n), v.dtype)]
    for position, step in enumerate(steps(v)):
        if step in _STEP_INPUT:
            shape = (v.n,) if _STEP_INPUT[step] == "row" else (v.m, v.n)
            inputs.append(TensorSpec(f"{step}{position}", shape, v.dtype))
    return tuple(inputs), TensorSpec("output", (v.m, v.n), v.dtype)


def _same_shape(v: Values) -> Tensors:
    return (TensorSpec("data", (v.m, v.n), v.dtype),), TensorSpec("output", (v.m, v.n), v.dtype)


def _layer_norm(v: Values) -> Tensors:
    (data,), output = _same_shape(v)
    return (data, TensorSpec("gamma", (v.n,), v.dtype), TensorSpec("beta", (v.n,), v.dtype)), output


def _rms_norm(v: Values) -> Tensors:
    (data,), output = _same_shape(v)
    return (data, TensorSpec("gamma", (v.n,), v.dtype)), output


def _image(v: Values, h: int, w: int) -> tuple[int, ...]:
    return (v.n, h, w, v.c) if v.layout == "NHWC" else (v.n, v.c, h, w)


def _batch_norm(v: Values) -> Tensors:
    data = TensorSpec("data", _image(v, v.h, v.w), v.dtype)
    vectors = (TensorSpec(name, (v.c,), v.dtype) for name in ("gamma", "beta", "mean", "variance"))
    return (data, *vectors), TensorSpec("output", data.shape, v.dtype)


def _reduction(v: Values) -> Tensors:
    return (TensorSpec("data", (v.m, v.n), v.dtype),), TensorSpec(
        "output", (v.n if v.axis == 0 else v.m,), v.dtype
    )


def _reduced(v: Values) -> int:
    return int(v.m if v.axis == 0 else v.n)


def _reduction_flops(v: Values) -> int:
    outputs = _reduction(v)[1].shape[0]
    return int(v.m * v.n) + (outputs if v.func == "mean" else 0)


def _transpose(v: Values) -> Tensors:
    return (TensorSpec("data", (v.b, v.m, v.n), v.dtype),), TensorSpec("output", (v.b, v.n, v.m), v.dtype)


def _pool(kind: str, v: Values) -> Tensors:
    out = _image(v, out_extent(kind, v, "h"), out_extent(kind, v, "w"))
    return (TensorSpec("data", _image(v, v.h, v.w), v.dtype),), TensorSpec("output", out, v.dtype)


def _check_pool(v: Values) -> None:
    if 2 * v.p > v.k:
        raise UsageError(f"p={v.p} is more than half of the window k={v.k}.", remedy="Take p from 0 to k/2.")


def _pool_flops(kind: str, v: Values, division: int) -> int:
    return int(elements(_pool(kind, v)[1].shape) * (v.k * v.k + division))


def _global_pool(v: Values) -> Tensors:
    return (TensorSpec("data", _image(v, v.h, v.w), v.dtype),), TensorSpec("output", _image(v, 1, 1), v.dtype)


_ROWS = (size("m", help="rows"), size("n", help="columns"))
_IMAGE = (size("n", 1, help="batch"), size("c", help="channels"), size("h"), size("w"))
_LAYOUT = choice("layout", ("NCHW", "NHWC"), "NCHW", help="layout of data and output")
_WINDOW = (size("k", help="window"), size("s", 1, help="stride"), size("p", 0, minimum=0, help="padding"))
_FLOAT = dtype_param(FLOATS)


def _fixed_chain(name: str) -> Operator:
    """An activation as a kind of its own."""
    return Operator(
        name,
        f"{name} of each element",
        (*_ROWS, _FLOAT),
        _same_shape,
        lambda v: v.m * v.n * ACTIVATION_FLOPS[name],
    )


ROWS = (
    Operator(
        "softmax", "softmax over n", (*_ROWS, _FLOAT), _same_shape, lambda v: 5 * v.m * v.n,
        magnitude=lambda v: 1.0 / v.n,
    ),
    Operator("log_softmax", "logarithm of the softmax over n", (*_ROWS, _FLOAT), _same_shape,
             lambda v: 5 * v.m * v.n),
    Operator("layer_norm", "layer normalisation over n, eps 1e-5", (*_ROWS, _FLOAT), _layer_norm,
             lambda v: 8 * v.m * v.n),
    Operator("rms_norm", "root mean square normalisation over n, eps 1e-5", (*_ROWS, _FLOAT), _rms_norm,
             lambda v: 4 * v.m * v.n),
    Operator("batch_norm", "batch normalisation with known statistics, eps 1e-5", (*_IMAGE, _LAYOUT, _FLOAT),
             _batch_norm, lambda v: 4 * v.n * v.c * v.h * v.w),
    _fixed_chain("gelu"),
    _fixed_chain("silu"),
    _fixed_chain("relu"),
    Operator("elementwise", "a chain of element-wise steps, such as bias+relu or silu+mul",
             (*_ROWS, _chain_param(), _FLOAT), _elementwise,
             lambda v: v.m * v.n * sum(STEPS[step] for step in steps(v))),
    Operator(
        "reduction", "sum, max or mean over one axis of a matrix",
        (*_ROWS, choice("func", ("sum", "max", "mean"), "sum"),
         number_choice("axis", (0, 1), 1, help="0: over rows, 1: over columns"), _FLOAT),
        _reduction, _reduction_flops,
        magnitude=lambda v: {"sum": _reduced(v) ** 0.5, "max": 1.0, "mean": _reduced(v) ** -0.5}[v.func],
    ),
    Operator("transpose", "swap m and n in each of b matrices",
             (size("b", 1, help="matrices"), *_ROWS, dtype_param(FLOATS_AND_INT8)), _transpose, lambda v: 0),
    Operator("max_pool2d", "largest element of each window",
             (*_IMAGE, *_WINDOW, _LAYOUT, dtype_param(FLOATS_AND_INT8)),
             lambda v: _pool("max_pool2d", v), lambda v: _pool_flops("max_pool2d", v, 0), check=_check_pool),
    Operator("avg_pool2d", "mean of each window, padding included", (*_IMAGE, *_WINDOW, _LAYOUT, _FLOAT),
             lambda v: _pool("avg_pool2d", v), lambda v: _pool_flops("avg_pool2d", v, 1), check=_check_pool,
             magnitude=lambda v: 1.0 / v.k),
    Operator("global_avg_pool2d", "mean over h and w", (*_IMAGE, _LAYOUT, _FLOAT), _global_pool,
             lambda v: v.n * v.c * (v.h * v.w + 1), magnitude=lambda v: (v.h * v.w) ** -0.5),
)  # fmt: skip
