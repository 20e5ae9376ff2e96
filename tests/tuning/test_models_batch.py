"""A small network tuned as a user does it: twice, put to work, exported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from batch_tools import command, result_of, rows, tune
from torch import nn

pytestmark = pytest.mark.tvm

QUICK = ("--cost-model", "random", "--against", "pytorch,onnxruntime")


def net(path: Path) -> nn.Module:
    """Write a network of two convolutions and a linear layer as ONNX."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(512, 5),
    ).eval()  # fmt: skip
    torch.onnx.export(module, (torch.zeros(1, 3, 8, 8),), path, dynamo=False, input_names=["x"])
    return module


@pytest.mark.timeout(600)
def test_a_model_is_tuned_once(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    net(path)
    first = tune("--workload", str(path), "--trials", "40", *QUICK)
    assert first.returncode == 0, first.stderr
    result = result_of(first)
    (model,) = result["models"]
    assert model["correct"] is True and model["reference"] == "onnxruntime"
    assert model["errors"] == {"pytorch": "PyTorch has no program of this model."}
    assert model["tuned_secs"] > 0 and model["onnxruntime_secs"] > 0 and model["untuned_secs"] is None
    tuned = [task for task in model["tasks"] if task["tunable"]]
    assert {task["name"] for task in tuned} == {task["name"] for task in result["tasks"]}
    assert all(task["best_secs"] and task["untuned_secs"] for task in tuned)
    trials = rows("SELECT count(*) AS n FROM trials")[0]["n"]

    again = result_of(tune("--workload", str(path), "--trials", "40", *QUICK))
    assert again["status"] == "done" and again["models"][0]["correct"] is True
    assert rows("SELECT count(*) AS n FROM trials")[0]["n"] == trials
    best = {task["name"]: task["best_secs"] for task in result["tasks"]}
    assert {task["name"]: task["best_secs"] for task in again["tasks"]} == best

    library = tmp_path / "net.so"
    exported(str(path), library)
    loader = library.with_suffix(".py").read_text()
    code = f"{loader}\nassert output.numpy().shape == (1, 5), output"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=120)


def exported(spec: str, library: Path) -> None:
    done = subprocess.run(
        command("export", "--workload", spec, "--format", "so", "-o", str(library), "--json"),
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = result_of(done)
    assert told["kernels"] >= told["tuned_kernels"] > 0


def test_a_bad_model_ends_the_run_with_its_error(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"garbage")
    done = tune("--workload", str(path), "--trials", "8")
    assert done.returncode == 2
    assert "ONNX" in result_of(done)["error"]


def test_tasks_that_do_not_exist_are_explained() -> None:
    done = tune("--workload", "model:lstm:input=1x2x8", "--tasks", "conv9d*", "--trials", "8")
    assert done.returncode == 2
    assert "No task of model:lstm" in result_of(done)["error"]
