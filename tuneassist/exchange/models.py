"""Whole models put to work: assembled from what the store knows, compared, and exported as a library."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError, NoMeasurementError, UsageError
from tuneassist.exchange.library import compiler, library_fault, library_path
from tuneassist.exchange.output import new_file
from tuneassist.models.extract import ExtractedModel, extract
from tuneassist.records import CONTENDERS, TargetInfo, TensorSpec, Trial, TrialStatus, WorkloadInfo
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.targets.resolve import measuring_machine, resolve_target
from tuneassist.tuning.assembly import assemble, compile_model
from tuneassist.tuning.end_to_end import compare_model
from tuneassist.tuning.known_kernels import KnownKernels, model_result
from tuneassist.tvm_api import Target, load_tensor_intrinsics, module_from_text

Progress = Callable[[str], None]

_SNIPPET = """\
import numpy as np
import tvm
from tvm import relax

# TVM_NUM_THREADS sets the number of threads.
machine = relax.VirtualMachine(tvm.runtime.load_module({library!r}), tvm.cpu())
inputs = [
{inputs}
]
output = machine["main"](*map(tvm.runtime.tensor, inputs))
"""


@dataclass(frozen=True, slots=True)
class _Ready:
    model: ExtractedModel
    known: KnownKernels
    target: TargetInfo
    traces: dict[str, list[str]]


def apply_model(
    store: SqliteStore, info: WorkloadInfo, target_spec: str, cores: tuple[int, ...], *, verify: bool,
    progress: Progress = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """Assemble a model, measure it beside the other ways to run it, and compare its outputs.

    Returns:
        The object of `known_kernels.model_result`, with `target` and `snippet`.

    Raises:
        UsageError: The model can't be used, or nothing of it was measured here.
        NoMeasurementError: The tuned module does not run, or its output is wrong.
    """
    with _ready(store, info, target_spec, cores, progress) as ready:
        progress("Compiling and measuring it beside the others.")
        done = compare_model(
            ready.model, ready.traces, ready.target.json, cores, ready.model.lowered.parent,
            contenders=CONTENDERS if verify else CONTENDERS[:2],
        )  # fmt: skip
        if done.secs["tuned"] is None:
            raise NoMeasurementError(
                f"The tuned {info.name} does not run: {done.errors.get('tuned', 'no measurement')}",
                remedy=f"Tune it again: tuneassist --batch --workload '{info.spec}' --retune",
            )
        if done.correct is False:
            raise NoMeasurementError(
                f"The output of the tuned {info.name} is wrong (compared with {done.reference}).",
                remedy="A kernel is at fault: `tuneassist apply` of each of its tasks finds it and marks it.",
            )
        return {
            **model_result(ready.model, ready.known, done),
            "target": ready.target.spec,
            "snippet": _snippet("model.so", ready.model.inputs),
        }


def export_model(
    store: SqliteStore, info: WorkloadInfo, target_spec: str, cores: tuple[int, ...], path: Path, *,
    force: bool, progress: Progress = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """Compile a model with the best known kernels into a shared library, weights included.

    `PATH.py` beside it shows how to load it.

    Raises:
        UsageError: As `apply_model`; or a file can't be written.
        MachineError: There is no C++ compiler, or it or TVM failed.
    """
    path = library_path(path)
    linker = compiler()
    with _ready(store, info, target_spec, cores, progress) as ready:
        progress("Compiling it.")
        target = Target(json.loads(ready.target.json))
        lowered = module_from_text(ready.model.lowered.read_text(encoding="utf-8"))
        assembled = assemble(lowered, lambda key: _trials(ready.traces.get(key, [])), target)
        loader = path.with_suffix(".py")
        with new_file(loader, force=force) as loader_part, new_file(path, force=force) as part:
            try:
                compile_model(assembled.module, target).export_library(str(part), cc=linker)
            except Exception as error:  # TVM, LLVM and the linker each raise their own
                raise library_fault(linker, error) from error
            loader_part.write_text(_snippet(path.name, ready.model.inputs), encoding="utf-8")
        return {
            "workload": info.name, "target": ready.target.spec, "loader": str(loader),
            "kernels": sum(task.tunable for task in ready.model.tasks), "tuned_kernels": len(assembled.used),
        }  # fmt: skip


@contextmanager
def _ready(
    store: SqliteStore, info: WorkloadInfo, target_spec: str, cores: tuple[int, ...], progress: Progress
) -> Iterator[_Ready]:  # fmt: skip
    load_tensor_intrinsics("llvm")
    target = resolve_target(target_spec, cores=cores, store=store)
    if target.kind != "llvm":
        raise MachineError(
            f"Whole models are put together for CPUs only, not for {target.kind}.",
            remedy="Take --target native.",
        )
    row = store.connection.execute("SELECT id FROM targets WHERE json = ?", (target.json,)).fetchone()
    known = KnownKernels(store, row["id"] if row else 0, store.machine_id(measuring_machine(cores)))
    with tempfile.TemporaryDirectory(prefix="tuneassist-model-") as folder:
        progress(f"Loading {info.name}.")
        model = extract(info, Path(folder))
        if not any(known.best(task) for task in model.tasks):
            raise UsageError(
                f"No kernel of {info.name} was measured on this machine for target {target.spec}.",
                remedy=f"Tune it here: tuneassist --batch --workload '{info.spec}'.",
            )
        yield _Ready(model, known, target, known.all_traces(model))


def _trials(traces: list[str]) -> list[Trial]:
    return [Trial(0, 0, 0, 0, TrialStatus.OK, trace) for trace in traces]


def _snippet(library: str, inputs: tuple[TensorSpec, ...]) -> str:
    lines = [f"    np.zeros({tensor.shape}, {tensor.dtype!r}),  # {tensor.name}" for tensor in inputs]
    return _SNIPPET.format(library=library, inputs="\n".join(lines))
