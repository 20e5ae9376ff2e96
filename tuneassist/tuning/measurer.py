"""Measures on this machine: builds in parallel, then one kernel at a time and nothing else of ours."""

from __future__ import annotations

import math
import os
import select
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tuneassist.records import TrialStatus
from tuneassist.tuning.builds import Builder, BuildQueue, Built
from tuneassist.tuning.measuring import Job, Limits, Outcome, Protocol
from tuneassist.tuning.workers import Worker, Workers, ZygoteLostError

_WINDOW = 48
"""Built candidates that may wait for their turn; each holds a process."""
ZYGOTE_RESTARTS = 3


class LocalMeasurer:
    """Runs jobs through forked processes of this machine.

    Args:
        workers: The zygote, started and ready.
        cores: CPU ids; as many builds run in parallel.
        protocol: How kernels are timed.
        checkpoint: Called between any two steps; may block (pause); true to stop.
        on_phase: Told `build` or `measure` when that begins.
    """

    local = True

    def __init__(
        self,
        workers: Workers,
        cores: Sequence[int],
        protocol: Protocol,
        *,
        checkpoint: Callable[[], bool] = lambda: False,
        on_phase: Callable[[str, int, int], None] = lambda phase, done, total: None,
    ) -> None:
        self._builder = Builder(workers, cores)
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
        """See `Measurer.run`; `before_measuring` is called when nothing is being built."""
        batch = _Batch(self, jobs, limits, best_secs, on_outcome, before_measuring)
        for attempt in range(ZYGOTE_RESTARTS + 1):
            try:
                return batch.run()
            except ZygoteLostError:
                if attempt == ZYGOTE_RESTARTS:
                    raise
                self._builder.workers.restart()
        return False

    def open(self, jobs: Sequence[Job], limits: Limits) -> list[LocalJob | Outcome]:
        """See `Measurer.open`; each job keeps its process."""
        workers = [self._builder.fork(job, limits) for job in jobs]
        opened: list[LocalJob | Outcome] = []
        for worker in workers:
            answer = self._builder.answer(worker, TrialStatus.BUILD_ERROR, TrialStatus.BUILD_TIMEOUT)
            opened.append(answer if isinstance(answer, Outcome) else LocalJob(self, worker, limits))
        return opened

    def _measure(self, worker: Worker, limits: Limits, best_secs: float | None) -> Outcome:
        order = {
            "event": "measure",
            "repeat": self._protocol.repeat,
            "min_repeat_secs": self._protocol.min_repeat_secs,
            "flush_cache": self._protocol.flush_cache,
            "best_secs": best_secs,
        }
        worker.ask(order, timeout_secs=limits.run_secs)
        answer = self._builder.answer(worker, TrialStatus.RUN_ERROR, TrialStatus.RUN_TIMEOUT)
        return answer if isinstance(answer, Outcome) else measured(answer)


def measured(answer: dict[str, Any]) -> Outcome:
    """The outcome that a `measured` answer tells."""
    run_secs = tuple(answer["run_secs"])
    if not all(math.isfinite(secs) and secs > 0 for secs in run_secs):
        return Outcome(TrialStatus.RUN_ERROR, error=f"The timer answered {run_secs}.")
    return Outcome(TrialStatus.OK, run_secs, slow=answer["slow"], peak_rss_bytes=answer["peak_rss_bytes"])


class LocalJob:
    """A built candidate whose process is kept."""

    def __init__(self, measurer: LocalMeasurer, worker: Worker, limits: Limits) -> None:
        self._measurer = measurer
        self._worker = worker
        self._limits = limits

    def measure(self, *, quick: bool = False) -> Outcome:
        """See `OpenJob.measure`."""
        if self._worker.ended:
            return Outcome(TrialStatus.RUN_ERROR, error="The process has ended.")
        return self._measurer._measure(self._worker, self._limits, 0.0 if quick else None)

    def check(self, reference: os.PathLike[str], *, rtol: float, atol: float, save: bool = False) -> Any:
        """See `OpenJob.check`."""
        order = {"event": "check", "path": os.fspath(reference), "rtol": rtol, "atol": atol, "save": save}
        self._worker.ask(order, timeout_secs=self._limits.run_secs)
        return self._measurer._builder.answer(self._worker, TrialStatus.RUN_ERROR, TrialStatus.RUN_TIMEOUT)

    def close(self) -> None:
        """Let the process end."""
        self._worker.close()


class _Batch:
    """The jobs of one `LocalMeasurer.run`, and how far they are."""

    def __init__(
        self,
        measurer: LocalMeasurer,
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
        self._built: deque[Built] = deque()

    def run(self) -> bool:
        # Entered again after the zygote was lost: whatever has not ended starts over.
        builds = BuildQueue(self._m._builder, self._jobs, self._limits, sorted(self._open), self._end)
        self._built.clear()
        try:
            while self._open:
                if self._m._checkpoint():
                    return False
                if builds.start(_WINDOW - len(self._built)):
                    self._m._on_phase("build", len(self._jobs) - builds.pending, len(self._jobs))
                if builds.running:
                    ready, _, _ = select.select([worker.sock for worker in builds.running], [], [], 0.1)
                    self._built += builds.collect(ready)
                else:
                    self._measure_built()
        finally:
            builds.drop()
            for built in self._built:
                built.worker.close()
        self._m._builder.workers.forget_ended()
        return True

    def _measure_built(self) -> None:
        total = len(self._built)
        if self._built:
            self._before_measuring()
        while self._built:
            if self._m._checkpoint():
                return
            self._m._on_phase("measure", total - len(self._built), total)
            built = self._built.popleft()
            best_secs = self._best_secs if self._m._protocol.shorten else None
            outcome = self._m._measure(built.worker, self._limits, best_secs)
            built.worker.close()
            self._end(built.index, outcome, built.secs)

    def _end(self, index: int, outcome: Outcome, build_secs: float) -> None:
        self._open.discard(index)
        median = outcome.median_secs
        if median is not None:
            self._best_secs = min(median, self._best_secs or median)
        self._on_outcome(index, replace(outcome, build_secs=build_secs))
