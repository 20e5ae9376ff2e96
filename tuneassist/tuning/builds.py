"""Builds of candidates in forked processes, side by side."""

from __future__ import annotations

import math
import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneassist.records import TrialStatus
from tuneassist.tuning.measuring import Job, Limits, Outcome
from tuneassist.tuning.wire import WireClosedError, receive
from tuneassist.tuning.workers import Worker, Workers


@dataclass(frozen=True, slots=True)
class Built:
    """A job that is built."""

    index: int
    worker: Worker
    """The process that built it, which holds the kernel unless it was exported."""
    secs: float
    answer: dict[str, Any]


class Builder:
    """Forks processes that build, and understands how they end.

    Args:
        workers: The zygote, started and ready.
        cores: CPU ids; as many builds run in parallel.
    """

    def __init__(self, workers: Workers, cores: Sequence[int]) -> None:
        self.workers = workers
        self.cores = tuple(cores)

    def fork(self, job: Job, limits: Limits, export: Path | None = None) -> Worker:
        """Begin to build a job; the kernel stays in the process, or is written to the file `export`."""
        order = {
            "event": "build",
            "module": job.module,
            "target": job.target,
            "prepacked": job.prepacked,
            "cores": self.cores,
            "memory_limit_bytes": limits.memory_bytes,
            "build_cpu_secs": limits.build_cpu_secs if math.isfinite(limits.build_cpu_secs) else None,
            "export": None if export is None else str(export),
        }
        return self.workers.fork(order, timeout_secs=limits.build_secs)

    def kill(self, worker: Worker) -> None:
        """End a process at once."""
        self.workers.kill(worker)
        worker.close()

    def answer(self, worker: Worker, failed: TrialStatus, timed_out: TrialStatus) -> dict[str, Any] | Outcome:
        """Wait for the answer; an `Outcome` is a failure, after which the process is gone."""
        started = time.monotonic()
        while not select.select([worker.sock], [], [], 0.05)[0]:
            if time.monotonic() > worker.deadline:
                self.kill(worker)
                return Outcome(timed_out, error=f"Stopped after {time.monotonic() - started:.1f} s.")
        return self.read(worker, failed)

    def read(self, worker: Worker, failed: TrialStatus) -> dict[str, Any] | Outcome:
        """Take the answer that has come; an `Outcome` is a failure, after which the process is gone."""
        try:
            message, _ = receive(worker.sock)
        except WireClosedError:
            cause = self.workers.cause_of_death(worker)
            worker.close()
            return Outcome(failed, error=cause)
        if message["event"] == "failed":
            worker.close()
            return Outcome(failed, error=message["error"])
        return message


class BuildQueue:
    """The builds of one batch.

    Args:
        builder: Starts them.
        jobs: All jobs of the batch.
        limits: For each of them.
        indices: Those to build, in this order.
        on_failed: Told of a build that failed: its index, how, and what it cost (seconds).
        export: Gives the file that a job's kernel is written to; None: it stays in its process.
    """

    def __init__(
        self,
        builder: Builder,
        jobs: Sequence[Job],
        limits: Limits,
        indices: Iterable[int],
        on_failed: Callable[[int, Outcome, float], None],
        export: Callable[[int], Path] | None = None,
    ) -> None:
        self._builder = builder
        self._jobs = jobs
        self._limits = limits
        self._pending = deque(indices)
        self._on_failed = on_failed
        self._export = export
        self._running: dict[int, tuple[Worker, float]] = {}

    @property
    def pending(self) -> int:
        """Builds not yet begun."""
        return len(self._pending)

    @property
    def running(self) -> list[Worker]:
        """Processes that build."""
        return [worker for worker, _ in self._running.values()]

    def start(self, room: int) -> bool:
        """Begin as many builds as there are idle cores, and no more than there is room for; true if any."""
        started = False
        while self._pending and len(self._running) < min(len(self._builder.cores), room):
            index = self._pending.popleft()
            export = self._export(index) if self._export else None
            worker = self._builder.fork(self._jobs[index], self._limits, export)
            self._running[index] = (worker, time.monotonic())
            started = True
        return started

    def collect(self, ready: Sequence[Any]) -> list[Built]:
        """Take in the builds whose sockets are ready, and end those that take too long."""
        built = []
        now = time.monotonic()
        for index, (worker, started) in list(self._running.items()):
            if now > worker.deadline:
                del self._running[index]
                self._builder.kill(worker)
                error = f"Not built after {now - started:.1f} s."
                self._on_failed(index, Outcome(TrialStatus.BUILD_TIMEOUT, error=error), now - started)
            elif worker.sock in ready:
                del self._running[index]
                answer = self._builder.read(worker, TrialStatus.BUILD_ERROR)
                if isinstance(answer, Outcome):
                    self._failed(index, answer, now - started)
                else:
                    built.append(Built(index, worker, answer["secs"], answer))
        return built

    def drop(self) -> None:
        """End every build."""
        for worker in self.running:
            self._builder.kill(worker)
        self._running.clear()

    def _failed(self, index: int, outcome: Outcome, secs: float) -> None:
        if "SIGXCPU" in (outcome.error or ""):
            secs = self._limits.build_cpu_secs
            error = f"Not built after {secs:.1f} s of CPU time."
            outcome = Outcome(TrialStatus.BUILD_TIMEOUT, error=error)
        self._on_failed(index, outcome, secs)
