"""Which CPU model LLVM should compile for here: what it detects is a claim, and the kernels are timed.

The answer is measured once per machine and kept by the caller as a plain dict (`Store.set_machine_fact`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.targets import native
from tuneassist.targets.experiments import MARGIN
from tuneassist.targets.llvm import host_cpu, llvm_version
from tuneassist.targets.probe import ProbeError, ask
from tuneassist.tvm_api import tvm

BUDGET_SECS = 5.0
"""Time for the comparison; half as much again where one model seems better than the detected one."""

_PROBE_TIMEOUT_SECS = 120.0
_NOISES = 3.0
"""A win must also be this many times the difference between two runs of the same target."""


def measure_cpu_model(budget_secs: float = BUDGET_SECS) -> dict[str, Any]:
    """Find the CPU model whose code runs fastest here.

    Returns:
        `config` (a target in dict form, without `num-cores`), `note` for people, `detected`, `versions`
        (what the answer depends on), `failed` (targets that did not run), and of the comparison
        `results`, `finals`, `noise` and `secs` (see `experiments.compare`).

    Raises:
        MachineError: Not even code for the plainest CPU runs.
    """
    usable, failed = verified_config()
    fact: dict[str, Any] = {
        "detected": host_cpu(), "versions": versions(), "failed": failed,
        "results": [], "finals": [], "noise": None, "secs": 0.0,
    }  # fmt: skip
    rivals = [config for config in native.candidates() if config != usable]
    if failed:
        # What LLVM detects does not run: its relatives are no better founded.
        return {**fact, "config": usable, "note": _fallback_note(failed, usable)}
    try:
        (compared,) = ask(
            "experiments:compare", {"configs": [usable, *rivals], "budget_secs": budget_secs},
            timeout_secs=_PROBE_TIMEOUT_SECS,
        )  # fmt: skip
    except ProbeError as error:
        note = f"LLVM detects {native.label(usable)}; other CPU models could not be compared: {error}"
        return {**fact, "config": usable, "note": note}
    chosen, note = choose(compared)
    return {**fact, **compared, "config": chosen, "note": note}


def choose(compared: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Pick a target from a comparison: the first (the detected one) unless another clearly wins.

    Args:
        compared: From `experiments.compare`.

    Returns:
        The target, and why.
    """
    results: Sequence[Mapping[str, Any]] = compared["results"]
    first: dict[str, Any] = results[0]["config"]
    name = native.label(first)
    margin = max(MARGIN, _NOISES * (compared["noise"] or 0.0))
    winners = [r for r in compared["finals"] if r["ratio"] is not None and r["ratio"] < 1.0 - margin]
    if winners:
        best = min(winners, key=lambda result: result["ratio"])
        return best["config"], (
            f"LLVM detects {name}, but kernels compiled for {native.label(best['config'])} run "
            f"{1.0 / best['ratio']:.2f}x as fast here, so that is used."
        )
    others = [result for result in results[1:] if result["ratio"] is not None]
    if results[0]["ratio"] is None or not others:
        return first, f"LLVM detects {name}; no other CPU model could be compared with it."
    runner_up = min(others, key=lambda result: result["ratio"])
    return first, (
        f"LLVM detects {name}; of {len(others)} other CPU models and vector widths measured here none is "
        f"clearly faster (best: {native.label(runner_up['config'])}, {runner_up['ratio']:.2f}x the time)."
    )


def verified_config() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The best target of the fallback chain whose kernel runs and computes the right thing.

    Returns:
        The target in dict form, and the ones before it that failed (`config`, `error`).

    Raises:
        MachineError: None runs.
    """
    remedy = "`tuneassist doctor` shows what works; installing TVM again may help."
    try:
        tried = list(
            ask("experiments:verify", {"configs": list(native.fallbacks())}, timeout_secs=_PROBE_TIMEOUT_SECS)
        )
    except ProbeError as error:
        raise MachineError(f"TVM can't be tried on this machine. {error}", remedy=remedy) from error
    if not tried or tried[-1]["error"]:
        reasons = "; ".join(f"{native.label(item['config'])}: {item['error']}" for item in tried)
        raise MachineError(f"No kernel compiles and runs on this machine ({reasons}).", remedy=remedy)
    return tried[-1]["config"], tried[:-1]


def measure_peak_gflops(config: Mapping[str, Any], cores: Sequence[int]) -> float | None:
    """Measure the most float32 GFLOPS that the cores reach together; None where it can't be measured.

    Args:
        config: A CPU target in dict form.
        cores: Ids of the cores to use.
    """
    try:
        (answer,) = ask(
            "experiments:peak", {"config": dict(config), "cores": list(cores)},
            threads=len(cores), timeout_secs=_PROBE_TIMEOUT_SECS,
        )  # fmt: skip
    except ProbeError:
        return None
    gflops: float | None = answer["gflops"]
    return gflops


def versions() -> dict[str, Any]:
    """What a kept answer depends on: with any of it changed, it is measured again."""
    return {"tvm": str(tvm.__version__), "llvm": llvm_version(), "cpu": host_cpu()}


def _fallback_note(failed: Sequence[Mapping[str, Any]], usable: Mapping[str, Any]) -> str:
    first = failed[0]
    return (
        f"LLVM detects {native.label(first['config'])}, but a kernel compiled for it fails here "
        f"({first['error']}), so {native.label(dict(usable))} is used."
    )
