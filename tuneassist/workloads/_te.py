"""The tensor expression of each operator kind.

Arithmetic of 16-bit floats is done in float32 and rounded once, at the end, as PyTorch does it on a CPU;
int8 products are summed in int32. Conversions and epilogues are stages that MetaSchedule inlines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tuneassist.tvm_api import Target, te, tirx, topi
from tuneassist.workloads._params import Values
from tuneassist.workloads._rows import steps

Tensor = Any
"""A `te.Tensor`."""

_KERNEL_LAYOUT = {
    "NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
}  # fmt: skip
_EPSILON = 1e-5
_GELU_TANH = math.sqrt(2 / math.pi)


def _sums(dtype: str) -> str:
    """The type in which values of a type are computed."""
    return "int32" if dtype == "int8" else "float32"


def _wide(tensor: Tensor) -> Tensor:
    """The tensor in float32."""
    return tensor if str(tensor.dtype) == "float32" else topi.cast(tensor, "float32")


def _narrow(tensor: Tensor, dtype: str) -> Tensor:
    """The tensor in the type of a workload's output."""
    return tensor if dtype == "int8" or str(tensor.dtype) == dtype else topi.cast(tensor, dtype)


def _activate(name: str, x: Any) -> Any:
    one, half = tirx.const(1, x.dtype), tirx.const(0.5, x.dtype)
    match name:
        case "relu":
            return te.max(x, tirx.const(0, x.dtype))
        case "relu6":
            return te.min(te.max(x, tirx.const(0, x.dtype)), tirx.const(6, x.dtype))
        case "tanh":
            return te.tanh(x)
        case "sigmoid":
            return one / (one + te.exp(-x))
        case "silu":
            return x * (one / (one + te.exp(-x)))
        case "gelu":
            return x * half * (one + te.erf(x * tirx.const(math.sqrt(0.5), x.dtype)))
        case "gelu_tanh":
            inner = x + tirx.const(0.044715, x.dtype) * x * x * x
            return half * x * (one + te.tanh(tirx.const(_GELU_TANH, x.dtype) * inner))
    raise AssertionError(name)


def _elementwise(tensor: Tensor, function: Callable[..., Any], name: str) -> Tensor:
    """Apply a function of (element, *indices) to each element."""
    return te.compute(tensor.shape, lambda *i: function(tensor[i], *i), name=name)


def _finish(v: Values, sums: Tensor, rest: list[Tensor], channel: Callable[..., Any]) -> Tensor:
    """Add the bias, activate and convert; `channel` gives an output index's channel."""
    if v.bias:
        bias = rest[0]
        sums = _elementwise(sums, lambda x, *i: x + bias[channel(*i)].astype(sums.dtype), "bias_add")
    if v.act != "none":
        sums = _elementwise(sums, lambda x, *i: _activate(v.act, x), v.act)
    return _narrow(sums, v.dtype)


def _matmul(v: Values, a: Tensor, b: Tensor) -> Tensor:
    product = topi.nn.matmul(a, b, out_dtype=_sums(v.dtype), transpose_b=bool(v.trans_b))
    return _narrow(product, v.dtype)


def _batch_matmul(v: Values, a: Tensor, b: Tensor) -> Tensor:
    product = topi.nn.batch_matmul(a, b, out_dtype=_sums(v.dtype), transpose_b=bool(v.trans_b))
    return _narrow(product, v.dtype)


def _dense(v: Values, data: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
    product = topi.nn.dense(data, weight, out_dtype=_sums(v.dtype))
    return _finish(v, product, list(rest), lambda i, j: j)


def _attention_scores(v: Values, query: Tensor, key: Tensor) -> Tensor:
    product = topi.nn.batch_matmul(query, key, out_dtype="float32", transpose_b=True)
    scale = tirx.const(v.d**-0.5, "float32")
    scores = _elementwise(product, lambda x, *i: x * scale, "scale")
    return _narrow(topi.nn.softmax(scores) if v.softmax else scores, v.dtype)


def _conv(v: Values, data: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
    sums = _sums(v.dtype)
    if v.layout == "NCHWc":
        with Target("llvm"):  # topi asks for one, and does not look at it
            out = topi.nn.conv2d_NCHWc(data, weight, v.s, v.p, v.d, "", "", sums)
        block = int(out.shape[4])
        return _finish(v, out, list(rest), lambda n, c, h, w, b: c * block + b)
    out = topi.nn.conv(data, weight, v.s, v.p, v.d, v.groups, v.layout, _KERNEL_LAYOUT[v.layout], sums)
    return _finish(v, out, list(rest), lambda *i: i[-1] if v.layout.endswith("C") else i[1])


def _depthwise_conv2d(v: Values, data: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
    nhwc = v.layout == "NHWC"
    conv = topi.nn.depthwise_conv2d_nhwc if nhwc else topi.nn.depthwise_conv2d_nchw
    out = conv(data, weight, v.s, v.p, v.d, out_dtype=_sums(v.dtype))
    return _finish(v, out, list(rest), lambda *i: i[-1] if nhwc else i[1])


def _conv2d_transpose(v: Values, data: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
    strides, padding, extra = (v.s, v.s), (v.p,) * 4, (v.out_pad, v.out_pad)
    out = topi.nn.conv2d_transpose_nchw(data, weight, strides, padding, _sums(v.dtype), extra)
    return _finish(v, out, list(rest), lambda *i: i[1])


def _softmax(v: Values, data: Tensor) -> Tensor:
    return _narrow(topi.nn.softmax(_wide(data)), v.dtype)


def _log_softmax(v: Values, data: Tensor) -> Tensor:
    return _narrow(topi.nn.log_softmax(_wide(data)), v.dtype)


def _layer_norm(v: Values, data: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    return _narrow(topi.nn.layer_norm(_wide(data), _wide(gamma), _wide(beta), [1], _EPSILON), v.dtype)


def _rms_norm(v: Values, data: Tensor, gamma: Tensor) -> Tensor:
    return _narrow(topi.nn.rms_norm(_wide(data), _wide(gamma), [1], _EPSILON), v.dtype)


def _batch_norm(v: Values, data: Tensor, *statistics: Tensor) -> Tensor:
    axis = 3 if v.layout == "NHWC" else 1
    wide = [_wide(tensor) for tensor in (data, *statistics)]
    return _narrow(topi.nn.batch_norm(*wide, axis=axis, epsilon=_EPSILON)[0], v.dtype)


def _activation(v: Values, data: Tensor, name: str) -> Tensor:
    wide = _wide(data)
    return _narrow(_elementwise(wide, lambda x, *i: _activate(name, x), name), v.dtype)


def _chain(v: Values, data: Tensor, *others: Tensor) -> Tensor:
    result, rest = _wide(data), iter(others)
    for step in steps(v):
        if step in ("bias", "add", "mul"):
            second = _wide(next(rest))
            result = (topi.multiply if step == "mul" else topi.add)(result, second)
        else:
            result = _elementwise(result, lambda x, *i, step=step: _activate(step, x), step)
    return _narrow(result, v.dtype)


def _reduction(v: Values, data: Tensor) -> Tensor:
    if v.func == "max":
        return topi.max(data, axis=v.axis)
    total = topi.sum(_wide(data), axis=v.axis)
    if v.func == "mean":
        count = tirx.const(int(data.shape[v.axis]), "float32")
        total = _elementwise(total, lambda x, *i: x / count, "mean")
    return _narrow(total, v.dtype)


def _transpose(v: Values, data: Tensor) -> Tensor:
    return topi.transpose(data, (0, 2, 1))


def _pool(v: Values, data: Tensor, function: str) -> Tensor:
    source = _wide(data) if function == "avg" else data
    pair = (v.k, v.k), (v.s, v.s), (1, 1), (v.p,) * 4
    return _narrow(topi.nn.pool2d(source, *pair, function, layout=v.layout), v.dtype)


def _global_avg_pool2d(v: Values, data: Tensor) -> Tensor:
    return _narrow(topi.nn.global_pool(_wide(data), "avg", v.layout), v.dtype)


EXPRESSIONS: dict[str, Callable[..., Tensor]] = {
    "matmul": _matmul,
    "batch_matmul": _batch_matmul,
    "dense": _dense,
    "attention_scores": _attention_scores,
    "conv1d": _conv,
    "conv2d": _conv,
    "conv3d": _conv,
    "depthwise_conv2d": _depthwise_conv2d,
    "conv2d_transpose": _conv2d_transpose,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": _batch_norm,
    "gelu": lambda v, data: _activation(v, data, "gelu"),
    "silu": lambda v, data: _activation(v, data, "silu"),
    "relu": lambda v, data: _activation(v, data, "relu"),
    "elementwise": _chain,
    "reduction": _reduction,
    "transpose": _transpose,
    "max_pool2d": lambda v, data: _pool(v, data, "max"),
    "avg_pool2d": lambda v, data: _pool(v, data, "avg"),
    "global_avg_pool2d": _global_avg_pool2d,
}
"""Values of the parameters and the input tensors to the output tensor."""
