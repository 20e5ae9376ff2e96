"""Workload specs: what they name, their canonical form, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneassist.errors import UsageError
from tuneassist.workloads.catalogue import CATALOGUE
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.spec import parameters, parse_workload, prepacked


@pytest.mark.parametrize(
    ("spec", "inputs", "output", "flops"),
    [
        ("matmul:m=2,n=3,k=4", [(2, 4), (4, 3)], (2, 3), 48),
        ("matmul:m=2,n=3,k=4,trans_b=1", [(2, 4), (3, 4)], (2, 3), 48),
        ("dense:m=2,n=3,k=4,bias=1,act=relu", [(2, 4), (3, 4), (3,)], (2, 3), 48 + 12),
        ("conv2d:ci=4,h=8,w=6,co=8,k=3,s=2,p=1", [(1, 4, 8, 6), (8, 4, 3, 3)], (1, 8, 4, 3), 2 * 96 * 36),
        (
            "conv2d:ci=4,h=8,w=6,co=8,k=3,layout=NHWC",
            [(1, 8, 6, 4), (3, 3, 4, 8)],
            (1, 6, 4, 8),
            2 * 192 * 36,
        ),
        (
            "conv2d:ci=6,h=8,w=6,co=8,k=3,layout=NCHWc,block=4",
            [(1, 2, 8, 6, 3), (2, 2, 3, 3, 3, 4)],
            (1, 2, 6, 4, 4),
            2 * 192 * 54,
        ),
        ("conv2d:ci=4,h=5,w=5,co=6,k=3,groups=2", [(1, 4, 5, 5), (6, 2, 3, 3)], (1, 6, 3, 3), 2 * 54 * 18),
        ("conv2d:ci=1,h=9,w=9,co=1,k=3,d=4", [(1, 1, 9, 9), (1, 1, 3, 3)], (1, 1, 1, 1), 18),
        ("conv2d_transpose:ci=2,h=3,w=4,co=5,k=4,s=2,p=1", [(1, 2, 3, 4), (2, 5, 4, 4)], (1, 5, 6, 8), 3840),
        ("attention_scores:heads=2,q=3,kv=4,d=8", [(2, 3, 8), (2, 4, 8)], (2, 3, 4), 24 * 17),
        ("elementwise:m=2,n=3,chain=silu+mul", [(2, 3), (2, 3)], (2, 3), 36),
        ("reduction:m=2,n=3,func=mean,axis=0", [(2, 3)], (3,), 6 + 3),
        ("transpose:b=2,m=3,n=4", [(2, 3, 4)], (2, 4, 3), 0),
        ("avg_pool2d:c=2,h=4,w=4,k=2,s=2", [(1, 2, 4, 4)], (1, 2, 2, 2), 8 * 5),
    ],
)
def test_shapes_and_flops(
    spec: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], flops: int
) -> None:
    info = parse_workload(spec)
    assert [tensor.shape for tensor in info.inputs] == inputs
    assert info.output.shape == output
    assert info.flops == flops


def test_int8_products_are_int32_and_take_an_int32_bias() -> None:
    info = parse_workload("dense:m=2,n=3,k=4,bias=1,dtype=int8")
    assert [tensor.dtype for tensor in info.inputs] == ["int8", "int8", "int32"]
    assert info.output.dtype == "int32"
    assert info.bytes == 8 + 12 + 12 + 24


def test_canonical_spec_leaves_defaults_out_and_keeps_the_order() -> None:
    written = parse_workload(" matmul: k=4, n=3,dtype=float32 ,m=2,prepack=0 ")
    assert written.spec == "matmul:m=2,n=3,k=4"
    assert written == parse_workload("matmul:m=2,n=3,k=4")


def test_catalogue_name_with_parameters() -> None:
    base, nhwc = parse_workload("resnet18.c2"), parse_workload("resnet18.c2:layout=NHWC")
    assert nhwc.name == "resnet18.c2:layout=NHWC"
    assert nhwc.spec == base.spec + ",layout=NHWC"
    assert nhwc.network == "resnet18"
    assert parse_workload("resnet18.c2:layout=NCHW") == base
    assert parse_workload("ResNet18.C2") == base


@pytest.mark.parametrize("name", CATALOGUE)
def test_spec_of_every_catalogue_entry_rebuilds_it(name: str) -> None:
    info = parse_workload(name)
    again = parse_workload(info.spec)
    assert (again.spec, again.inputs, again.output, again.flops) == (
        info.spec,
        info.inputs,
        info.output,
        info.flops,
    )


@pytest.mark.parametrize(
    ("spec", "packed"),
    [
        ("matmul:m=2,n=3,k=4", ""),
        ("matmul:m=2,n=3,k=4,prepack=1", "b"),
        ("dense:m=2,n=3,k=4", "weight"),
        ("resnet18.c2:prepack=0", ""),
        ("bert-base.scores", ""),
        ("bert-base.softmax", ""),
    ],
)
def test_which_input_may_be_prepacked(spec: str, packed: str) -> None:
    assert prepacked(parse_workload(spec)) == packed


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "empty"),
        ("resnt18.c2", "resnet18.c2"),
        ("mathmul:m=1,n=1,k=1", "matmul"),
        ("zzzz", "tuneassist workloads"),
        ("matmul:m=0,n=1,k=1", "m=0 is too small"),
        ("matmul:m=-3,n=1,k=1", "whole number from 1 up"),
        ("matmul:m=1.5,n=1,k=1", "m=1.5 is not a whole number"),
        ("matmul:m=1_0,n=1,k=1", "not a whole number"),
        ("matmul:m=99999999999999999999,n=1,k=1", "2147483647"),
        ("matmul:m=1,n=1", "lacks k"),
        ("matmul", "lacks m, n and k"),
        ("matmul:m=1,n=1,k=1,kk=2", "no parameter 'kk'"),
        ("matmul:m=1,n=1,k=1,tran_b=1", "Did you mean trans_b"),
        ("matmul:m=1,n=1,k=1,k=2", "twice"),
        ("matmul:m=1,n,k=1", "'n' is not name=value"),
        ("matmul:m=1,n=1,k=1,dtype=float8", "float32, float16, bfloat16 or int8"),
        ("softmax:m=1,n=1,dtype=int8", "float32, float16 or bfloat16"),
        ("dense:m=1,n=1,k=1,dtype=int8,act=gelu", "act=gelu does not apply to dtype=int8"),
        ("dense:m=1,n=1,k=131072,dtype=int8", "overflow int32"),
        ("conv2d:ci=3,h=4,w=9,co=3,k=5", "no output is left along h"),
        ("conv2d:ci=3,h=9,w=9,co=4,k=3,groups=2", "groups=2 does not divide ci=3"),
        ("conv2d:ci=4,h=9,w=9,co=4,k=3,groups=2,layout=NCHWc", "groups=1 only"),
        ("conv2d:ci=4,h=9,w=9,co=4,k=3,block=8", "no meaning for layout=NCHW"),
        ("conv2d:ci=4,h=9,w=9,co=4,k=3,layout=nhwc", "NCHW, NHWC or NCHWc"),
        ("conv2d_transpose:ci=1,h=4,w=4,co=1,k=2,p=2", "p=2 is not below k=2"),
        ("conv2d_transpose:ci=1,h=4,w=4,co=1,k=2,out_pad=1", "out_pad=1 is not below s=1"),
        ("conv2d_transpose:ci=1,h=1,w=1,co=1,k=3,p=2", "no output is left"),
        ("max_pool2d:c=1,h=4,w=4,k=2,p=2", "more than half"),
        ("elementwise:m=1,n=1,chain=relu+nope", "'nope'"),
        ("matmul:m=40000,n=40000,k=60000", "TVM indexes with 32 bits"),
        ("resnet18.c2:heigth=3", "no parameter 'heigth'"),
        ("net.onnx", "does not exist"),
        ("net.pt", "never loaded"),
        ("missing.py:main", "missing.py does not exist"),
        ("kernels.py", "no function"),
        ("kernels.py:", "names no function"),
        ("missing.json", "does not exist"),
    ],
)
def test_bad_spec_is_explained(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_workload(spec)
    assert said in str(caught.value)
    assert caught.value.remedy


def test_too_large_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 2**23

    monkeypatch.setattr("psutil.virtual_memory", Memory)
    assert parse_workload("matmul:m=256,n=256,k=256").bytes < 2**20
    with pytest.raises(UsageError, match=r"too large for memory: its tensors take 0\.8 GiB"):
        parse_workload("matmul:m=8192,n=8192,k=8192")


def test_file_specs_are_not_run(tmp_path: Path) -> None:
    script, module = tmp_path / "kernels.py", tmp_path / "mod.json"
    script.write_text("raise SystemExit('this ran')")
    module.write_text("{}")
    info = parse_workload(f"{script}:main")
    assert (info.op, info.name, info.spec) == ("script", "kernels.py:main", f"{script}:main")
    assert parse_workload(info.spec) == info
    assert parameters(info) == {}
    assert parse_workload(str(module)).op == "module"


def test_json_file_must_be_json(tmp_path: Path) -> None:
    module = tmp_path / "mod.json"
    module.write_text("nonsense")
    with pytest.raises(UsageError, match="is not JSON"):
        parse_workload(str(module))
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match="is not a file"):
        parse_workload(str(tmp_path / "folder.json"))


@given(st.text(max_size=40))
def test_any_text_is_a_workload_or_a_usage_error(text: str) -> None:
    try:
        info = parse_workload(text)
    except UsageError:
        return
    assert info.op


@settings(max_examples=200)
@given(st.data())
def test_operators_with_any_sizes_describe_themselves(data: st.DataObject) -> None:
    operator = data.draw(st.sampled_from(list(OPERATORS.values())))
    values = {
        param.name: data.draw(st.sampled_from(param.options) if param.options else st.integers(0, 40))
        for param in operator.params
    }
    if "chain" in values:
        values["chain"] = "bias+gelu"
    spec = f"{operator.kind}:" + ",".join(f"{key}={value}" for key, value in values.items())
    try:
        info = parse_workload(spec)
    except UsageError:
        return
    assert min(info.output.shape) > 0
    assert info.flops >= 0
    assert dict(parameters(info)) == values
    assert parse_workload(info.spec).spec == info.spec
