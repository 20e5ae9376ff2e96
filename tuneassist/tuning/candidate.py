"""What one forked process does for one candidate: compile it, wait its turn, measure it, end.

A candidate for a device is compiled and written to a file; `device.py` is what measures it.

Runs in a fork of the zygote, so TVM is loaded and no kernel has run yet. A crash, a hang or exhausted
memory here costs this candidate only.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import socket
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneassist.processes import die_with_parent
from tuneassist.targets.linker import linker_for
from tuneassist.tuning.answers import compared, failure, finite
from tuneassist.tuning.wire import receive, send
from tuneassist.tvm_api import RemoveWeightLayoutRewriteBlock, Target, module_from_text, tvm

SLOW_FACTOR = 2.0
"""A candidate this many times slower than the best gets short repeats instead of `min_repeat_secs`."""
SLOW_REPEAT_SECS = 2e-3
WARM_UP_SECS = 2e-3
_WARM_UP_CALLS = 2
_NO_LIMIT = resource.RLIM_INFINITY


def run(sock: socket.socket, request: dict[str, Any], inputs: list[np.ndarray]) -> None:
    """Serve one candidate over the socket; returns when the engine is done with it.

    Args:
        sock: Messages: `built` or `failed` out, then any number of `measure` or `check` in, each answered
            by `measured`, `checked` or `failed`.
        request: The `build` order.
        inputs: The workload's inputs, shared with the zygote and never written.
    """
    die_with_parent()
    # The process is short: collecting garbage would only touch, and so copy, the zygote's memory.
    gc.disable()
    if request.get("cores"):
        os.sched_setaffinity(0, request["cores"])
    _limit_memory(request["memory_limit_bytes"])
    try:
        if request["build_cpu_secs"] is not None:
            # SIGXCPU ends the process; the limit counts whole seconds.
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(request["build_cpu_secs"]), _NO_LIMIT))
        kernel = _compile(request)
        resource.setrlimit(resource.RLIMIT_CPU, (_NO_LIMIT, _NO_LIMIT))
        # CPU time: what the build costs, however many others run beside it.
        secs = time.process_time() + sum(os.times()[2:4])
        send(sock, {"event": "built", "secs": secs, "arguments": kernel.arguments})
        if request["export"]:
            return
    except Exception as error:
        send(sock, failure(error))
        return
    try:
        *given, output_type = kernel.arguments
        arguments = [
            _argument(array, shape, kernel.device) for array, (shape, _) in zip(inputs, given, strict=True)
        ]
        result = tvm.runtime.empty(*output_type, kernel.device)
        while True:
            order, _ = receive(sock)
            if order["event"] == "check":
                kernel.run([*arguments, result])
                send(sock, compared(result, order))
            else:
                send(sock, _measure(kernel, [*arguments, result], order))
    except Exception as error:
        send(sock, failure(error))


def _limit_memory(limit_bytes: int) -> None:
    """Allow that much address space on top of what the zygote handed down."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        inherited = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (inherited + limit_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass(frozen=True, slots=True)
class _Kernel:
    module: Any
    call: Any
    arguments: tuple[tuple[tuple[int, ...], str], ...]
    """Shape and dtype of each argument, the output last."""
    device: Any = None
    """Where it runs; None for a kernel that was exported."""

    def run(self, arguments: list[Any]) -> None:
        """Call it, and wait for the device."""
        self.call(*arguments)
        self.device.sync()


def _compile(request: dict[str, Any]) -> _Kernel:
    module = module_from_text(request["module"])
    if request["prepacked"]:
        # What stock's builder does: weights are constants, which deployment packs once. The block that
        # packs them goes, and the kernel takes them packed.
        module = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    types = [parameter.ty for parameter in module["main"].params]
    arguments = tuple((tuple(int(extent) for extent in type_.shape), str(type_.dtype)) for type_ in types)
    built = tvm.compile(module, target=Target(request["target"]))
    if request["export"]:
        _export(built, request)
        return _Kernel(None, None, arguments)
    built = built.jit()
    # LLVM emits machine code at the first look-up: that belongs to the build, not to the first call.
    kind = str(json.loads(request["target"])["kind"])
    return _Kernel(built, built["main"], arguments, tvm.device("cpu" if kind == "llvm" else kind, 0))


def _export(built: Any, request: dict[str, Any]) -> None:
    """Write a kernel for a device: linked, or as objects where no compiler here links for it."""
    linker = linker_for(json.loads(request["target"]))
    options = {"cc": linker.compiler} if linker.compiler else {}
    built.export_library(request["export"], **options)


def _argument(array: np.ndarray, shape: tuple[int, ...], device: Any) -> Any:
    """The input as the kernel takes it; a packed weight has the right size and dtype, in any order."""
    if array.shape != shape:
        return tvm.runtime.tensor(np.resize(array, shape), device)
    if device == tvm.cpu() and _shareable(array):
        return tvm.runtime.from_dlpack(array)
    return tvm.runtime.tensor(array, device)


def _measure(kernel: _Kernel, arguments: list[Any], order: dict[str, Any]) -> dict[str, Any]:
    """Time the kernel: `repeat` repeats of as many calls as fill `min_repeat_secs`, after warm-up calls."""
    call_secs = _warm_up(kernel.run, arguments)
    run_secs = _slow_run_secs(kernel.run, arguments, call_secs, order)
    slow = run_secs is not None
    if run_secs is None:
        timer = kernel.module.time_evaluator(
            "main",
            kernel.device,
            number=1 if order["flush_cache"] else math.ceil(order["min_repeat_secs"] / call_secs),
            repeat=order["repeat"],
            f_preproc="cache_flush_cpu_non_first_arg" if order["flush_cache"] else "",
        )
        run_secs = [float(secs) for secs in timer(*arguments).results]
    if not finite(arguments[-1]):
        return {"event": "failed", "error": "The kernel's output holds NaN or infinity."}
    return {
        "event": "measured",
        "run_secs": run_secs,
        "slow": slow,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _slow_run_secs(
    call: Any, arguments: list[Any], call_secs: float, order: dict[str, Any]
) -> list[float] | None:
    """Short repeats if the kernel is clearly slower than the best; None if it may compete.

    One repeat within reach of the best is enough to be measured in full: a disturbance makes a kernel
    look slow, never fast.
    """
    best_secs = order["best_secs"]
    if best_secs is None or order["flush_cache"] or call_secs < SLOW_FACTOR * best_secs:
        return None
    calls = math.ceil(SLOW_REPEAT_SECS / call_secs)
    run_secs: list[float] = []
    while len(run_secs) < order["repeat"]:
        run_secs.append(_timed(call, arguments, calls))
        if run_secs[-1] < SLOW_FACTOR * best_secs:
            return None
    return run_secs


def _warm_up(call: Any, arguments: list[Any]) -> float:
    """Call until caches, threads and clock have settled; return the shortest call, in seconds."""
    started, shortest, calls = time.perf_counter(), math.inf, 0
    while calls < _WARM_UP_CALLS or time.perf_counter() - started < WARM_UP_SECS:
        shortest = min(shortest, _timed(call, arguments))
        calls += 1
    return shortest


def _timed(call: Any, arguments: list[Any], calls: int = 1) -> float:
    """Seconds of a call, the mean of so many."""
    started = time.perf_counter()
    for _ in range(calls):
        call(arguments)
    return (time.perf_counter() - started) / calls


def _shareable(array: np.ndarray) -> bool:
    # NumPy exports only its own dtypes by DLPack.
    return array.dtype.kind in "iuf" and array.flags.c_contiguous and array.ctypes.data % 64 == 0
