"""Experiments that a probe process runs: does a target run, which CPU model compiles best, what is the peak.

Nothing here runs a kernel in the probe process itself.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

from tuneassist.targets import kernels, llvm
from tuneassist.targets.forked import Forked, ForkedError, call, reply
from tuneassist.targets.kernels import Kernel

TOLERANCE = 1e-4
"""Largest error, as a share of the largest output, of a float32 kernel that counts as right."""

_REFERENCES = (
    kernels.matmul(192, rows=8, columns=32, lanes=16, unroll=2, name="matmul"),
    kernels.matmul(192, rows=4, columns=64, lanes=64, unroll=4, name="matmul, 64 lanes"),
    kernels.conv2d(14, 64, width=2, columns=64, lanes=64, name="conv2d"),
)
"""The register tiles and vector widths that fast schedules have: what the search will want compiled well."""

_PEAK_TILES = {16: ((8, 32), (12, 32)), 8: ((6, 16), (4, 24)), 4: ((8, 12), (4, 16))}
"""Rows and columns that fill the registers, by lanes of a vector."""

_PEAK_SAMPLES = 30

MARGIN = 0.05
"""The share of its time by which another CPU model must beat the detected one."""

_SAMPLE_SECS = 2e-3
_LOAD_TIMEOUT_SECS = 20.0
_SAMPLE_TIMEOUT_SECS = 5.0
_FINALISTS = 2


def verify(configs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Compile and run a kernel for each target in turn, until one is right.

    Yields:
        For each target tried: `config` and `error` (empty: it runs and its output is right).
    """
    kernel = kernels.matmul(64, rows=4, columns=32, lanes=16, unroll=2)
    for config in configs:
        error = ""
        try:
            deviation = call(_deviation, kernel, config, timeout_secs=_LOAD_TIMEOUT_SECS)
            if not deviation <= TOLERANCE:
                error = f"the kernel's output is wrong (largest relative error {deviation:.2g})"
        except ForkedError as failure:
            error = str(failure)
        yield {"config": config, "error": error}
        if not error:
            return


def _deviation(kernel: Kernel, config: dict[str, Any]) -> float:
    return kernels.largest_error(
        kernel, kernels.load(kernel.build(), kernel.shapes, {**config, "num-cores": 1})
    )


def compare(configs: Sequence[dict[str, Any]], budget_secs: float) -> Iterator[dict[str, Any]]:
    """Time the reference kernels for each target against the first target.

    All processes are loaded first; then every round samples each in turn, so that drift of the machine
    meets all alike. What counts is the CPU time of one thread: unlike wall time it does not grow when
    another process takes the core. Where some are faster than the first by more than `MARGIN`, the best of
    them are sampled again in new processes (code and data then lie elsewhere in memory), beside a second
    copy of the first target, whose ratio shows the noise.

    Yields:
        One object: `results` (per target `config`, `ratio` to the first target's time, `ratios` by kernel,
        `error`), `finals` (the same for the finalists), `noise`, `secs`.
    """
    started = time.monotonic()
    results = _sample(configs, budget_secs=budget_secs)
    faster = sorted(
        (result for result in results[1:] if result["ratio"] is not None and result["ratio"] < 1.0 - MARGIN),
        key=lambda result: result["ratio"],
    )
    finals: list[dict[str, Any]] = []
    noise = None
    if faster:
        chosen = [configs[0], configs[0], *(result["config"] for result in faster[:_FINALISTS])]
        _, control, *finals = _sample(chosen, budget_secs=budget_secs)
        noise = None if control["ratio"] is None else abs(control["ratio"] - 1.0)
    yield {"results": results, "finals": finals, "noise": noise, "secs": time.monotonic() - started}


def _sample(configs: Sequence[dict[str, Any]], *, budget_secs: float) -> list[dict[str, Any]]:
    """Ratios of each target to the first, as medians over rounds and geometric means over kernels."""
    deadline = time.monotonic() + budget_secs
    errors = [""] * len(configs)
    samples: list[list[list[float]]] = [[[] for _ in _REFERENCES] for _ in configs]
    with ExitStack() as stack:
        processes = [stack.enter_context(Forked(_serve_samples, config)) for config in configs]
        for index, process in enumerate(processes):
            try:
                process.answer(max(1.0, deadline - time.monotonic()) if index else _LOAD_TIMEOUT_SECS)
            except ForkedError as error:
                errors[index] = str(error)
        alive = [index for index, error in enumerate(errors) if not error]
        rounds = 0
        while rounds < 5 or (rounds < 9 and time.monotonic() < deadline):
            for kernel in range(len(_REFERENCES)):
                for index in alive if rounds % 2 else reversed(alive):
                    processes[index].send(kernel)
                    try:
                        samples[index][kernel].append(processes[index].answer(_SAMPLE_TIMEOUT_SECS))
                    except ForkedError as error:
                        errors[index] = str(error)
            alive = [index for index in alive if not errors[index]]
            rounds += 1
    return [
        {
            "config": config,
            "error": error,
            **_ratios(samples[0], own if not error and not errors[0] else None),
        }
        for config, error, own in zip(configs, errors, samples, strict=True)
    ]


def _ratios(first: list[list[float]], own: list[list[float]] | None) -> dict[str, Any]:
    if own is None:
        return {"ratio": None, "ratios": {}}
    ratios = {
        kernel.name: statistics.median(mine) / statistics.median(base)
        for kernel, mine, base in zip(_REFERENCES, own, first, strict=True)
    }
    return {"ratio": statistics.geometric_mean(ratios.values()), "ratios": ratios}


def _serve_samples(pipe: Connection, config: dict[str, Any]) -> None:
    loaded = [kernels.load(k.build(), k.shapes, {**config, "num-cores": 1}) for k in _REFERENCES]
    for kernel, ready in zip(_REFERENCES, loaded, strict=True):
        deviation = kernels.largest_error(kernel, ready)
        if not deviation <= TOLERANCE:
            raise ValueError(f"the output of {kernel.name} is wrong (largest relative error {deviation:.2g})")
    reply(pipe, None)
    while True:
        ready = loaded[pipe.recv()]
        # The first call brings back into the caches what the other processes drove out.
        once = ready.thread_secs(1)
        reply(pipe, ready.thread_secs(max(1, math.ceil(_SAMPLE_SECS / max(once, 1e-6)))))


def peak(config: dict[str, Any], cores: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Measure the most that multiply-adds reach on all the cores at once, each busy with a process.

    Yields:
        One object: `gflops`, or null and `error`.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(Forked(_serve_peak, config, core)) for core in cores]
        try:
            for process in processes:
                process.answer(_LOAD_TIMEOUT_SECS)
            for process in processes:
                process.send(None)
            by_core = [process.answer(_SAMPLE_TIMEOUT_SECS) for process in processes]
        except ForkedError as error:
            yield {"gflops": None, "error": str(error)}
            return
    # The tile that is best on all cores together.
    yield {"gflops": max(map(sum, zip(*by_core, strict=True))), "error": ""}


def _serve_peak(pipe: Connection, config: dict[str, Any], core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [core])
    features = llvm.model_features(config)
    lanes = 16 if "avx512f" in features else 8 if "avx" in features else 4
    tiles = [kernels.peak(rows=rows, columns=columns, lanes=lanes) for rows, columns in _PEAK_TILES[lanes]]
    loaded = [
        (kernels.load(module, shapes, {**config, "num-cores": 1}), flops) for module, shapes, flops in tiles
    ]
    reply(pipe, None)
    pipe.recv()
    gflops = []
    for tile, flops in loaded:
        calls = max(1, math.ceil(_SAMPLE_SECS / max(tile.thread_secs(3), 1e-6)))
        secs = statistics.median(tile.thread_secs(calls) for _ in range(_PEAK_SAMPLES))
        gflops.append(flops / secs / 1e9)
    reply(pipe, gflops)
