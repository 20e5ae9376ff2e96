"""Inputs and tolerances, without TVM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.reference import make_inputs, reference_torch, to_numpy, to_torch, tolerance
from tuneassist.workloads.spec import parse_workload

FILE = WorkloadInfo("k.py:f", "/k.py:f", "script", (), TensorSpec("output", (), ""), 0)


def test_equal_seeds_give_equal_inputs() -> None:
    info = parse_workload("dense:m=4,n=5,k=6,bias=1")
    first, again, other = make_inputs(info, 7), make_inputs(info, 7), make_inputs(info, 8)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert [array.shape for array in first] == [(4, 6), (5, 6), (5,)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_inputs_survive_the_way_to_pytorch_and_back(dtype: str) -> None:
    arrays = make_inputs(parse_workload(f"matmul:m=4,n=5,k=6,dtype={dtype}"), 0)
    back = [to_numpy(tensor) for tensor in to_torch(arrays)]
    for array, returned in zip(arrays, back, strict=True):
        assert str(array.dtype) == str(returned.dtype) == dtype
        assert np.array_equal(array, returned)


@pytest.mark.parametrize("k", [16, 4096])
def test_products_are_about_one_whatever_their_size(k: int) -> None:
    info = parse_workload(f"matmul:m=32,n=32,k={k}")
    first, second = make_inputs(info, 0)
    assert np.std(first @ second) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize(
    "spec",
    [
        "softmax:m=16,n=1000",
        "reduction:m=16,n=1000,func=mean",
        "reduction:m=16,n=1000",
        "global_avg_pool2d:c=64,h=7,w=7",
    ],
)
def test_absolute_tolerance_follows_the_size_of_the_output(spec: str) -> None:
    info = parse_workload(spec)
    reference = reference_torch(info)
    assert reference is not None
    size = float(np.sqrt(np.mean(to_numpy(reference(to_torch(make_inputs(info, 0)))) ** 2)))
    rtol, atol = tolerance(info)
    assert 0.2 < atol / (rtol * size) < 5


def test_integers_must_agree_exactly() -> None:
    assert tolerance(parse_workload("matmul:m=4,n=5,k=6,dtype=int8")) == (0, 0)


def test_statistics_are_plausible() -> None:
    _, gamma, _, _, variance = make_inputs(parse_workload("batch_norm:c=1000,h=1,w=1"), 0)
    assert variance.min() > 0.4
    assert abs(gamma.mean() - 1) < 0.05


def test_int8_convolution_is_no_fair_baseline_and_a_float_one_is() -> None:
    fair = {
        dtype: reference_torch(parse_workload(f"conv2d:ci=2,h=4,w=4,co=2,k=3,dtype={dtype}"))
        for dtype in ("int8", "float32")
    }
    assert fair["int8"] is not None and not fair["int8"].comparable
    assert fair["float32"] is not None and fair["float32"].comparable


def test_channels_last_convolution_gets_channels_last_tensors() -> None:
    import torch

    info = parse_workload("conv2d:ci=4,h=6,w=6,co=8,k=3,layout=NHWC")
    reference = reference_torch(info)
    assert reference is not None
    data, weight = reference.prepare(to_torch(make_inputs(info, 0)))
    assert data.shape == (1, 4, 6, 6) and weight.shape == (8, 4, 3, 3)
    assert data.is_contiguous(memory_format=torch.channels_last)
    assert weight.is_contiguous(memory_format=torch.channels_last)


def test_a_file_has_no_reference_and_no_inputs_yet() -> None:
    assert reference_torch(FILE) is None
    with pytest.raises(UsageError, match="not known"):
        make_inputs(FILE, 0)


def test_tolerance_of_a_file_grows_with_its_sums() -> None:
    data, output = TensorSpec("A", (8, 4096), "float32"), TensorSpec("B", (8,), "float32")
    assert tolerance(replace(FILE, inputs=(data,), output=output, flops=8)) == (1e-4, 1e-4)
    assert tolerance(replace(FILE, inputs=(data,), output=output, flops=8 * 4096)) == (1e-4, 64e-4)


def test_every_kind_has_a_pytorch_call() -> None:
    from tuneassist.workloads._torch import CALLS

    assert set(CALLS) == set(OPERATORS)
