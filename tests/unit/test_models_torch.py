"""`.pt2` files: read without running anything, and refused with what is wrong."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tuneassist.errors import UsageError
from tuneassist.models.networks import build_network
from tuneassist.models.torch_program import check_weights, export_network, load_program, program_inputs
from tuneassist.workloads.spec import parse_workload


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(net, (torch.zeros(2, 4),)), path)
    return path


def explained(path: Path, shapes: str = "") -> str:
    with pytest.raises(UsageError) as caught:
        load_program(parse_workload(f"{path}:{shapes}" if shapes else str(path)))
    assert caught.value.remedy
    return str(caught.value)


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """A copy of an archive with each member changed."""
    copy = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return copy


def test_a_program_comes_back(saved: Path) -> None:
    program = load_program(parse_workload(str(saved)))
    (tensor,) = program_inputs(program)
    assert (tensor.shape, tensor.dtype) == ((2, 4), "float32")
    assert program.module()(torch.ones(2, 4)).shape == (2, 3)


def test_a_pickle_posing_as_a_program_is_not_loaded(tmp_path: Path) -> None:
    mark, path = tmp_path / "mark", tmp_path / "net.pt2"
    path.write_bytes(pickle.dumps(Trap(mark)))
    assert "no file of torch.export.save" in explained(path)
    torch.save(Trap(mark), path)
    assert "a pickle of torch.save" in explained(path)
    assert not mark.exists()


def test_a_pickled_constant_is_not_loaded(saved: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    constants = {"config": {"c": {"path_name": "custom_obj_0", "is_param": False, "use_pickle": True}}}

    def change(name: str, data: bytes) -> bytes:
        return json.dumps(constants).encode() if name.endswith("constants_config.json") else data

    copy = rewritten(saved, change)
    with zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("net/data/constants/custom_obj_0", pickle.dumps(Trap(mark)))
    assert "c is a pickled object" in explained(copy)
    assert not mark.exists()


def test_pickled_sample_inputs_are_not_run(saved: Path, tmp_path: Path) -> None:
    mark, trap = tmp_path / "mark", tmp_path / "trap.pt"
    torch.save(Trap(mark), trap)

    def change(name: str, data: bytes) -> bytes:
        return trap.read_bytes() if name.endswith("sample_inputs/model.pt") else data

    assert "can't be loaded" in explained(rewritten(saved, change))
    assert not mark.exists()


def test_a_dimension_that_is_code_is_not_evaluated(tmp_path: Path) -> None:
    net = nn.Linear(4, 3)
    dynamic = {"input": {0: torch.export.Dim("batch", max=64)}}
    program = torch.export.export(net, (torch.zeros(2, 4),), dynamic_shapes=dynamic)
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    assert "dynamic dimensions: input=?x4" in explained(path)

    def change(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        assert b'"expr_str": "Symbol(' in data
        start = data.index(b'"expr_str": "') + 13
        return data[:start] + b"exec(chr(112))" + data[data.index(b'"', start) :]

    assert "as a dimension, which is none" in explained(rewritten(path, change))
    assert program_inputs(load_program(parse_workload(f"{path}:input=7x4")))[0].shape == (7, 4)
    assert "can't take these shapes" in explained(path, "input=900x4")


def test_shapes_that_do_not_fit(saved: Path) -> None:
    assert "was exported for input=2x4, not 3x4" in explained(saved, "input=3x4")
    assert "no input 'q'" in explained(saved, "q=3x4")


def test_a_damaged_file(saved: Path) -> None:
    whole = saved.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 30):
        saved.write_bytes(whole[:size])
        assert str(saved) in explained(saved)


def test_weights_that_are_not_finite() -> None:
    net = nn.Linear(4, 3)
    with torch.no_grad():
        net.bias[1] = float("nan")
    with pytest.raises(UsageError, match="the weight bias holds NaN"):
        check_weights("net", torch.export.export(net, (torch.zeros(1, 4),)))


def test_a_network_has_the_same_weights_every_time() -> None:
    info = parse_workload("model:resnet-tiny")
    state = torch.get_rng_state()
    first, second = build_network(info).state_dict(), build_network(info).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert torch.equal(state, torch.get_rng_state())
    x = torch.randn(1, 3, 32, 32)
    assert 0.05 < float(build_network(info)(x).detach().std()) < 20


def test_shapes_that_a_network_can_not_take() -> None:
    with pytest.raises(UsageError, match="can't take input=1x5x32x32"):
        export_network(parse_workload("model:resnet-tiny:input=1x5x32x32"))
