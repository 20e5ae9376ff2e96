"""Convolutions: 1-D to 3-D, grouped, depthwise and transposed."""

from __future__ import annotations

import math

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec
from tuneassist.workloads._operator import (
    FLOATS_AND_INT8,
    Operator,
    Tensors,
    check_epilogue,
    dtype_param,
    elements,
    epilogue_flops,
    epilogue_params,
    output_dtype,
    prepack_param,
    with_bias,
)
from tuneassist.workloads._params import Param, Values, choice, size

SPATIAL = {"conv1d": ("w",), "conv2d": ("h", "w"), "conv3d": ("depth", "h", "w")}
"""Names of the spatial extents of each kind, outermost first."""


def out_extent(kind: str, v: Values, name: str) -> int:
    """Extent of the output along one spatial axis.

    Raises:
        UsageError: It would not be positive.
    """
    extent, dilation = getattr(v, name), getattr(v, "d", 1)
    out = int((extent + 2 * v.p - dilation * (v.k - 1) - 1) // v.s + 1)
    if out < 1:
        raise UsageError(
            f"{kind}: no output is left along {name}: {name}={extent}, k={v.k}, p={v.p}, d={dilation}.",
            remedy=f"Take a larger {name} or p, or a smaller k or d.",
        )
    return out


def block(channels: int, largest: int) -> int:
    """Channels of one NCHWc block: the largest divisor of `channels` that is at most `largest`."""
    return next(size for size in range(min(channels, largest), 0, -1) if channels % size == 0)


def _conv_nd(kind: str, v: Values) -> Tensors:
    spatial = tuple(getattr(v, name) for name in SPATIAL[kind])
    out = tuple(out_extent(kind, v, name) for name in SPATIAL[kind])
    window = (v.k,) * len(spatial)
    groups = getattr(v, "groups", 1)
    data: tuple[int, ...]
    weight: tuple[int, ...]
    output: tuple[int, ...]
    if v.layout == "NCHWc":
        inner, outer = block(v.ci, v.block), block(v.co, v.block)
        data = (v.n, v.ci // inner, *spatial, inner)
        weight = (v.co // outer, v.ci // inner, *window, inner, outer)
        output = (v.n, v.co // outer, *out, outer)
    elif v.layout.endswith("C"):
        data, output = (v.n, *spatial, v.ci), (v.n, *out, v.co)
        weight = (*window, v.ci // groups, v.co)
    else:
        data, output = (v.n, v.ci, *spatial), (v.n, v.co, *out)
        weight = (v.co, v.ci // groups, *window)
    inputs = (TensorSpec("data", data, v.dtype), TensorSpec("weight", weight, v.dtype))
    return with_bias(v, inputs, v.co), TensorSpec("output", output, output_dtype(v.dtype))


def _conv_fan_in(kind: str, v: Values) -> int:
    return int(v.ci // getattr(v, "groups", 1) * v.k ** len(SPATIAL[kind]))


def _conv_flops(kind: str, v: Values) -> int:
    outputs = v.n * v.co * math.prod(out_extent(kind, v, name) for name in SPATIAL[kind])
    return int(2 * outputs * _conv_fan_in(kind, v)) + epilogue_flops(v, outputs)


def _check_conv(v: Values) -> None:
    check_epilogue(v)
    groups = getattr(v, "groups", 1)
    for name in ("ci", "co"):
        if getattr(v, name) % groups:
            raise UsageError(
                f"groups={groups} does not divide {name}={getattr(v, name)}.",
                remedy="Take a number of groups that divides both ci and co.",
            )
    if v.layout == "NCHWc" and groups > 1:
        raise UsageError(
            f"layout=NCHWc takes groups=1 only, not groups={groups}.", remedy="Take layout=NCHW or NHWC."
        )
    if v.layout != "NCHWc" and getattr(v, "block", _BLOCK.default) != _BLOCK.default:
        raise UsageError(
            f"block={v.block} has no meaning for layout={v.layout}.",
            remedy="Take layout=NCHWc, or leave it out.",
        )


def _depthwise(v: Values) -> Tensors:
    out = (out_extent("depthwise_conv2d", v, "h"), out_extent("depthwise_conv2d", v, "w"))
    channels = v.c * v.multiplier
    if v.layout == "NHWC":
        data, output = (v.n, v.h, v.w, v.c), (v.n, *out, channels)
        weight = (v.k, v.k, v.c, v.multiplier)
    else:
        data, output = (v.n, v.c, v.h, v.w), (v.n, channels, *out)
        weight = (v.c, v.multiplier, v.k, v.k)
    inputs = (TensorSpec("data", data, v.dtype), TensorSpec("weight", weight, v.dtype))
    return with_bias(v, inputs, channels), TensorSpec("output", output, output_dtype(v.dtype))


def _depthwise_flops(v: Values) -> int:
    outputs = elements(_depthwise(v)[1].shape)
    return int(2 * outputs * v.k * v.k) + epilogue_flops(v, outputs)


def _transposed(v: Values) -> Tensors:
    out = tuple((extent - 1) * v.s - 2 * v.p + v.k + v.out_pad for extent in (v.h, v.w))
    if min(out) < 1:
        raise UsageError(
            f"conv2d_transpose: no output is left: h={v.h}, w={v.w}, s={v.s}, k={v.k}, p={v.p}.",
            remedy="Take a larger h, w, s or k, or a smaller p.",
        )
    inputs = (
        TensorSpec("data", (v.n, v.ci, v.h, v.w), v.dtype),
        TensorSpec("weight", (v.ci, v.co, v.k, v.k), v.dtype),
    )
    return with_bias(v, inputs, v.co), TensorSpec("output", (v.n, v.co, *out), output_dtype(v.dtype))


def _check_transposed(v: Values) -> None:
    check_epilogue(v)
    if v.p >= v.k:
        raise UsageError(f"conv2d_transpose: p={v.p} is not below k={v.k}.", remedy="Take p from 0 to k-1.")
    if v.out_pad >= v.s:
        raise UsageError(
            f"conv2d_transpose: out_pad={v.out_pad} is not below s={v.s}.",
            remedy="Take out_pad from 0 to s-1.",
        )


def _transposed_flops(v: Values) -> int:
    """Each input element meets each weight of its channel once; inserted zeros are not counted."""
    products = int(2 * v.n * v.ci * v.h * v.w * v.co * v.k * v.k)
    return products + epilogue_flops(v, elements(_transposed(v)[1].shape))


_BATCH = size("n", 1, help="batch")
_WINDOW = (
    size("k", help="window"),
    size("s", 1, help="stride"),
    size("p", 0, minimum=0, help="zero padding"),
)
_DILATION = size("d", 1, help="dilation")


def _tail(prepack: bool = True) -> tuple[Param, ...]:
    pack = (prepack_param(1),) if prepack else ()
    return (*epilogue_params(), dtype_param(FLOATS_AND_INT8), *pack)


def _conv(kind: str, summary: str, layouts: tuple[str, ...], extra: tuple[Param, ...]) -> Operator:
    channels = (
        size("ci", help="input channels"),
        *map(size, SPATIAL[kind]),
        size("co", help="output channels"),
    )
    layout = choice("layout", layouts, layouts[0], help="layout of data and output")
    return Operator(
        kind,
        summary,
        (_BATCH, *channels, *_WINDOW, _DILATION, layout, *extra, *_tail()),
        lambda v: _conv_nd(kind, v),
        lambda v: _conv_flops(kind, v),
        check=_check_conv,
        fan_in=lambda v: _conv_fan_in(kind, v),
        packs="weight",
    )


_GROUPS = size("groups", 1, help="groups of channels")
_BLOCK = size("block", 16, help="channels of an NCHWc block, at most")

CONVOLUTIONS = (
    _conv("conv1d", "convolution over w", ("NCW", "NWC"), (_GROUPS,)),
    _conv("conv2d", "convolution over h and w", ("NCHW", "NHWC", "NCHWc"), (_GROUPS, _BLOCK)),
    _conv("conv3d", "convolution over depth, h and w", ("NCDHW", "NDHWC"), (_GROUPS,)),
    Operator(
        "depthwise_conv2d",
        "convolution of each channel by itself",
        (
            _BATCH, size("c", help="channels"), size("h"), size("w"), *_WINDOW, _DILATION,
            size("multiplier", 1, help="output channels of each input channel"),
            choice("layout", ("NCHW", "NHWC"), "NCHW", help="layout of data and output"), *_tail(),
        ),
        _depthwise,
        _depthwise_flops,
        check=check_epilogue,
        fan_in=lambda v: v.k * v.k,
        packs="weight",
    ),
    Operator(
        "conv2d_transpose",
        "transposed convolution, NCHW",
        (
            _BATCH, size("ci", help="input channels"), size("h"), size("w"),
            size("co", help="output channels"), *_WINDOW,
            size("out_pad", 0, minimum=0, help="extra rows and columns of output"), *_tail(prepack=False),
        ),
        _transposed,
        _transposed_flops,
        check=_check_transposed,
        fan_in=lambda v: max(v.ci * v.k * v.k / (v.s * v.s), 1),
    ),
)  # fmt: skip
