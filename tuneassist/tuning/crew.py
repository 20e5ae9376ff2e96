"""Processes that each wait for a device and work it, from the engine's side."""

from __future__ import annotations

import select
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tuneassist.targets.sessions import DIED
from tuneassist.tuning.roster import Roster
from tuneassist.tuning.wire import WireClosedError, receive
from tuneassist.tuning.workers import Worker, Workers

_CONNECT_SECS = 15.0
_CHECK_SECS = 30.0
_CLOSE_SECS = 5.0
_GRACE_SECS = 10.0
"""How much later than the device itself the engine gives a session up."""


class State(Enum):
    """What a hand does."""

    WAITING = auto()
    """In the tracker's queue, however long."""
    CONNECTING = auto()
    CHECKING = auto()
    """The device runs the reference kernel."""
    READY = auto()
    WORKING = auto()
    GONE = auto()


@dataclass(slots=True, eq=False)
class Hand:
    """A process that gets one device from the tracker."""

    worker: Worker
    session_secs: float
    state: State = State.WAITING
    device: str = ""
    says: str = ""
    """What the device says of itself."""
    deadline: float = float("inf")
    allowed_secs: float = float("inf")
    """How long the answer due at the deadline may take."""


class Crew:
    """Hires hands and takes each to the point where its device is ready for work.

    Args:
        workers: The zygote.
        roster: The devices.
    """

    def __init__(self, workers: Workers, roster: Roster) -> None:
        self._workers = workers
        self._roster = roster
        self._leaving: list[Worker] = []
        self.reference: dict[str, Any] | None = None
        """The order that measures the reference kernel; None: devices are not checked."""

    def hire(self, session_secs: float) -> Hand:
        """Start a process that waits for a device; its session may last that long."""
        address = self._roster.address
        order = {
            "event": "device", "tracker": [address.host, address.port], "key": self._roster.key,
            "session_secs": session_secs,
        }  # fmt: skip
        return Hand(self._workers.fork(order, timeout_secs=float("inf")), session_secs)

    def work(self, hand: Hand, order: dict[str, Any], secs: float | None = None) -> None:
        """Give a ready hand an order; `collect` brings the answer.

        Without `secs` the device itself ends what takes too long, and is held to be hung where it does not.
        """
        hand.state = State.WORKING
        self._ask(hand, order, hand.session_secs + _GRACE_SECS if secs is None else secs)

    def dismiss(self, hand: Hand) -> None:
        """Let a hand end; its device is then free again.

        It closes the session by itself where it can: TVM's server dies of a connection that is reset.
        """
        if hand.state is State.GONE:
            return
        busy = hand.state is State.WORKING
        hand.state = State.GONE
        hand.worker.close()
        hand.worker.deadline = time.monotonic() + (0.0 if busy else _CLOSE_SECS)
        self._leaving.append(hand.worker)
        self._see_off()

    def _see_off(self) -> None:
        """Kill those that should have ended by now."""
        now = time.monotonic()
        for worker in [worker for worker in self._leaving if now >= worker.deadline]:
            self._leaving.remove(worker)
            self._workers.kill(worker)

    def collect(self, hands: Iterable[Hand], ready: list[Any]) -> list[tuple[Hand, dict[str, Any]]]:
        """Take in what the hands say, and give up those that are overdue.

        Returns:
            Answers to orders; `lost` where the device is lost and the hand gone, with `overdue` if it only
            did not answer in time.
        """
        self._see_off()
        answers = []
        for hand in list(hands):
            answer = None
            if hand.worker.sock in ready:
                answer = self._received(hand)
            elif time.monotonic() > hand.deadline:
                error = f"it did not answer within {hand.allowed_secs:.0f} s"
                answer = {"event": "lost", "error": error, "overdue": True}
            if answer is not None and (told := self._advanced(hand, answer)) is not None:
                answers.append((hand, told))
        return answers

    def wait(self, hands: Iterable[Hand], others: Iterable[Worker] = (), *, secs: float = 0.1) -> list[Any]:
        """Sockets of hands and other processes that have something to say."""
        socks = [hand.worker.sock for hand in hands] + [worker.sock for worker in others]
        if not socks:
            time.sleep(secs)
            return []
        ready, _, _ = select.select(socks, [], [], secs)
        return ready

    def _received(self, hand: Hand) -> dict[str, Any]:
        try:
            message, _ = receive(hand.worker.sock)
            return message
        except WireClosedError:
            return {"event": "lost", "error": self._workers.cause_of_death(hand.worker)}

    def _advanced(self, hand: Hand, message: dict[str, Any]) -> dict[str, Any] | None:
        """Take a hand a step further; return the message if it answers an order."""
        event = message["event"]
        working = hand.state is State.WORKING
        if event == "lost":
            self.dismiss(hand)
            if hand.device:
                self._roster.set_aside(hand.device, message["error"].splitlines()[0])
            return message if working else None
        if working:
            hand.state = State.READY
            hand.deadline = float("inf")
            return message
        if event == "offered":
            self._offered(hand, message["device"])
        elif event == "connected":
            self._connected(hand, message["facts"])
        elif hand.state is State.CHECKING:
            self._checked(hand, message)
        else:  # The tracker is gone: the roster finds out by itself.
            self.dismiss(hand)
        return None

    def _offered(self, hand: Hand, device: str) -> None:
        if self._roster.rests(device):
            # A device whose offer is not taken up registers again after some seconds.
            self.dismiss(hand)
            return
        hand.device = device
        hand.state = State.CONNECTING
        self._ask(hand, {"event": "connect"}, _CONNECT_SECS)

    def _connected(self, hand: Hand, facts: dict[str, Any]) -> None:
        hand.says = ", ".join(filter(None, (facts["cpu"], f"{facts['threads']} threads")))
        if self.reference is None:
            self._roster.admit(hand.device, (), hand.says)
        if self._roster.checked(hand.device):
            hand.state = State.READY
            hand.deadline = float("inf")
            return
        hand.state = State.CHECKING
        assert self.reference is not None
        self._ask(hand, self.reference, _CHECK_SECS)

    def _checked(self, hand: Hand, message: dict[str, Any]) -> None:
        if message["event"] == "measured":
            self._roster.admit(hand.device, message["run_secs"], hand.says)
            # What comes next gets a session of its own, with all of its time.
            self.dismiss(hand)
            return
        device, error = hand.device, message.get("error", "the reference kernel takes too long")
        self.dismiss(hand)
        if DIED in error:
            self._roster.refuse(device, f"the reference kernel ends there: {error} ({hand.says})")
        else:
            self._roster.set_aside(device, error.splitlines()[0])

    def _ask(self, hand: Hand, order: dict[str, Any], secs: float) -> None:
        hand.worker.ask(order, timeout_secs=secs)
        hand.deadline, hand.allowed_secs = hand.worker.deadline, secs
