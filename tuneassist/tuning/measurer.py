"""Builds candidates in parallel and measures them one at a time, with nothing else of ours running."""

from __future__ import annotations

import math
import os
import select
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from tuneassist.records import TrialStatus
from tuneassist.tuning.wire import WireClosedError, receive
from tuneassist.tuning.workers import Worker, Workers, ZygoteLostError

_WINDOW = 48
"""Built candidates that may wait for their turn; each holds a process."""
_ZYGOTE_RESTARTS = 3
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


@dataclass(slots=True)
class _Built:
    index: int
    worker: Worker
    build_secs: float


class Measurer:
    """Runs jobs through forked processes.

    Args:
        workers: The zygote, started and ready.
        cores: CPU ids; as many builds run in parallel.
        protocol: How kernels are timed.
        checkpoint: Called between any two steps; may block (pause); true to stop.
        on_phase: Told `build` or `measure` when that begins.
    """

    def __init__(
        self,
        workers: Workers,
        cores: Sequence[int],
        protocol: Protocol,
        *,
        checkpoint: Callable[[], bool] = lambda: False,
        on_phase: Callable[[str, int, int], None] = lambda phase, done, total: None,
    ) -> None:
        self._workers = workers
        self._cores = tuple(cores)
        self._protocol = protocol
        self._checkpoint = checkpoint
        self._on_phase = on_phase

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
            on_outcome: Called with the job's index as soon as it ends, in the order in which jobs end.
            before_measuring: Called before each stretch of measurements, when nothing is being built.

        Returns:
            False if the checkpoint stopped it before all jobs ended.
        """
        batch = _Batch(self, jobs, limits, best_secs, on_outcome, before_measuring)
        for attempt in range(_ZYGOTE_RESTARTS + 1):
            try:
                return batch.run()
            except ZygoteLostError:
                if attempt == _ZYGOTE_RESTARTS:
                    raise
                self._workers.restart()
        return False

    def open(self, jobs: Sequence[Job], limits: Limits) -> list[OpenJob | Outcome]:
        """Build jobs side by side and keep their processes, to be measured or checked again and again."""
        workers = [self._fork(job, limits) for job in jobs]
        opened: list[OpenJob | Outcome] = []
        for worker in workers:
            answer = self._answer(worker, TrialStatus.BUILD_ERROR, TrialStatus.BUILD_TIMEOUT)
            opened.append(answer if isinstance(answer, Outcome) else OpenJob(self, worker, limits))
        return opened

    def _fork(self, job: Job, limits: Limits) -> Worker:
        order = {
            "event": "build",
            "module": job.module,
            "target": job.target,
            "prepacked": job.prepacked,
            "cores": self._cores,
            "memory_limit_bytes": limits.memory_bytes,
            "build_cpu_secs": limits.build_cpu_secs if math.isfinite(limits.build_cpu_secs) else None,
        }
        return self._workers.fork(order, timeout_secs=limits.build_secs)

    def _measure(self, worker: Worker, limits: Limits, best_secs: float | None) -> Outcome:
        order = {
            "event": "measure",
            "repeat": self._protocol.repeat,
            "min_repeat_secs": self._protocol.min_repeat_secs,
            "flush_cache": self._protocol.flush_cache,
            "best_secs": best_secs,
        }
        worker.ask(order, timeout_secs=limits.run_secs)
        answer = self._answer(worker, TrialStatus.RUN_ERROR, TrialStatus.RUN_TIMEOUT)
        if isinstance(answer, Outcome):
            return answer
        run_secs = tuple(answer["run_secs"])
        if not all(math.isfinite(secs) and secs > 0 for secs in run_secs):
            return Outcome(TrialStatus.RUN_ERROR, error=f"The timer answered {run_secs}.")
        return Outcome(TrialStatus.OK, run_secs, slow=answer["slow"], peak_rss_bytes=answer["peak_rss_bytes"])

    def _answer(
        self, worker: Worker, failed: TrialStatus, timed_out: TrialStatus
    ) -> dict[str, Any] | Outcome:
        """Wait for the answer; an `Outcome` is a failure, after which the process is gone."""
        started = time.monotonic()
        while not select.select([worker.sock], [], [], 0.05)[0]:
            if time.monotonic() > worker.deadline:
                self._workers.kill(worker)
                worker.close()
                return Outcome(timed_out, error=f"Stopped after {time.monotonic() - started:.1f} s.")
        return self._read(worker, failed)

    def _read(self, worker: Worker, failed: TrialStatus) -> dict[str, Any] | Outcome:
        try:
            message, _ = receive(worker.sock)
        except WireClosedError:
            cause = self._workers.cause_of_death(worker)
            worker.close()
            return Outcome(failed, error=cause)
        if message["event"] == "failed":
            worker.close()
            return Outcome(failed, error=message["error"])
        return message


class OpenJob:
    """A built candidate whose process is kept."""

    def __init__(self, measurer: Measurer, worker: Worker, limits: Limits) -> None:
        self._measurer = measurer
        self._worker = worker
        self._limits = limits

    def measure(self, *, quick: bool = False) -> Outcome:
        """Time it once more: in full, or (`quick`) with one call a repeat."""
        if self._worker.ended:
            return Outcome(TrialStatus.RUN_ERROR, error="The process has ended.")
        return self._measurer._measure(self._worker, self._limits, 0.0 if quick else None)

    def check(self, reference: os.PathLike[str], *, rtol: float, atol: float, save: bool = False) -> Any:
        """Run once; compare the output with the reference file, or write it there.

        Returns:
            The answer (`correct`, `max_relative_error`), or an `Outcome` that says how it failed.
        """
        order = {"event": "check", "path": os.fspath(reference), "rtol": rtol, "atol": atol, "save": save}
        self._worker.ask(order, timeout_secs=self._limits.run_secs)
        return self._measurer._answer(self._worker, TrialStatus.RUN_ERROR, TrialStatus.RUN_TIMEOUT)

    def close(self) -> None:
        """Let the process end."""
        self._worker.close()


class _Batch:
    """The jobs of one `Measurer.run`, and how far they are."""

    def __init__(
        self,
        measurer: Measurer,
        jobs: Sequence[Job],
        limits: Limits,
        best_secs: float | None,
        on_outcome: Callable[[int, Outcome], None],
        before_measuring: Callable[[], None],
    ) -> None:
        self._m = measurer
        self._jobs = jobs
        self._limits = limits
        self._best_secs = best_secs
        self._on_outcome = on_outcome
        self._before_measuring = before_measuring
        self._open = set(range(len(jobs)))
        self._pending: deque[int] = deque()
        self._building: dict[int, tuple[Worker, float]] = {}
        self._built: deque[_Built] = deque()

    def run(self) -> bool:
        # Entered again after the zygote was lost: whatever has not ended starts over.
        self._pending = deque(sorted(self._open))
        self._building.clear()
        self._built.clear()
        try:
            while self._open:
                if self._m._checkpoint():
                    return False
                self._start_builds()
                if self._building:
                    self._await_builds()
                else:
                    self._measure_built()
        finally:
            self._drop_all()
        self._m._workers.forget_ended()
        return True

    def _start_builds(self) -> None:
        started = False
        while (
            self._pending
            and len(self._building) < len(self._m._cores)
            and len(self._building) + len(self._built) < _WINDOW
        ):
            index = self._pending.popleft()
            self._building[index] = (self._m._fork(self._jobs[index], self._limits), time.monotonic())
            started = True
        if started:
            self._m._on_phase("build", len(self._jobs) - len(self._pending), len(self._jobs))

    def _await_builds(self) -> None:
        ready, _, _ = select.select([worker.sock for worker, _ in self._building.values()], [], [], 0.1)
        now = time.monotonic()
        for index, (worker, started) in list(self._building.items()):
            if now > worker.deadline:
                del self._building[index]
                self._m._workers.kill(worker)
                worker.close()
                error = f"Not built after {now - started:.1f} s."
                self._end(index, Outcome(TrialStatus.BUILD_TIMEOUT, error=error), now - started)
            elif worker.sock in ready:
                del self._building[index]
                answer = self._m._read(worker, TrialStatus.BUILD_ERROR)
                if isinstance(answer, Outcome) and "SIGXCPU" in (answer.error or ""):
                    secs = self._limits.build_cpu_secs
                    error = f"Not built after {secs:.1f} s of CPU time."
                    self._end(index, Outcome(TrialStatus.BUILD_TIMEOUT, error=error), secs)
                elif isinstance(answer, Outcome):
                    self._end(index, answer, now - started)
                else:
                    self._built.append(_Built(index, worker, answer["secs"]))

    def _measure_built(self) -> None:
        total = len(self._built)
        if self._built:
            self._before_measuring()
        while self._built:
            if self._m._checkpoint():
                return
            self._m._on_phase("measure", total - len(self._built), total)
            built = self._built.popleft()
            outcome = self._m._measure(built.worker, self._limits, self._best_secs)
            built.worker.close()
            self._end(built.index, outcome, built.build_secs)

    def _end(self, index: int, outcome: Outcome, build_secs: float) -> None:
        self._open.discard(index)
        median = outcome.median_secs
        if median is not None:
            self._best_secs = min(median, self._best_secs or median)
        self._on_outcome(
            index,
            Outcome(
                outcome.status, outcome.run_secs, outcome.error, build_secs, outcome.slow,
                outcome.peak_rss_bytes,
            ),
        )  # fmt: skip

    def _drop_all(self) -> None:
        for worker, _ in self._building.values():
            self._m._workers.kill(worker)
            worker.close()
        for built in self._built:
            built.worker.close()
