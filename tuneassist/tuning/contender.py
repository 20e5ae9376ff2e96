"""One way to run a model, in a process of its own: TVM tuned or not, PyTorch, torch.compile, ONNX Runtime.

Started by `end_to_end` as `python -m tuneassist.tuning.contender`. The first line of stdin is the request,
one JSON object; it prepares, writes its outputs, and answers. Each further line asks for one measurement.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.errors import TuneAssistError
from tuneassist.processes import die_with_parent
from tuneassist.records import Trial, TrialStatus, WorkloadInfo
from tuneassist.tuning.inputs import load_inputs

_WARM_UP_SECS = 0.2
_REPEAT_SECS = 0.1

Run = Callable[[], Any]
Outputs = Callable[[Any], list[np.ndarray]]


class UnavailableError(Exception):
    """This way to run the model does not exist here."""


def main() -> None:
    """Serve one request."""
    die_with_parent()
    request = json.loads(sys.stdin.readline())
    os.sched_setaffinity(0, request["cores"])
    answers = sys.stdout
    try:
        # Libraries print on stdout as they like: the answers go where they can't.
        with contextlib.redirect_stdout(sys.stderr):
            run, outputs, notes = _prepared(request)
            arrays = outputs(run())
            np.savez(request["outputs"], **{str(index): array for index, array in enumerate(arrays)})  # type: ignore[arg-type]
            number = _warm_up(run)
    except (UnavailableError, TuneAssistError, MemoryError) as error:
        _say(answers, {"error": str(error) or "Out of memory."})
        return
    except Exception as error:
        text = str(error).strip().splitlines()
        _say(answers, {"error": f"{type(error).__name__}: {text[-1] if text else ''}"[:500]})
        return
    _say(answers, {"ready": True, "notes": notes})
    while sys.stdin.readline():
        _say(answers, {"secs": [_timed(run, number)]})


def _say(stream: Any, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


def _warm_up(run: Run) -> int:
    """Run until it is warm; return how many calls fill a measurement."""
    calls, started = 0, time.perf_counter()
    while calls < 2 or time.perf_counter() - started < _WARM_UP_SECS:
        run()
        calls += 1
    return max(1, math.ceil(_REPEAT_SECS / _timed(run, 1)))


def _timed(run: Run, number: int) -> float:
    started = time.perf_counter()
    for _ in range(number):
        run()
    return (time.perf_counter() - started) / number


def _prepared(request: dict[str, Any]) -> tuple[Run, Outputs, list[str]]:
    inputs = load_inputs(request["inputs"])
    kind = request["kind"]
    if kind in ("tuned", "untuned"):
        return _tvm(request, inputs)
    from tuneassist.workloads.models import parse_model

    info = parse_model(request["spec"])
    assert info is not None
    if kind == "onnxruntime":
        return *_onnxruntime(info, inputs, len(request["cores"])), []
    return *_torch(info, inputs, len(request["cores"]), compiled=kind == "torch_compile"), []


def _tvm(request: dict[str, Any], inputs: list[np.ndarray]) -> tuple[Run, Outputs, list[str]]:
    from tuneassist.tuning.assembly import assemble, compile_model
    from tuneassist.tvm_api import Target, load_tensor_intrinsics, module_from_text, relax, tvm

    load_tensor_intrinsics("llvm")
    target = Target(json.loads(request["target"]))
    lowered = module_from_text(Path(request["lowered"]).read_text(encoding="utf-8"))
    assembled = assemble(lowered, lambda key: _trials(request["traces"].get(key, [])), target)
    machine = relax.VirtualMachine(compile_model(assembled.module, target).jit(), tvm.cpu())
    main, arguments = machine["main"], [tvm.runtime.tensor(array) for array in inputs]
    return (
        (lambda: main(*arguments)),
        lambda result: _flat(result, lambda one: one.numpy()),
        [*assembled.notes],
    )


def _trials(traces: list[str]) -> list[Trial]:
    return [Trial(0, 0, 0, 0, TrialStatus.OK, trace) for trace in traces]


def _torch(
    info: WorkloadInfo, inputs: list[np.ndarray], threads: int, *, compiled: bool
) -> tuple[Run, Outputs]:
    import torch

    from tuneassist.models.torch_program import reference_program

    torch.set_num_threads(threads)
    program = reference_program(info)
    if program is None:
        raise UnavailableError("PyTorch has no program of this model.")
    module: Any = program.module()
    if compiled:
        module = torch.compile(module)
    tensors = [torch.from_numpy(array) for array in inputs]

    def run() -> Any:
        with torch.inference_mode():
            return module(*tensors)

    return run, lambda result: _flat(result, lambda one: one.numpy())


def _onnxruntime(info: WorkloadInfo, inputs: list[np.ndarray], threads: int) -> tuple[Run, Outputs]:
    try:
        import onnxruntime
    except ImportError:
        raise UnavailableError("The package onnxruntime is not installed.") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory(prefix="tuneassist-onnx-") as folder:
        path = _onnx_path(info, Path(folder))
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    feed = dict(zip(names, inputs, strict=True))
    return (lambda: session.run(None, feed)), lambda result: list(result)


def _onnx_path(info: WorkloadInfo, folder: Path) -> Path:
    """The model's own ONNX file, or one that PyTorch makes of its program."""
    from tuneassist.models.torch_program import reference_program
    from tuneassist.workloads.models import model_path, network_name

    if not network_name(info) and model_path(info).suffix == ".onnx":
        return model_path(info)
    program = reference_program(info)
    if program is None:
        raise UnavailableError("There is no ONNX form of this model.")
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        raise UnavailableError("PyTorch exports to ONNX with the package onnxscript only.") from None
    import torch

    path = folder / "model.onnx"
    torch.onnx.export(program, (), str(path), dynamo=True, verbose=False)
    return path


def _flat(result: Any, array: Callable[[Any], np.ndarray]) -> list[np.ndarray]:
    if isinstance(result, dict):
        result = list(result.values())
    if hasattr(result, "numpy"):
        return [np.asarray(array(result))]
    return [leaf for item in result for leaf in _flat(item, array)]


if __name__ == "__main__":
    main()
