"""Small kernels with fixed schedules: to check that a target runs, to compare CPU models, to find the peak.

All work on float32 and on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.tvm_api import IRModule, Schedule, Target, te, topi, tvm

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A scheduled kernel and what its output must be."""

    name: str
    build: Callable[[], IRModule]
    shapes: tuple[tuple[int, ...], ...]
    """Of the inputs, then of the output."""
    reference: Callable[..., Array]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel compiled into this process, with its arguments."""

    module: Any
    call: Callable[..., None]
    arguments: tuple[Any, ...]

    def run(self) -> None:
        """Call it once."""
        self.call(*self.arguments)

    def thread_secs(self, calls: int) -> float:
        """Seconds of a call, the mean of so many, in CPU time of this thread.

        Unlike wall time it does not grow when another process takes the core.
        """
        started = time.thread_time()
        for _ in range(calls):
            self.call(*self.arguments)
        return (time.thread_time() - started) / calls

    def repeats(self, *, number: int, repeat: int) -> list[float]:
        """Seconds of a call in each repeat, itself the mean of `number` calls, by wall clock."""
        timer = self.module.time_evaluator("main", tvm.cpu(), number=number, repeat=repeat)
        return [float(secs) for secs in timer(*self.arguments).results]


def load(
    module: IRModule, shapes: tuple[tuple[int, ...], ...], target: dict[str, Any], *, seed: int = 0
) -> Loaded:
    """Compile a module in this process and make inputs in [-0.5, 0.5) for it."""
    rng = np.random.default_rng(seed)
    executable = tvm.compile(module, target=Target(target)).jit()
    arrays = [rng.random(shape, dtype=np.float32) - np.float32(0.5) for shape in shapes[:-1]]
    arrays.append(np.zeros(shapes[-1], np.float32))
    return Loaded(executable, executable["main"], tuple(tvm.runtime.tensor(array) for array in arrays))


def largest_error(kernel: Kernel, loaded: Loaded) -> float:
    """Run the kernel; its largest error against NumPy, as a share of the largest output value.

    NaN in the output gives NaN, which is below no tolerance.
    """
    loaded.run()
    *inputs, output = (argument.numpy() for argument in loaded.arguments)
    expected = kernel.reference(*(array.astype(np.float64) for array in inputs))
    return float(np.max(np.abs(output - expected)) / np.max(np.abs(expected)))


def matmul(size: int, *, rows: int, columns: int, lanes: int, unroll: int, name: str = "matmul") -> Kernel:
    """Square matrix product whose tile of `rows` x `columns` is held in registers."""

    def build() -> IRModule:
        a = te.placeholder((size, size), name="A")
        b = te.placeholder((size, size), name="B")
        k = te.reduce_axis((0, size), name="k")
        c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        schedule = Schedule(te.create_prim_func([a, b, c]))
        block = schedule.get_sblock("C")
        i, j, k_loop = schedule.get_loops(block)
        i_outer, i_inner = schedule.split(i, [None, rows])
        j_outer, j_inner = schedule.split(j, [None, columns])
        k_outer, k_inner = schedule.split(k_loop, [None, unroll])
        schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
        _register_tile(
            schedule, block, at=j_outer, reduction=k_outer, unrolled=(k_inner, i_inner), lanes=lanes
        )
        return schedule.mod

    return Kernel(name, build, ((size, size),) * 3, lambda a, b: a @ b)


def conv2d(size: int, channels: int, *, width: int, columns: int, lanes: int, name: str = "conv2d") -> Kernel:
    """3x3 convolution, NHWC, padding 1, with `width` pixels times `columns` channels held in registers."""

    def build() -> IRModule:
        data = te.placeholder((1, size, size, channels), name="data")
        weight = te.placeholder((3, 3, channels, channels), name="weight")
        output = topi.nn.conv2d_nhwc(data, weight, stride=1, padding=1, dilation=1)
        schedule = Schedule(te.create_prim_func([data, weight, output]))
        block = schedule.get_sblock(output.op.name)
        _, y, x, c, ky, kx, ci = schedule.get_loops(block)
        x_outer, x_inner = schedule.split(x, [None, width])
        c_outer, c_inner = schedule.split(c, [None, columns])
        ci_outer, ci_inner = schedule.split(ci, [None, 4])
        schedule.reorder(c_outer, y, x_outer, ky, kx, ci_outer, ci_inner, x_inner, c_inner)
        _register_tile(schedule, block, at=x_outer, reduction=ky, unrolled=(ci_inner, x_inner), lanes=lanes)
        return schedule.mod

    shape = (1, size, size, channels)
    return Kernel(name, build, (shape, (3, 3, channels, channels), shape), _conv2d_reference)


def peak(*, rows: int, columns: int, lanes: int) -> tuple[IRModule, tuple[tuple[int, ...], ...], int]:
    """Products of matrices so small that only the multiply-add units limit them.

    Returns:
        The module, the shapes of its arguments, and its FLOPs (a multiply-add counts as two).
    """
    depth, repeats = 128, 256
    a = te.placeholder((depth, rows), name="A")
    b = te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    shape = (repeats, rows, columns)
    c = te.compute(shape, lambda _, i, j: te.sum(a[k, i] * b[k, j], axis=k), name="C")
    schedule = Schedule(te.create_prim_func([a, b, c]))
    block = schedule.get_sblock("C")
    repeat, i, j, k_loop = schedule.get_loops(block)
    schedule.reorder(repeat, k_loop, i, j)
    _register_tile(schedule, block, at=repeat, reduction=k_loop, unrolled=(i,), lanes=lanes)
    return schedule.mod, ((depth, rows), (depth, columns), shape), 2 * depth * repeats * rows * columns


def _register_tile(
    schedule: Schedule, block: Any, *, at: Any, reduction: Any, unrolled: tuple[Any, ...], lanes: int
) -> None:
    """Accumulate in a local tile, fully unrolled, so that LLVM keeps it in registers."""
    write_back = schedule.cache_write(block, 0, "global")
    schedule.reverse_compute_at(write_back, at)
    for owner, inner in ((block, unrolled), (write_back, tuple(schedule.get_loops(write_back)[-2:-1]))):
        outer, vector = schedule.split(schedule.get_loops(owner)[-1], [None, lanes])
        schedule.vectorize(vector)
        for loop in (*inner, outer):
            schedule.unroll(loop)
    schedule.decompose_reduction(block, reduction)


def _conv2d_reference(data: Array, weight: Array) -> Array:
    size = data.shape[1]
    padded = np.pad(data, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = (padded[:, y : y + size, x : x + size] @ weight[y, x] for y in range(3) for x in range(3))
    return np.asarray(sum(taps))
