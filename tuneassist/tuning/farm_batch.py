"""One batch on a farm of devices: builds, the queue of built candidates, and the hands that measure."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneassist.errors import MachineError
from tuneassist.records import TrialStatus
from tuneassist.tuning.builds import BuildQueue, Built
from tuneassist.tuning.crew import Hand, State
from tuneassist.tuning.measurer import measured
from tuneassist.tuning.measuring import Job, Limits, Outcome

if TYPE_CHECKING:
    from tuneassist.tuning.farm import FarmMeasurer

_WINDOW = 64
"""Built candidates that may wait for a device, as files."""
_LOST_AT_MOST = 3
"""Devices that a candidate may be measured on and lost with before it is held to be the cause."""
_PATIENCE_SECS = (3.0, 20.0)
"""How long no device is there, or none becomes free, before the run says that it waits."""
_ILLEGAL = "SIGILL"
_ILLEGAL_AT_MOST = 2


class FarmBatch:
    """The jobs of one `FarmMeasurer.run`, and how far they are."""

    def __init__(
        self,
        farm: FarmMeasurer,
        jobs: Sequence[Job],
        limits: Limits,
        best_secs: float | None,
        on_outcome: Callable[[int, Outcome], None],
        before_measuring: Callable[[], None],
    ) -> None:
        self._farm = farm
        self._jobs = jobs
        self._limits = limits
        self._best_secs = best_secs
        self._on_outcome = on_outcome
        self._before_measuring = before_measuring
        self._open = set(range(len(jobs)))
        self._built: deque[Built] = deque()
        self._paths: dict[int, Path] = {}
        self._hands: dict[Hand, Built | None] = {}
        self._lost: Counter[int] = Counter()
        self._illegal = 0
        self._prepared = False
        self._idle_since: float | None = None
        self._waiting = False

    def run(self) -> bool:
        """See `Measurer.run`."""
        # Entered again after the zygote was lost: whatever has not ended starts over.
        farm, crew = self._farm, self._farm.crew
        self._built.clear()
        self._hands.clear()
        builds = BuildQueue(farm.builder, self._jobs, self._limits, sorted(self._open), self._end, self._path)
        try:
            while self._open:
                if farm.checkpoint():
                    return False
                if builds.start(_WINDOW - len(self._built)):
                    farm.on_phase("build", len(self._jobs) - builds.pending, len(self._jobs))
                self._staff()
                ready = crew.wait(self._hands, builds.running)
                for built in builds.collect(ready):
                    built.worker.close()
                    self._built.append(built)
                for hand, answer in crew.collect(self._hands, ready):
                    self._answered(hand, answer)
                self._assign()
        finally:
            builds.drop()
            for hand in self._hands:
                crew.dismiss(hand)
            for path in self._paths.values():
                path.unlink(missing_ok=True)
            self._wait_is_over()
        farm.builder.workers.forget_ended()
        return True

    def _path(self, index: int) -> Path:
        self._paths[index] = self._farm.new_path()
        return self._paths[index]

    def _staff(self) -> None:
        """Have as many hands as there are devices to use and candidates to measure."""
        farm = self._farm
        farm.roster.refresh()
        self._hands = {hand: job for hand, job in self._hands.items() if hand.state is not State.GONE}
        if not self._built:
            return
        if not self._prepared:
            self._prepared = True
            self._before_measuring()
        idle = sum(hand.state is not State.WORKING for hand in self._hands)
        devices = farm.roster.usable()
        while idle < len(self._built) and len(self._hands) < devices:
            self._hands[farm.crew.hire(farm.session_secs(self._limits))] = None
            idle += 1
        if any(hand.state is not State.WAITING for hand in self._hands):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()
        elif not self._waiting and time.monotonic() > self._idle_since + _PATIENCE_SECS[devices > 0]:
            self._waiting = True
            farm.on_waiting(True)

    def _assign(self) -> None:
        """Give built candidates to devices that are ready, and let go of those that none is left for."""
        farm = self._farm
        for hand in [hand for hand in self._hands if hand.state is State.READY]:
            self._wait_is_over()
            if not self._built:
                farm.crew.dismiss(hand)
                continue
            built = self._hands[hand] = self._built.popleft()
            done = len(self._jobs) - len(self._open)
            farm.on_phase("measure", done, len(self._jobs))
            best_secs = self._best_secs if farm.protocol.shorten else None
            order = farm.order(self._paths[built.index], built.answer, best_secs)
            farm.crew.work(hand, order)

    def _answered(self, hand: Hand, answer: dict[str, Any]) -> None:
        built = self._hands[hand]
        assert built is not None
        if answer["event"] == "lost":
            self._lost[built.index] += 1
            if self._lost[built.index] < _LOST_AT_MOST:
                self._built.appendleft(built)
                return
            error = f"{_LOST_AT_MOST} devices were lost over it, the last with: {answer['error']}"
            answer = {"event": "failed", "error": error}
        self._end(built.index, outcome_of(answer, hand.device), built.secs)
        # A session is for one candidate: whatever that left behind in the device's process ends with it.
        self._farm.crew.dismiss(hand)
        self._count_illegal(answer, hand)

    def _count_illegal(self, answer: dict[str, Any], hand: Hand) -> None:
        self._illegal = self._illegal + 1 if _ILLEGAL in answer.get("error", "") else 0
        if self._illegal >= _ILLEGAL_AT_MOST:
            raise MachineError(
                f"{self._illegal} candidates in a row ended in an illegal instruction, the last one on "
                f"{hand.device} ({hand.says}): its CPU is not what the target says.",
                remedy="Name the device's own CPU in the target: `tuneassist devices "
                f"{self._farm.roster.address}` shows what each says of itself.",
            )

    def _end(self, index: int, outcome: Outcome, build_secs: float) -> None:
        self._open.discard(index)
        self._paths.pop(index).unlink(missing_ok=True)
        median = outcome.median_secs
        if median is not None:
            self._best_secs = min(median, self._best_secs or median)
        self._on_outcome(index, replace(outcome, build_secs=build_secs))

    def _wait_is_over(self) -> None:
        self._idle_since = None
        if self._waiting:
            self._waiting = False
            self._farm.on_waiting(False)


def outcome_of(answer: dict[str, Any], device: str) -> Outcome:
    """The outcome that a device's answer to an order tells."""
    if answer["event"] == "measured":
        return replace(measured(answer), device=device)
    if answer["event"] == "timed_out":
        error = "The device ended the session, which took too long."
        return Outcome(TrialStatus.RUN_TIMEOUT, error=error, device=device)
    return Outcome(TrialStatus.RUN_ERROR, error=answer["error"], device=device)
