"""Loads a model in a process of its own, and says what there is to tune in it.

A process of its own, so that neither the importers' memory nor their faults reach the engine. It is started
as `python -m tuneassist.models.extract`; the request is one JSON line on stdin, the answer the last line of
stdout.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuneassist.errors import BY_EXIT_CODE, MachineError, TuneAssistError
from tuneassist.processes import die_with_parent, module_command
from tuneassist.records import TensorSpec, WorkloadInfo


@dataclass(frozen=True, slots=True)
class ExtractedTask:
    """One distinct kernel of a model."""

    info: WorkloadInfo
    module: str
    """By `module_to_text`."""
    hash: str
    weight: int
    tunable: bool


@dataclass(frozen=True, slots=True)
class ExtractedModel:
    """A model as the engine knows it."""

    info: WorkloadInfo
    inputs: tuple[TensorSpec, ...]
    tasks: tuple[ExtractedTask, ...]
    lowered: Path
    """Holds the lowered module with its weights, by `module_to_text`."""

    @property
    def flops(self) -> int:
        """Arithmetic operations of one inference, as far as TVM counts them."""
        return sum(task.weight * task.info.flops for task in self.tasks)


def extract(info: WorkloadInfo, folder: Path) -> ExtractedModel:
    """Load a model and lower it, in a process that ends when it is done.

    Args:
        info: The model.
        folder: Takes the lowered module.

    Raises:
        UsageError: The model can't be used; the message says why.
        MachineError: The process died.
    """
    lowered = folder / "lowered.json"
    request = json.dumps({"spec": info.spec, "lowered": str(lowered)})
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    done = subprocess.run(
        module_command("tuneassist.models.extract"),
        input=request, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            answer = json.loads(line)
            break
    else:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise MachineError(
            f"The process that loads {info.name} died (exit code {done.returncode}).\n{tail}".rstrip(),
            remedy="Perhaps memory ran out; else the file or TVM's importer is at fault.",
        )
    if "error" in answer:
        raise BY_EXIT_CODE.get(answer["exit_code"], TuneAssistError)(answer["error"], remedy=answer["remedy"])
    return ExtractedModel(
        info,
        tuple(_tensor(tensor) for tensor in answer["inputs"]),
        tuple(ExtractedTask(_info(task.pop("info")), **task) for task in answer["tasks"]),
        lowered,
    )


def _tensor(data: dict[str, Any]) -> TensorSpec:
    return TensorSpec(data["name"], tuple(data["shape"]), data["dtype"])


def _info(data: dict[str, Any]) -> WorkloadInfo:
    inputs, output = data.pop("inputs"), data.pop("output")
    return WorkloadInfo(**data, inputs=tuple(map(_tensor, inputs)), output=_tensor(output))


def main() -> None:
    """Serve one request."""
    die_with_parent()
    request = json.loads(sys.stdin.readline())
    # What TVM and torch print on stdout must not mix with the answer.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = _answer(request)
        except TuneAssistError as error:
            answer = {"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
    print(json.dumps(answer), flush=True)
    # No destructor of TVM or torch can then spoil an answer that is out.
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    from tuneassist.models.load import load_model
    from tuneassist.models.lower import lower, model_tasks
    from tuneassist.tvm_api import module_to_text
    from tuneassist.workloads.models import parse_model

    info = parse_model(request["spec"])
    assert info is not None
    loaded = load_model(info)
    lowered = lower(info, loaded.module)
    tasks = [
        {
            "info": asdict(task.info), "module": module_to_text(task.module), "hash": task.hash,
            "weight": task.weight, "tunable": task.tunable,
        }
        for task in model_tasks(info, lowered)
    ]  # fmt: skip
    Path(request["lowered"]).write_text(module_to_text(lowered), encoding="utf-8")
    return {"inputs": [asdict(tensor) for tensor in loaded.inputs], "tasks": tasks}


if __name__ == "__main__":
    main()
