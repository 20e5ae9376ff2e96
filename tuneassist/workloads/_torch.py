"""The PyTorch call of each operator kind, and the conversions around it that a user would do once.

torch is imported inside the functions: knowing a workload must not cost its import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tuneassist.workloads._params import Values
from tuneassist.workloads._rows import steps

if TYPE_CHECKING:
    import torch

Tensors = list[Any]
_EPSILON = 1e-5


def _same(tensors: Tensors) -> Tensors:
    return tensors


def _as_is(output: Any) -> Any:
    return output


@dataclass(frozen=True, slots=True)
class Call:
    """A PyTorch computation of a workload."""

    run: Callable[[Tensors], Any]
    """What a user calls: from prepared tensors to PyTorch's own output."""
    prepare: Callable[[Tensors], Tensors] = _same
    """Lay the kernel's arguments out as a PyTorch user holds them."""
    restore: Callable[[Any], Any] = _as_is
    """Lay PyTorch's output out as the kernel does."""
    comparable: bool = True
    """Whether `run` is a fair baseline; False where PyTorch has no such call and others stand in."""


def activate(name: str, x: torch.Tensor) -> torch.Tensor:
    """Apply the activation of that name."""
    import torch
    import torch.nn.functional as F

    functions: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "none": lambda t: t,
        "relu": torch.relu,
        "relu6": lambda t: torch.clamp(t, 0, 6),
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"),
    }
    return functions[name](x)


def _matmul(v: Values) -> Call:
    import torch

    def run(t: Tensors) -> torch.Tensor:
        second = t[1].transpose(-1, -2) if v.trans_b else t[1]
        if v.dtype != "int8":
            return torch.matmul(t[0], second)
        return torch._int_mm(t[0], second) if t[0].dim() == 2 else torch.bmm(t[0].int(), second.int())

    return Call(run, comparable=v.dtype != "int8" or not hasattr(v, "b"))


def _dense(v: Values) -> Call:
    import torch
    import torch.nn.functional as F

    def run(t: Tensors) -> torch.Tensor:
        bias = t[2] if v.bias else None
        if v.dtype != "int8":
            return activate(v.act, F.linear(t[0], t[1], bias))
        product = torch._int_mm(t[0], t[1].t())
        return activate(v.act, product if bias is None else product + bias)

    return Call(run)


def _attention_scores(v: Values) -> Call:
    import torch

    def run(t: Tensors) -> torch.Tensor:
        scores = torch.matmul(t[0], t[1].transpose(-1, -2)) * v.d**-0.5
        return torch.softmax(scores, dim=-1) if v.softmax else scores

    return Call(run)


def _conv(v: Values, dims: int) -> Call:
    import torch.nn.functional as F

    function: Any = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[dims]

    def run(t: Tensors) -> torch.Tensor:
        bias = t[2] if v.bias else None
        return activate(v.act, function(t[0], t[1], bias, v.s, v.p, v.d, v.groups))

    if v.layout == "NCHWc":
        return _whole(Call(run, _unblock, lambda out: _block(out, v)), v.dtype)
    if v.layout.endswith("C"):
        return _whole(_channels_last(run, dims, weight_axes=(dims + 1, dims, *range(dims))), v.dtype)
    return _whole(Call(run), v.dtype)


def _channels_last(run: Callable[[Tensors], Any], dims: int, weight_axes: tuple[int, ...]) -> Call:
    """Wrap a channels-first call for channels-last data: the permutation of data and output is a view."""
    import torch

    formats = {2: torch.channels_last, 3: torch.channels_last_3d}

    def prepare(t: Tensors) -> Tensors:
        data = t[0].permute(0, dims + 1, *range(1, dims + 1))
        weight = t[1].permute(*weight_axes) if len(t) > 1 and t[1].dim() > 1 else None
        if weight is None:
            return [data, *t[1:]]
        weight = weight.contiguous(memory_format=formats.get(dims, torch.contiguous_format))
        return [data, weight, *t[2:]]

    return Call(run, prepare, lambda out: out.permute(0, *range(2, dims + 2), 1))


def _unblock(t: Tensors) -> Tensors:
    """NCHWc data and OIHWio weights to channels_last data and OIHW weights."""
    import torch

    n, chunks, h, w, inner = t[0].shape
    data = t[0].permute(0, 1, 4, 2, 3).reshape(n, chunks * inner, h, w)
    o, i, kh, kw, ib, ob = t[1].shape
    weight = t[1].permute(0, 5, 1, 4, 2, 3).reshape(o * ob, i * ib, kh, kw)
    laid_out = [tensor.contiguous(memory_format=torch.channels_last) for tensor in (data, weight)]
    return [*laid_out, *t[2:]]


def _block(out: torch.Tensor, v: Values) -> torch.Tensor:
    from tuneassist.workloads._convolutions import block

    n, channels, h, w = out.shape
    inner = block(channels, v.block)
    return out.reshape(n, channels // inner, inner, h, w).permute(0, 1, 3, 4, 2)


def _whole(call: Call, dtype: str) -> Call:
    """PyTorch has no int8 convolution with int32 sums: compute it in float64, which holds them exactly."""
    if dtype != "int8":
        return call
    import torch

    return Call(
        lambda t: call.run(t).to(torch.int32),
        lambda t: [tensor.double() for tensor in call.prepare(t)],
        call.restore,
        comparable=False,
    )


def _depthwise_conv2d(v: Values) -> Call:
    import torch.nn.functional as F

    def run(t: Tensors) -> torch.Tensor:
        return activate(v.act, F.conv2d(t[0], t[1], t[2] if v.bias else None, v.s, v.p, v.d, v.c))

    def flat(t: Tensors) -> Tensors:
        return [t[0], t[1].reshape(v.c * v.multiplier, 1, v.k, v.k), *t[2:]]

    if v.layout == "NCHW":
        return _whole(Call(run, flat), v.dtype)
    last = _channels_last(run, 2, weight_axes=(2, 3, 0, 1))
    return _whole(Call(run, lambda t: flat(last.prepare(t)), last.restore), v.dtype)


def _conv2d_transpose(v: Values) -> Call:
    import torch.nn.functional as F

    def run(t: Tensors) -> torch.Tensor:
        bias = t[2] if v.bias else None
        return activate(v.act, F.conv_transpose2d(t[0], t[1], bias, v.s, v.p, v.out_pad))

    return _whole(Call(run), v.dtype)


def _softmax(v: Values) -> Call:
    import torch

    return Call(lambda t: torch.softmax(t[0], dim=-1))


def _log_softmax(v: Values) -> Call:
    import torch

    return Call(lambda t: torch.log_softmax(t[0], dim=-1))


def _layer_norm(v: Values) -> Call:
    import torch.nn.functional as F

    return Call(lambda t: F.layer_norm(t[0], (v.n,), t[1], t[2], _EPSILON))


def _rms_norm(v: Values) -> Call:
    import torch.nn.functional as F

    return Call(lambda t: F.rms_norm(t[0], (v.n,), t[1], _EPSILON))


def _imaged(v: Values, run: Callable[[Tensors], Any]) -> Call:
    """A call on NCHW images, in the workload's layout."""
    return _channels_last(run, 2, ()) if v.layout == "NHWC" else Call(run)


def _batch_norm(v: Values) -> Call:
    import torch.nn.functional as F

    return _imaged(v, lambda t: F.batch_norm(t[0], t[3], t[4], t[1], t[2], eps=_EPSILON))


def _chain(v: Values) -> Call:
    def run(t: Tensors) -> Any:
        result, rest = t[0], iter(t[1:])
        for step in steps(v):
            if step == "mul":
                result = result * next(rest)
            elif step in ("bias", "add"):
                result = result + next(rest)
            else:
                result = activate(step, result)
        return result

    return Call(run)


def _reduction(v: Values) -> Call:
    import torch

    function: Any = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}[v.func]
    return Call(lambda t: function(t[0], dim=v.axis))


def _max_pool2d(v: Values) -> Call:
    import torch.nn.functional as F

    return _imaged(v, lambda t: F.max_pool2d(t[0], v.k, v.s, v.p))


def _avg_pool2d(v: Values) -> Call:
    import torch.nn.functional as F

    return _imaged(v, lambda t: F.avg_pool2d(t[0], v.k, v.s, v.p))


def _global_avg_pool2d(v: Values) -> Call:
    import torch.nn.functional as F

    return _imaged(v, lambda t: F.adaptive_avg_pool2d(t[0], 1))


CALLS: dict[str, Callable[[Values], Call]] = {
    "matmul": _matmul,
    "batch_matmul": _matmul,
    "dense": _dense,
    "attention_scores": _attention_scores,
    "conv1d": lambda v: _conv(v, 1),
    "conv2d": lambda v: _conv(v, 2),
    "conv3d": lambda v: _conv(v, 3),
    "depthwise_conv2d": _depthwise_conv2d,
    "conv2d_transpose": _conv2d_transpose,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "batch_norm": _batch_norm,
    "gelu": lambda v: Call(lambda t: activate("gelu", t[0])),
    "silu": lambda v: Call(lambda t: activate("silu", t[0])),
    "relu": lambda v: Call(lambda t: activate("relu", t[0])),
    "elementwise": _chain,
    "reduction": _reduction,
    "transpose": lambda v: Call(lambda t: t[0].transpose(1, 2).contiguous()),
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": _global_avg_pool2d,
}
"""Values of the parameters to the PyTorch call."""
