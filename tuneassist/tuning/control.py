"""How a viewer steers the engine: signals, and a pipe whose end means that the viewer is gone.

SIGINT or SIGTERM: stop after the running trial; SIGINT twice: at once. SIGUSR1: pause; SIGUSR2: go on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType


class StoppedAtOnceError(BaseException):
    """The second interrupt: leave everything. Not an `Exception`, so that no handler on the way keeps it."""


class Control:
    """What was asked of the engine, polled between trials."""

    def __init__(self) -> None:
        self.stop_requested = False
        self.paused = False
        self.deadline: float | None = None
        """`time.monotonic()` at which the time budget is spent."""
        self.starting = True
        """Before the first round: nothing can be lost, so a stop is at once."""
        self._interrupts = 0

    def listen(self, lifeline: int | None) -> None:
        """Take signals from now on, and stop when the other end of the pipe `lifeline` closes."""
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGUSR1, self._pause)
        signal.signal(signal.SIGUSR2, self._resume)
        if lifeline is not None:
            threading.Thread(target=self._watch, args=(lifeline,), daemon=True).start()

    def should_stop(self) -> bool:
        """Whether to end the search: it was asked for, or the time budget is spent."""
        return self.stop_requested or (self.deadline is not None and time.monotonic() >= self.deadline)

    def checkpoint(self, on_pause: Callable[[bool], None] = lambda paused: None) -> bool:
        """Wait while paused, then return `should_stop()`. The time budget does not run while paused."""
        if self.paused and not self.stop_requested:
            started = time.monotonic()
            on_pause(True)
            while self.paused and not self.stop_requested:
                time.sleep(0.1)
            if self.deadline is not None:
                self.deadline += time.monotonic() - started
            on_pause(False)
        return self.should_stop()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupts += 1
        self.stop_requested = True
        if self._interrupts > 1 or self.starting:
            raise StoppedAtOnceError

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stop_requested = True
        if self.starting:
            raise StoppedAtOnceError

    def _pause(self, number: int, frame: FrameType | None) -> None:
        self.paused = True

    def _resume(self, number: int, frame: FrameType | None) -> None:
        self.paused = False

    def _watch(self, lifeline: int) -> None:
        while True:
            try:
                if not os.read(lifeline, 1):
                    break
            except OSError:
                break
        # As a signal, so that it reaches the main thread whatever that does.
        os.kill(os.getpid(), signal.SIGTERM)
