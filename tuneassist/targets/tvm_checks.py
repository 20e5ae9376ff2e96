"""What doctor finds out with TVM. Runs in a probe process, each check in a fork of it."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.targets import cuda, experiments, kernels, llvm, native
from tuneassist.targets.catalogue import kinds_available
from tuneassist.targets.checks import Check, CheckStatus
from tuneassist.targets.forked import ForkedError, call
from tuneassist.tvm_api import te, tvm

_TIMEOUT_SECS = 60.0
_NOISE_REPEATS = 30
_NOISE_SECS = 5e-3
_NOISY = 0.05
_REINSTALL = "Install TVM again: python -m pip install --force-reinstall --no-deps apache-tvm"


def run(cores: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Run every check; what crashes or hangs is that check's error.

    Args:
        cores: Ids of the cores to measure on.

    Yields:
        Checks as dicts.
    """
    checks: dict[str, tuple[Callable[..., Check], str]] = {
        "save-json": (_check_save_json, "python -m pip install 'apache-tvm-ffi>=0.1.14.post0,<0.1.15'"),
        "llvm": (_check_llvm, _REINSTALL),
        "cpu": (_check_cpu, _REINSTALL),
    }  # fmt: skip
    yield asdict(_check_fork())
    for name, (check, remedy) in checks.items():
        yield asdict(_guarded(name, remedy, check))
    kernel = _check_kernel()
    yield asdict(kernel)
    yield asdict(_guarded("cuda", "Check the driver with nvidia-smi.", _check_cuda))
    if kernel.status is not CheckStatus.ERROR:
        yield asdict(_guarded("noise", "Measurements can't be repeated here.", _check_noise, list(cores)[:1]))
        yield asdict(_check_peak(list(cores)))


def _guarded(name: str, remedy: str, check: Callable[..., Check], *args: Any) -> Check:
    try:
        result: Check = call(check, *args, timeout_secs=_TIMEOUT_SECS)
        return result
    except ForkedError as error:
        return Check(name, CheckStatus.ERROR, str(error), remedy)


def _check_fork() -> Check:
    started = time.perf_counter()
    try:
        call(os.getpid, timeout_secs=10.0)
    except (ForkedError, OSError) as error:
        remedy = "tuneassist measures each candidate in a fork: allow more processes (ulimit -u) and memory."
        return Check("fork", CheckStatus.ERROR, f"this process can't be forked: {error}", remedy)
    secs = time.perf_counter() - started
    return Check("fork", CheckStatus.OK, f"a forked process answers after {1e3 * secs:.0f} ms")


def _check_save_json() -> Check:
    a = te.placeholder((4,), name="A")
    function = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="B")])
    text = tvm.ir.save_json(function)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(text), function)
    return Check("save-json", CheckStatus.OK, "a program saved as JSON loads again")


def _check_llvm() -> Check:
    version = llvm.llvm_version()
    if version is None or "llvm" not in kinds_available():
        return Check("llvm", CheckStatus.ERROR, "this TVM has no LLVM", _REINSTALL)
    kinds = ", ".join(kinds_available())
    return Check("llvm", CheckStatus.OK, f"LLVM {version}; TVM compiles for {kinds}")


def _check_cpu() -> Check:
    config = native.detected()
    name = llvm.host_cpu()
    if removed := config.get("mattr"):
        return Check(
            "cpu", CheckStatus.WARNING,
            f"LLVM detects {name}, but this machine lacks {', '.join(f[1:] for f in removed)}",
            "The target native leaves these out; nothing is to be done.",
        )  # fmt: skip
    return Check("cpu", CheckStatus.OK, f"LLVM detects {name}, and the machine has all that it needs")


def _check_kernel() -> Check:
    tried = list(experiments.verify(list(native.fallbacks())))
    works = tried[-1]
    name = native.label(works["config"])
    failed = "; ".join(f"{native.label(item['config'])}: {item['error']}" for item in tried if item["error"])
    if works["error"]:
        return Check("kernel", CheckStatus.ERROR, failed, _REINSTALL)
    seen = f"a matrix product compiled for {name} runs and agrees with NumPy"
    if failed:
        remedy = f"The target native falls back to {name}; nothing is to be done."
        return Check("kernel", CheckStatus.WARNING, f"{seen}; {failed}", remedy)
    return Check("kernel", CheckStatus.OK, seen)


def _check_cuda() -> Check:
    try:
        cuda.check_device()
        name = str(tvm.cuda(0).device_name)
        cuda.check_compiler()
    except MachineError as error:
        if not Path("/dev/nvidia0").exists():
            return Check("cuda", CheckStatus.OK, "no NVIDIA device is there; the target cuda can't be used")
        return Check("cuda", CheckStatus.WARNING, error.message, error.remedy)
    return Check("cuda", CheckStatus.OK, f"{name}; kernels are compiled by {cuda.compiler()}")


def _check_noise(core: Sequence[int]) -> Check:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, core)
    kernel = kernels.matmul(256, rows=4, columns=32, lanes=16, unroll=2)
    loaded = kernels.load(kernel.build(), kernel.shapes, {**native.detected(), "num-cores": 1})
    loaded.run()
    once = min(loaded.repeats(number=1, repeat=5))
    number = max(1, math.ceil(_NOISE_SECS / once))
    started, used = time.perf_counter(), time.thread_time()
    secs = loaded.repeats(number=number, repeat=_NOISE_REPEATS)
    waited = 1.0 - (time.thread_time() - used) / (time.perf_counter() - started)
    tenths = statistics.quantiles(secs, n=10)
    spread = (tenths[8] - tenths[0]) / statistics.median(secs)
    seen = (
        f"{spread:.1%} between the 10th and 90th percentile of {len(secs)} repeats "
        f"of {number * once * 1e3:.0f} ms"
    )
    if waited > 0.02:
        seen += f"; other processes had the core {waited:.0%} of the time"
    if spread <= _NOISY:
        return Check("noise", CheckStatus.OK, seen)
    return Check(
        "noise", CheckStatus.WARNING, seen,
        "Differences smaller than this mean nothing here: end other work, or use more repeats (--repeat).",
    )  # fmt: skip


def _check_peak(cores: Sequence[int]) -> Check:
    (answer,) = experiments.peak(native.detected(), cores)
    if answer["gflops"] is None:
        return Check("peak", CheckStatus.ERROR, answer["error"], _REINSTALL)
    seen = f"{answer['gflops']:.0f} float32 GFLOPS on {len(cores)} cores"
    return Check("peak", CheckStatus.OK, seen)
