"""Specs of whole models: names, shapes, layouts, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuneassist.errors import UsageError
from tuneassist.workloads.models import (
    MODEL,
    NETWORKS,
    list_models,
    model_layout,
    model_path,
    model_shapes,
    parse_model,
    parse_shapes,
    with_shapes,
)
from tuneassist.workloads.spec import parse_workload


def test_every_network_has_a_builder() -> None:
    from tuneassist.models import networks

    assert len(NETWORKS) >= 10
    assert set(networks._BUILDERS) == set(NETWORKS)
    assert [info.spec for info in list_models()] == [f"model:{name}" for name in NETWORKS]


@pytest.mark.parametrize("spec", ["model:resnet18", "model:ResNet18", "model:mobilenet_v2", "model:lstm"])
def test_a_network_is_a_workload(spec: str) -> None:
    info = parse_workload(spec)
    assert info.op == MODEL
    assert info.inputs[0].shape[0] == 1
    assert parse_workload(info.spec) == info


def test_shapes_and_layout_are_part_of_the_spec() -> None:
    info = parse_workload("model:resnet18:layout=NCHW,input=2x3x64x64")
    assert info.spec == "model:resnet18:input=2x3x64x64,layout=NCHW"
    assert info.inputs[0].shape == (2, 3, 64, 64)
    assert (model_layout(info), model_shapes(info)) == ("NCHW", {"input": (2, 3, 64, 64)})
    assert parse_workload(info.spec) == info
    assert parse_workload("model:resnet18:layout=NHWC").spec == "model:resnet18"


def test_shape_flags_go_into_the_specs_of_models() -> None:
    shapes = parse_shapes(["input=1,3,160,160"])
    assert with_shapes("model:resnet18:layout=NCHW", shapes) == (
        "model:resnet18:input=1x3x160x160,layout=NCHW"
    )
    assert with_shapes("matmul:m=2,n=2,k=2", shapes) == "matmul:m=2,n=2,k=2"


def test_a_file_with_odd_input_names(tmp_path: Path) -> None:
    path = tmp_path / "net.v2.onnx"
    path.write_bytes(b"")
    info = parse_workload(f"{path}:serving/in:0=1x3")
    assert (model_path(info), model_shapes(info)) == (path, {"serving/in:0": (1, 3)})
    assert parse_workload(info.spec) == info


def test_a_saved_module_is_a_model_if_it_holds_relax(tmp_path: Path) -> None:
    path = tmp_path / "mod.json"
    path.write_text('{"nodes": []}')
    assert parse_model(str(path)) is None
    path.write_text('{"nodes": [{"type":"relax.expr.Function"}]}')
    assert parse_workload(str(path)).op == MODEL


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("model:resnet81", "Did you mean resnet18"),
        ("model:", "No network is called ''"),
        ("model:resnet18:input=1x3", "2 dimensions, not 4"),
        ("model:resnet18:image=1x3x8x8", "no input 'image'"),
        ("model:resnet18:input=1x3x8x8,input=1x3x9x9", "given twice"),
        ("model:resnet18:input=0x3x8x8", "0 elements"),
        ("model:resnet18:input=1x-3x8x8", "is none"),
        ("model:resnet18:input", "not name=value"),
        ("model:resnet18:layout=HWCN", "layout=HWCN"),
        ("missing.onnx", "does not exist"),
        ("missing.pt2:x=1", "does not exist"),
        ("missing.relax", "does not exist"),
    ],
)
def test_a_bad_spec_is_explained(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_workload(spec)
    assert said in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("texts", [["1,3"], ["=1,3"], ["x=1,a"], ["x="], ["x=1", "x=2"]])
def test_a_bad_shape_flag_is_explained(texts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shapes(texts)
    assert caught.value.remedy
