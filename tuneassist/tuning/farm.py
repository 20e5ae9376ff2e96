"""Measures on devices behind an RPC tracker: builds here, one candidate per device at a time."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.errors import MachineError
from tuneassist.records import TrialStatus
from tuneassist.targets.linker import linker_for
from tuneassist.targets.survey import REFERENCE
from tuneassist.tuning.builds import Builder, BuildQueue, Built
from tuneassist.tuning.crew import Crew, Hand, State
from tuneassist.tuning.farm_batch import FarmBatch, outcome_of
from tuneassist.tuning.inputs import save_inputs
from tuneassist.tuning.measurer import ZYGOTE_RESTARTS
from tuneassist.tuning.measuring import Job, Limits, Outcome, Protocol, StoppedError
from tuneassist.tuning.roster import Roster
from tuneassist.tuning.workers import Workers, ZygoteLostError
from tuneassist.tvm_api import module_to_text

_BUILD_SECS = 60.0
_MEMORY_BYTES = 2 << 30
_ORDERS_A_JOB = 3
"""Times that an opened job is measured or checked, about: its device is held that much longer."""
_TRANSFER_BYTES_PER_SEC = 1e6
_TRANSFER_SECS = 5.0
_LOST_AT_MOST = 3


class FarmMeasurer:
    """Runs jobs on every free device of a key.

    Args:
        workers: The zygote, started and ready.
        cores: CPU ids of this machine; as many builds run in parallel.
        protocol: How kernels are timed.
        roster: The devices.
        target: The devices' target as JSON.
        folder: Takes kernels while they wait for a device.
        checkpoint: Called between any two steps; may block (pause); true to stop.
        on_phase: Told `build` or `measure` when that begins.
        on_waiting: Told when no device is left (true), and when one is there again.
    """

    local = False

    def __init__(
        self,
        workers: Workers,
        cores: Sequence[int],
        protocol: Protocol,
        *,
        roster: Roster,
        target: str,
        folder: Path,
        checkpoint: Callable[[], bool] = lambda: False,
        on_phase: Callable[[str, int, int], None] = lambda phase, done, total: None,
        on_waiting: Callable[[bool], None] = lambda waiting: None,
    ) -> None:
        self.builder = Builder(workers, cores)
        self.crew = Crew(workers, roster)
        self.roster = roster
        self.checkpoint = checkpoint
        self.on_phase = on_phase
        self.on_waiting = on_waiting
        self.protocol = protocol
        self._target = target
        self._kind = str(json.loads(target)["kind"])
        self._suffix = linker_for(json.loads(target)).suffix
        self._folder = folder
        self._count = 0

    def run(
        self,
        jobs: Sequence[Job],
        limits: Limits,
        *,
        best_secs: float | None,
        on_outcome: Callable[[int, Outcome], None],
        before_measuring: Callable[[], None] = lambda: None,
    ) -> bool:
        """See `Measurer.run`; builds go on while devices measure.

        Raises:
            MachineError: No device can run the target's kernels, or the target can't be built.
        """
        batch = FarmBatch(self, jobs, limits, best_secs, on_outcome, before_measuring)
        for attempt in range(ZYGOTE_RESTARTS + 1):
            try:
                self.prepare()
                return batch.run()
            except ZygoteLostError:
                if attempt == ZYGOTE_RESTARTS:
                    raise
                self.builder.workers.restart()
            except StoppedError:
                return False
        return False

    def open(self, jobs: Sequence[Job], limits: Limits) -> list[FarmJob | Outcome]:
        """See `Measurer.open`; all jobs are run on one device, held until the last is closed."""
        self.prepare()
        bench = _Bench(self, limits, len(jobs))
        opened: list[FarmJob | Outcome] = []
        started = [(path := self.new_path(), self.builder.fork(job, limits, path)) for job in jobs]
        for path, worker in started:
            answer = self.builder.answer(worker, TrialStatus.BUILD_ERROR, TrialStatus.BUILD_TIMEOUT)
            worker.close()
            opened.append(answer if isinstance(answer, Outcome) else FarmJob(bench, path, answer))
        return opened

    def prepare(self) -> None:
        """Build the reference kernel, which each device runs before anything else.

        Raises:
            MachineError: This TVM can't build for the target.
        """
        if self._kind != "llvm" or self.crew.reference is not None:
            return
        path, failed = self.new_path(), []
        job = Job(module_to_text(REFERENCE.build()), self._target, prepacked=False)
        limits = Limits(_BUILD_SECS, _BUILD_SECS, _MEMORY_BYTES)
        queue = BuildQueue(
            self.builder, [job], limits, [0], lambda _, outcome, secs: failed.append(outcome), lambda _: path
        )
        queue.start(1)
        built: list[Built] = []
        while not built and not failed:
            built = queue.collect(self.crew.wait((), queue.running))
        if failed:
            raise MachineError(
                f"No kernel can be built for the target {self._target}: {failed[0].error}",
                remedy="Check the target with `tuneassist targets`, and what links for it (TUNEASSIST_CC "
                "names a cross compiler).",
            )
        built[0].worker.close()
        inputs = self._folder / "reference.npz"
        rng = np.random.default_rng(0)
        *shapes, _ = REFERENCE.shapes
        save_inputs(inputs, [rng.random(shape, dtype=np.float32) for shape in shapes])
        self.crew.reference = {**self.order(path, built[0].answer, None), "inputs": str(inputs)}

    def order(self, path: Path, built: dict[str, Any], best_secs: float | None) -> dict[str, Any]:
        """What a device is asked to measure."""
        return {
            "event": "measure",
            "kernel": str(path),
            "arguments": built["arguments"],
            "kind": self._kind,
            "inputs": None,
            "repeat": self.protocol.repeat,
            "min_repeat_secs": self.protocol.min_repeat_secs,
            "flush_cache": self.protocol.flush_cache,
            "best_secs": best_secs if self.protocol.shorten else None,
        }

    def new_path(self) -> Path:
        """Where the next kernel is written."""
        self._count += 1
        return self._folder / f"k{self._count}{self._suffix}"

    def session_secs(self, limits: Limits) -> float:
        """How long a device may take for one candidate, the way there included."""
        inputs = self.builder.workers.inputs
        size = inputs.stat().st_size if inputs is not None else 0
        return limits.run_secs + _TRANSFER_SECS + size / _TRANSFER_BYTES_PER_SEC


class _Bench:
    """One device, held for jobs that are measured side by side; another one where it is lost."""

    def __init__(self, farm: FarmMeasurer, limits: Limits, jobs: int) -> None:
        self.farm = farm
        self.jobs = 0
        self._answer_secs = farm.session_secs(limits)
        self._session_secs = _ORDERS_A_JOB * jobs * self._answer_secs
        self._hand: Hand | None = None

    def ask(self, order: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The answer to an order, and the device that gave it.

        A session that the device ends, or that is ended here, since the kernel takes too long is an answer.

        Raises:
            StoppedError: There is no device, and the checkpoint said stop; or several were lost over it.
        """
        crew = self.farm.crew
        for _ in range(_LOST_AT_MOST):
            hand = self._ready_hand()
            crew.work(hand, order, self._answer_secs)
            while not (answers := crew.collect([hand], crew.wait([hand]))):
                pass
            _, answer = answers[0]
            if answer.get("overdue"):
                return {"event": "timed_out"}, hand.device
            if answer["event"] != "lost":
                return answer, hand.device
        raise StoppedError(f"{_LOST_AT_MOST} devices were lost one after the other")

    def _ready_hand(self) -> Hand:
        crew, roster = self.farm.crew, self.farm.roster
        if self._hand is not None and self._hand.state is State.READY:
            return self._hand
        waiting = False
        with contextlib.ExitStack() as stack:
            while self._hand is None or self._hand.state is not State.READY:
                if self.farm.checkpoint():
                    self.close()
                    raise StoppedError("There is no device to measure on")
                roster.refresh()
                if self._hand is None or self._hand.state is State.GONE:
                    self._hand = crew.hire(self._session_secs) if roster.usable() else None
                if self._hand is None and not waiting:
                    waiting = True
                    self.farm.on_waiting(True)
                    stack.callback(self.farm.on_waiting, False)
                hands = [self._hand] if self._hand else []
                crew.collect(hands, crew.wait(hands))
        return self._hand

    def close(self) -> None:
        """Give the device back."""
        if self._hand is not None:
            self.farm.crew.dismiss(self._hand)


class FarmJob:
    """A built candidate that is run on the device of its bench."""

    def __init__(self, bench: _Bench, path: Path, built: dict[str, Any]) -> None:
        self._bench = bench
        self._path = path
        self._built = built
        bench.jobs += 1

    def measure(self, *, quick: bool = False) -> Outcome:
        """See `OpenJob.measure`."""
        answer, device = self._bench.ask(self._order(0.0 if quick else None))
        return outcome_of(answer, device)

    def check(self, reference: os.PathLike[str], *, rtol: float, atol: float, save: bool = False) -> Any:
        """See `OpenJob.check`."""
        order = {
            **self._order(None), "event": "check", "path": os.fspath(reference), "rtol": rtol, "atol": atol,
            "save": save,
        }  # fmt: skip
        answer, device = self._bench.ask(order)
        return answer if answer["event"] == "checked" else outcome_of(answer, device)

    def close(self) -> None:
        """Let it go, and with the last one the device."""
        self._path.unlink(missing_ok=True)
        self._bench.jobs -= 1
        if self._bench.jobs == 0:
            self._bench.close()

    def _order(self, best_secs: float | None) -> dict[str, Any]:
        return self._bench.farm.order(self._path, self._built, best_secs)
