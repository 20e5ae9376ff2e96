"""Which CPU model LLVM should compile for here: what it detects is a claim, and the kernels are timed.

The answer is measured once per machine and kept by the caller as a plain dict (`Store.set_machine_fact`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.targets import native
from tuneassist.targets.llvm import host_cpu, llvm_version
from tuneassist.targets.probe import ProbeError, ask
from tuneassist.tvm_api import tvm

BUDGET_SECS = 4.0
"""Time for the comparison; as much again where a model seems better than the detected one."""

_PROBE_TIMEOUT_SECS = 120.0
_REMEDY = "`tuneassist doctor` shows what works; installing TVM again may help."


def measure_cpu_model(
    cores: Sequence[int], *, compare: bool = True, budget_secs: float = BUDGET_SECS
) -> dict[str, Any]:
    """Find the CPU model whose code runs fastest here, and the machine's peak.

    Args:
        cores: Ids of the cores whose peak is wanted; none: no peak.
        compare: Compare the detected model with others, instead of only running a kernel for it.
        budget_secs: Time for the comparison.

    Returns:
        `config` (a target in dict form, without `num-cores`), `note` for people, `versions` (what the
        answer depends on), and what `characterise` found: `tried`, `results`, `finals`, `noise`,
        `secs`, `gflops`.

    Raises:
        MachineError: Not even code for the plainest CPU runs.
    """
    argument = {
        "fallbacks": list(native.fallbacks()), "rivals": native.candidates() if compare else [],
        "cores": list(cores), "budget_secs": budget_secs,
    }  # fmt: skip
    try:
        (fact,) = ask("characterise:characterise", argument, timeout_secs=_PROBE_TIMEOUT_SECS)
    except ProbeError as error:
        raise MachineError(f"TVM can't be tried on this machine. {error}", remedy=_REMEDY) from error
    if "config" not in fact:
        reasons = "; ".join(f"{native.label(item['config'])}: {item['error']}" for item in fact["tried"])
        raise MachineError(f"No kernel compiles and runs on this machine ({reasons}).", remedy=_REMEDY)
    return {**fact, "versions": versions()}


def measure_peak_gflops(config: Mapping[str, Any], cores: Sequence[int]) -> float | None:
    """Measure the most float32 GFLOPS that the cores reach together; None where it can't be measured.

    Args:
        config: A CPU target in dict form.
        cores: Ids of the cores to use.
    """
    try:
        (answer,) = ask(
            "experiments:peak", {"config": dict(config), "cores": list(cores)},
            timeout_secs=_PROBE_TIMEOUT_SECS,
        )  # fmt: skip
    except ProbeError:
        return None
    gflops: float | None = answer["gflops"]
    return gflops


def versions() -> dict[str, Any]:
    """What a kept answer depends on: with any of it changed, it is measured again."""
    return {"tvm": str(tvm.__version__), "llvm": llvm_version(), "cpu": host_cpu()}
