"""ONNX files that can't be used are refused, with what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from tuneassist.errors import UsageError
from tuneassist.models.onnx_file import load_onnx
from tuneassist.workloads.spec import parse_workload

Change = Callable[[Any], None]


def linear(path: Path, *, shape: Sequence[int | str] = (1, 4), change: Change = lambda model: None) -> Path:
    """Write a model of one product and a relu, changed by `change` before it is written."""
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product"), helper.make_node("Relu", ["y"], ["z"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ("n", 3))],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    change(model)
    onnx.save_model(model, path)
    return path


def load(path: Path, shapes: str = "") -> tuple[Any, Any]:
    return load_onnx(parse_workload(f"{path}:{shapes}" if shapes else str(path)))


def explained(path: Path, shapes: str = "") -> str:
    with pytest.raises(UsageError) as caught:
        load(path, shapes)
    assert caught.value.remedy
    return str(caught.value)


def test_inputs_are_those_without_a_value(tmp_path: Path) -> None:
    def name_the_weight(model: Any) -> None:
        model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (4, 3)))

    _, (tensor,) = load(linear(tmp_path / "net.onnx", change=name_the_weight))
    assert (tensor.name, tensor.shape, tensor.dtype) == ("x", (1, 4), "float32")


def test_open_dimensions_are_named_and_taken_from_the_spec(tmp_path: Path) -> None:
    path = linear(tmp_path / "net.onnx", shape=("batch", 4))
    assert "--shape x=N,4" in explained(path)
    _, (tensor,) = load(path, "x=7x4")
    assert tensor.shape == (7, 4)


def test_shapes_that_do_not_fit(tmp_path: Path) -> None:
    path = linear(tmp_path / "net.onnx")
    assert "has shape 1x4, not 2x4" in explained(path, "x=2x4")
    assert "not 1x4x1" in explained(path, "x=1x4x1")
    assert "no input 'q'" in explained(path, "q=1x4")


@pytest.mark.parametrize("content", [b"", b"garbage, not a protobuf", b"\x08\x09\x12\xff\xff"])
def test_garbage(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    assert "ONNX" in explained(path)


def test_a_file_cut_off_anywhere(tmp_path: Path) -> None:
    whole = linear(tmp_path / "net.onnx").read_bytes()
    for size in range(1, len(whole) - 1, 7):
        path = tmp_path / "cut.onnx"
        path.write_bytes(whole[:size])
        assert "cut.onnx" in explained(path)


def test_an_opset_of_the_future(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.opset_import[0].version = 900

    assert "opset 900" in explained(linear(tmp_path / "net.onnx", change=change))


def test_two_inputs_of_one_name(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.graph.input.append(model.graph.input[0])

    assert "two inputs called 'x'" in explained(linear(tmp_path / "net.onnx", change=change))


def test_control_flow_names_its_nodes(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        branch = helper.make_graph([], "branch", [], [])
        model.graph.node.append(
            helper.make_node("If", ["x"], ["q"], "choice", then_branch=branch, else_branch=branch)
        )

    assert "If in choice" in explained(linear(tmp_path / "net.onnx", change=change))


def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        bad = np.full((4, 3), np.nan, np.float32)
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(bad, "w"))

    assert "the weight w holds NaN" in explained(linear(tmp_path / "net.onnx", change=change))


def test_weights_in_another_file(tmp_path: Path) -> None:
    model = onnx.load(linear(tmp_path / "net.onnx"))
    path = tmp_path / "apart.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="apart.data", size_threshold=0)
    loaded, _ = load(path)
    assert numpy_helper.to_array(loaded.graph.initializer[0]).sum() == 12
    (tmp_path / "apart.data").write_bytes(b"\0")
    assert "apart.data" in explained(path)
    (tmp_path / "apart.data").unlink()
    assert "keeps weights in apart.data, which is not beside it" in explained(path)


def test_a_model_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = linear(tmp_path / "net.onnx")

    class Little:
        available = 100

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    assert "too large for memory" in explained(path)
