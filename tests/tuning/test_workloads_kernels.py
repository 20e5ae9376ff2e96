"""Every operator kind in every layout and dtype computes what PyTorch computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.reference import make_inputs, reference_torch, to_numpy, to_torch, tolerance
from tuneassist.workloads.spec import parse_workload

pytestmark = pytest.mark.tvm

SMALL = {
    "matmul": ["m=5,n=7,k=33", "m=5,n=7,k=33,trans_b=1"],
    "batch_matmul": ["b=3,m=5,n=7,k=33", "b=3,m=5,n=7,k=33,trans_b=1"],
    "dense": ["m=5,n=7,k=33", "m=5,n=7,k=33,bias=1,act=relu"],
    "attention_scores": ["heads=2,q=5,kv=7,d=16", "heads=2,q=5,kv=7,d=16,softmax=1"],
    "conv1d": ["n=2,ci=4,w=11,co=6,k=3,s=2,p=1,d=2", "ci=4,w=11,co=6,k=3,groups=2,bias=1,act=relu"],
    "conv2d": ["n=2,ci=4,h=9,w=7,co=6,k=3,s=2,p=1,d=2", "ci=4,h=6,w=5,co=6,k=3,bias=1,act=relu"],
    "conv3d": ["ci=2,depth=5,h=6,w=7,co=4,k=3,s=2,p=1", "ci=2,depth=3,h=4,w=5,co=4,k=2,groups=2,bias=1"],
    "depthwise_conv2d": [
        "n=2,c=6,h=9,w=8,k=3,s=2,p=1,multiplier=2",
        "c=6,h=9,w=8,k=3,p=2,d=2,bias=1,act=relu6",
    ],
    "conv2d_transpose": ["n=2,ci=4,h=5,w=6,co=3,k=4,s=2,p=1,out_pad=1", "ci=4,h=5,w=6,co=3,k=2,s=2,bias=1"],
    "softmax": ["m=6,n=40"],
    "log_softmax": ["m=6,n=40"],
    "layer_norm": ["m=6,n=40"],
    "rms_norm": ["m=6,n=40"],
    "batch_norm": ["n=2,c=5,h=4,w=6"],
    "gelu": ["m=6,n=40"],
    "silu": ["m=6,n=40"],
    "relu": ["m=6,n=40"],
    "elementwise": ["m=6,n=40,chain=bias+gelu_tanh+mul+add+relu6", "m=6,n=40,chain=sigmoid+tanh+silu"],
    "reduction": [f"m=6,n=40,func={func},axis={axis}" for func in ("sum", "max", "mean") for axis in (0, 1)],
    "transpose": ["b=3,m=5,n=7"],
    "max_pool2d": ["n=2,c=3,h=9,w=8,k=3,s=2,p=1"],
    "avg_pool2d": ["n=2,c=3,h=9,w=8,k=3,s=2,p=1"],
    "global_avg_pool2d": ["n=2,c=3,h=9,w=8"],
}
ONLY_CONV2D = [
    "conv2d:ci=4,h=6,w=5,co=6,k=3,groups=2,layout=NHWC",
    "conv2d:ci=6,h=6,w=5,co=8,k=3,p=1,layout=NCHWc,block=4",
]
ACTIVATIONS = [
    f"dense:m=3,n=5,k=8,bias=1,act={act}" for act in ("relu6", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh")
]


def _specs() -> Iterator[str]:
    for kind, variants in SMALL.items():
        options = {param.name: param.options for param in OPERATORS[kind].params}
        for variant in variants:
            for dtype in options["dtype"]:
                for layout in options.get("layout", ("",)):
                    if layout == "NCHWc" and "groups" in variant:
                        continue
                    yield f"{kind}:{variant},dtype={dtype}" + (f",layout={layout}" if layout else "")
    yield from ONLY_CONV2D
    yield from ACTIVATIONS


def test_every_kind_is_covered() -> None:
    assert set(SMALL) == set(OPERATORS)


@pytest.mark.parametrize("spec", _specs())
def test_kernel_agrees_with_pytorch(spec: str) -> None:
    from tuneassist.tvm_api import tvm
    from tuneassist.workloads.build import build_prim_func

    info = parse_workload(spec)
    inputs = make_inputs(info, seed=1)
    reference = reference_torch(info)
    assert reference is not None
    expected = to_numpy(reference(to_torch(inputs)))

    kernel = tvm.compile(build_prim_func(info), target="llvm").jit()
    output = tvm.runtime.empty(info.output.shape, info.output.dtype)
    kernel["main"](*(tvm.runtime.tensor(array) for array in inputs), output)
    actual = output.numpy()

    assert expected.shape == actual.shape == info.output.shape
    assert expected.dtype == actual.dtype
    rtol, atol = tolerance(info)
    np.testing.assert_allclose(actual.astype("float64"), expected.astype("float64"), rtol=rtol, atol=atol)
    # the same work on other data must not pass, or the tolerance would hide everything
    other = to_numpy(reference(to_torch(make_inputs(info, seed=2))))
    assert not np.allclose(actual.astype("float64"), other.astype("float64"), rtol=rtol, atol=atol)
