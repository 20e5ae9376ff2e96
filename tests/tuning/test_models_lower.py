"""Models of each family, lowered and put together with scheduled kernels, compute what PyTorch does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tuneassist.errors import UsageError
from tuneassist.models.load import LoadedModel, example_inputs, load_model
from tuneassist.models.lower import lower, model_tasks
from tuneassist.models.torch_program import reference_program
from tuneassist.records import Trial, TrialStatus
from tuneassist.tuning.assembly import assemble, compile_model
from tuneassist.tuning.database import trace_to_json
from tuneassist.tvm_api import Target, load_tensor_intrinsics, ms, relax, tvm
from tuneassist.workloads.spec import parse_workload

pytestmark = pytest.mark.tvm

TARGET = {"kind": "llvm", "num-cores": 2}
SMALL = [
    "model:resnet-tiny",
    "model:unet-small:input=1x3x16x16",
    "model:bert-tiny:ids=1x16",
    "model:llama-block:input=1x8x128",
    "model:gpt2-block:input=1x8x96",
    "model:lstm:input=1x4x16",
]


@pytest.fixture(scope="module", autouse=True)
def intrinsics() -> None:
    load_tensor_intrinsics("llvm")


def run(module: Any, loaded: LoadedModel) -> np.ndarray:
    machine = relax.VirtualMachine(compile_model(module, Target(TARGET)).jit(), tvm.cpu())
    inputs = [tvm.runtime.tensor(array) for array in example_inputs(loaded.inputs, 3)]
    output: np.ndarray = machine["main"](*inputs).numpy()
    return output


def some_trial(kernel: Any) -> Trial:
    """One random schedule, as a trial of the store."""
    context = ms.TuneContext(
        kernel, target=Target(TARGET), space_generator="post-order-apply", search_strategy="replay-trace",
        num_threads=1, rand_state=5,
    )  # fmt: skip
    database, model = ms.database.MemoryDatabase(), ms.cost_model.RandomModel()
    context.pre_tuning(4, 1, context.generate_design_space(), database, model)
    schedule = context.generate_measure_candidates()[0].sch
    return Trial(1, 1, 1, 1, TrialStatus.OK, trace_to_json(schedule.trace))


@pytest.mark.parametrize("spec", SMALL)
def test_a_network_put_together_computes_what_pytorch_does(spec: str) -> None:
    info = parse_workload(spec)
    loaded = load_model(info)
    lowered = lower(info, loaded.module)
    tasks = [task for task in model_tasks(info, lowered) if task.tunable]
    trials = {task.hash: [some_trial(task.module)] for task in tasks}
    assembled = assemble(lowered, lambda key: trials.get(key, []), Target(TARGET))
    assert set(assembled.used) == set(trials)
    program = reference_program(info)
    assert program is not None
    with torch.no_grad():
        wanted = program.module()(*map(torch.from_numpy, example_inputs(loaded.inputs, 3))).numpy()
    scale = float(np.abs(wanted).max())
    for module in (lowered, assembled.module):
        np.testing.assert_allclose(run(module, loaded), wanted, rtol=0, atol=1e-5 * scale)


def test_kernels_of_a_model() -> None:
    info = parse_workload("model:resnet-tiny")
    tasks = model_tasks(info, lower(info, load_model(info).module))
    names = [task.info.name.rpartition("/")[2] for task in tasks]
    # batch norms are folded away, and the shortcut's sum is part of the convolution
    assert names[1] == "2.conv2d_add_relu"
    assert "5.conv2d_add_add_relu" in names
    assert sum(task.weight for task in tasks) == 15
    assert len({task.hash for task in tasks}) == len(tasks)
    again = model_tasks(info, lower(info, load_model(info).module))
    assert [task.hash for task in again] == [task.hash for task in tasks]


class Clipped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        clipped: torch.Tensor = torch.clamp(x, 0.0, 6.0)
        return clipped


def saved(tmp_path: Path, net: nn.Module, *inputs: torch.Tensor) -> str:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(net.eval(), inputs), path)
    return str(path)


def test_a_clip_keeps_the_layout(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), Clipped(), nn.Conv2d(4, 2, 1))
    info = parse_workload(saved(tmp_path, net, torch.zeros(1, 3, 8, 8)))
    names = [task.info.name for task in model_tasks(info, lower(info, load_model(info).module))]
    assert names[1].endswith("conv2d_add_maximum_minimum")
    assert sum("transpose" in name for name in names) <= 2


def test_a_saved_relax_module(tmp_path: Path) -> None:
    info = parse_workload("model:lstm:input=1x2x8")
    path = tmp_path / "lstm.json"
    path.write_text(tvm.ir.save_json(load_model(info).module))
    loaded = load_model(parse_workload(str(path)))
    assert loaded.inputs[0].shape == (1, 2, 8)
    assert run(lower(info, loaded.module), loaded).shape == (1, 10)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        return result


class Unsupported(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q: torch.Tensor = torch.linalg.qr(x)[0]
        return q


@pytest.mark.parametrize(
    ("net", "said"), [(Branches(), "control flow"), (Unsupported(), r"can't import.*linalg_qr")]
)
def test_what_can_not_be_imported_is_named(net: nn.Module, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load_model(parse_workload(saved(tmp_path, net, torch.zeros(3, 3))))
    assert caught.value.remedy
