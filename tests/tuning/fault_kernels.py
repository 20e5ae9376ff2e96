"""Kernels that fail in each way in which a candidate may fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.tuning.inputs import save_inputs
from tuneassist.tuning.measuring import Job
from tuneassist.tuning.workers import Workers
from tuneassist.tvm_api import IRModule, module_to_text, te, tirx

EXTENT = 16
TARGET = '{"kind": "llvm", "num-cores": 1}'
SIGSEGV, SIGABRT, SIGILL = 11, 6, 4
SLEEP_SECS = 0.02
"""What one call of `sleepy` takes."""


def inputs() -> list[np.ndarray]:
    """The one input that all of these kernels take."""
    return [np.linspace(0.0, 1.0, EXTENT, dtype=np.float32)]


def job(kind: str) -> Job:
    """A job of that kind: `unbuildable`, or a key of `_MODULES`."""
    if kind == "unbuildable":
        return Job('{"root_index": 0, "nodes": []}', TARGET)
    return Job(module_to_text(_MODULES[kind]()), TARGET)


def _elementwise(body: Callable[[Any], Any]) -> IRModule:
    a = te.placeholder((EXTENT,), name="A")
    b = te.compute((EXTENT,), lambda i: body(a[i]), name="B")
    return IRModule({"main": te.create_prim_func([a, b])})


def _calling(function: str, *arguments: int) -> Callable[[], IRModule]:
    return lambda: _elementwise(
        lambda x: x + tirx.call_extern("int32", function, *arguments).astype("float32")
    )


def _hungry() -> IRModule:
    a = te.placeholder((EXTENT,), name="A")
    wide = te.compute((1 << 36,), lambda i: a[i % EXTENT] * 2.0, name="wide")
    out = te.compute((EXTENT,), lambda i: wide[i] + wide[(1 << 36) - 1 - i], name="B")
    return IRModule({"main": te.create_prim_func([a, out])})


_MODULES: dict[str, Callable[[], IRModule]] = {
    "good": lambda: _elementwise(lambda x: x * 2.0),
    "segfault": _calling("raise", SIGSEGV),
    "abort": _calling("raise", SIGABRT),
    "illegal": _calling("raise", SIGILL),
    "hang": _calling("pause"),
    "sleepy": lambda: _calling("usleep", int(SLEEP_SECS * 1e6) // EXTENT)(),
    "nan": lambda: _elementwise(lambda x: te.sqrt(-1.0 - x)),
    "hungry": _hungry,
}


@contextmanager
def workers(folder: Path) -> Iterator[Workers]:
    """A zygote on all cores of this process whose candidates take the inputs of these kernels."""
    save_inputs(folder / "inputs.npz", inputs())
    started = Workers("llvm", tuple(sorted(os.sched_getaffinity(0))), folder / "log")
    started.start()
    started.wait_ready()
    started.set_inputs(folder / "inputs.npz")
    yield started
    started.stop()
