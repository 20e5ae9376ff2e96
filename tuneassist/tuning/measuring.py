"""What measuring is: jobs in, outcomes out, wherever the kernels run."""

from __future__ import annotations

import math
import os
import statistics
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from tuneassist.records import TrialStatus

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What one candidate may use before it is killed."""

    build_secs: float
    run_secs: float
    memory_bytes: int
    build_cpu_secs: float = math.inf
    """CPU time of a build, which other load on the machine does not lengthen."""


def limits_for(
    flops: int,
    workload_bytes: int,
    *,
    repeat: int,
    min_repeat_secs: float,
    build_secs: float | None = None,
    run_secs: float | None = None,
    memory_bytes: int | None = None,
) -> Limits:
    """Limits that scale with the workload, where none are given.

    A run is given up below 0.2 GFLOP/s or 0.2 GB/s, which is some 100 times slower than untuned code on
    one core; a build after 20 s and one more per GFLOP.
    """
    slowest_call_secs = 0.2 + flops / 0.2e9 + workload_bytes / 0.2e9
    return Limits(
        build_secs=build_secs or min(20.0 + flops / 1e9, 120.0),
        run_secs=run_secs or (repeat + 2) * max(slowest_call_secs, 2 * min_repeat_secs) + 2.0,
        memory_bytes=memory_bytes or _memory_limit(workload_bytes),
    )


def _memory_limit(workload_bytes: int) -> int:
    available: int = psutil.virtual_memory().available
    return max(min(4 * _GIB + 4 * workload_bytes, available // 2), _GIB // 2)


@dataclass(frozen=True, slots=True)
class Job:
    """One candidate to build and measure."""

    module: str
    """The scheduled module, by `module_to_text`."""
    target: str
    """TVM's target as JSON."""
    prepacked: bool = True
    """Leave the packing of constant weights out of the kernel, as deployment does."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended. `run_secs` is None unless ok; `error` is None if ok."""

    status: TrialStatus
    run_secs: tuple[float, ...] | None = None
    error: str | None = None
    build_secs: float | None = None
    slow: bool = False
    peak_rss_bytes: int | None = None
    device: str | None = None
    """The device that ran it; None: this machine."""

    @property
    def median_secs(self) -> float | None:
        """Median of the repeats."""
        return statistics.median(self.run_secs) if self.run_secs else None


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a kernel is timed."""

    repeat: int = 3
    min_repeat_secs: float = 0.01
    flush_cache: bool = False
    shorten: bool = True
    """Measure less of a candidate that is clearly slower than the best."""


class StoppedError(Exception):
    """The checkpoint said stop while a job waited for a device."""


class OpenJob(typing.Protocol):
    """A built candidate that is kept, to be run again and again."""

    def measure(self, *, quick: bool = False) -> Outcome:
        """Time it once more: in full, or (`quick`) with one call a repeat."""
        ...

    def check(self, reference: os.PathLike[str], *, rtol: float, atol: float, save: bool = False) -> Any:
        """Run once; compare the output with the reference file, or write it there.

        Returns:
            The answer (`correct`, `max_relative_error`), or an `Outcome` that says how it failed.
        """
        ...

    def close(self) -> None:
        """Let it go."""
        ...


class Measurer(typing.Protocol):
    """Builds jobs on this machine, and runs them here or on devices."""

    @property
    def local(self) -> bool:
        """Whether kernels run on this machine, so that their times compare with what else runs here."""
        ...

    def run(
        self,
        jobs: Sequence[Job],
        limits: Limits,
        *,
        best_secs: float | None,
        on_outcome: Callable[[int, Outcome], None],
        before_measuring: Callable[[], None] = lambda: None,
    ) -> bool:
        """Build all jobs and measure each that builds.

        Args:
            jobs: What to run.
            limits: For each of them.
            best_secs: The best so far; kept up to date while jobs run. A kernel clearly slower than it
                is not measured for long.
            on_outcome: Called with the job's index as soon as it ends, in the order in which jobs end;
                exactly once for each job unless the checkpoint stops.
            before_measuring: Called before each stretch of measurements.

        Returns:
            False if the checkpoint stopped it before all jobs ended.
        """
        ...

    def open(self, jobs: Sequence[Job], limits: Limits) -> Sequence[OpenJob | Outcome]:
        """Build jobs side by side and keep them, to be measured or checked again and again.

        All of them are measured in the same place, one after the other.
        """
        ...
