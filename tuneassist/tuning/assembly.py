"""Putting a model together again: the best schedule of each kernel, weights packed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuneassist.models.lower import kernel_module
from tuneassist.records import Trial
from tuneassist.tuning.database import Replayer
from tuneassist.tvm_api import IRModule, PrimFunc, Target, relax, tvm
from tuneassist.workloads.build import workload_hash

BestTrials = Callable[[str], list[Trial]]
"""The best trials of a kernel by its hash, fastest first."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A model with its kernels scheduled."""

    module: IRModule
    used: dict[str, Trial]
    """By hash of the kernel; the others keep TVM's default schedule."""
    notes: tuple[str, ...]


def assemble(lowered: IRModule, best: BestTrials, target: Target) -> Assembled:
    """Apply the best trials to the kernels of a lowered model.

    Weights that a schedule wants in another layout are packed here, once, since they are constants.

    Args:
        lowered: See `tuneassist.models.lower.lower`.
        best: What is known.
        target: What the trials were measured for.
    """
    scheduled: dict[str, PrimFunc | None] = {}
    used: dict[str, Trial] = {}
    notes: list[str] = []
    module = IRModule(dict(lowered.functions))
    for var, function in lowered.functions.items():
        if not isinstance(function, PrimFunc):
            continue
        kernel = kernel_module(function)
        key = workload_hash(kernel)
        if key not in scheduled:
            scheduled[key] = None
            replay = None
            for trial in best(key):
                replay = replay or Replayer(kernel, target)
                try:
                    scheduled[key] = replay(trial.trace_json).mod["main"]
                except ValueError as error:
                    notes.append(f"{var.name_hint}: {str(error).splitlines()[0]}")
                    continue
                used[key] = trial
                break
        chosen = scheduled[key]
        if chosen is not None:
            module.update_func(var, chosen.without_attr("global_symbol").with_attr("tirx.is_scheduled", True))
    with target:
        packed = tvm.transform.Sequential(
            [relax.transform.SplitLayoutRewritePreproc(), relax.transform.FoldConstant()]
        )(module)
    return Assembled(packed, used, tuple(notes))


def compile_model(module: IRModule, target: Target) -> Any:
    """Compile a lowered or assembled model; `relax.VirtualMachine` runs it."""
    return tvm.compile(module, target=target)
