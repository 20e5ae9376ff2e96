"""Plays a run that has ended as if it were running, at a chosen speed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from tuneassist import events as ev
from tuneassist.ui.services import Session

SPEEDS = (1.0, 4.0, 16.0, 64.0, 256.0, 1e9)
"""Seconds of the run per second of the viewer; the last one is as fast as it goes."""

_LONGEST_GAP_SECS = 5.0
"""A pause in the run, or the days before it was resumed, takes no longer than this in the replay."""
_BATCH = 2000


class ReplaySession:
    """A `Session` that hands out another one's events when their time has come.

    Args:
        inner: The events of a run that has ended.
        clock: Monotonic seconds.
    """

    def __init__(
        self, inner: Session, *, speed: float = 16.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._waiting: deque[ev.Event] = deque()
        self._paused = False
        self._stopped = False
        self._at: float | None = None
        """Unix time of the run that the replay has reached."""
        self._looked = clock()
        self.speed = speed

    @property
    def events_path(self) -> Path:
        """The file of the replayed events."""
        return self._inner.events_path

    @property
    def pid(self) -> int | None:
        """No process works on a replay."""
        return None

    @property
    def paused(self) -> bool:
        """Whether the replay stands still."""
        return self._paused

    def poll(self) -> list[ev.Event]:
        """The events whose time has come."""
        now = self._clock()
        passed, self._looked = now - self._looked, now
        if self._paused or self._stopped:
            return []
        if not self._waiting:
            self._waiting.extend(self._inner.poll())
        if self._at is None and self._waiting:
            self._at = _time(self._waiting[0], 0.0)
        if self._at is not None:
            self._at += passed * self.speed
        due: list[ev.Event] = []
        while self._waiting and self._at is not None and len(due) < _BATCH:
            at = _time(self._waiting[0], self._at)
            if at > self._at:
                # Skip most of a long gap, once.
                self._at = max(self._at, at - _LONGEST_GAP_SECS)
                break
            due.append(self._waiting.popleft())
            if not self._waiting:
                self._waiting.extend(self._inner.poll())
        return due

    def alive(self) -> bool:
        """Whether there is more to play."""
        return not self._stopped and (bool(self._waiting) or self._more())

    def stop(self) -> None:
        """End the replay."""
        self._stopped = True

    def pause(self) -> None:
        """Stand still."""
        self._paused = True

    def resume(self) -> None:
        """Go on."""
        self._paused = False

    def restart(self) -> Session:
        """A replay needs no engine."""
        return self

    def log_tail(self, lines: int) -> list[str]:
        """The log of the engine that ran it."""
        return self._inner.log_tail(lines)

    def _more(self) -> bool:
        self._waiting.extend(self._inner.poll())
        return bool(self._waiting)


def _time(event: ev.Event, default: float) -> float:
    return float(event.time) if isinstance(event.time, int | float) else default
