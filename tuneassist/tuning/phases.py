"""Where the time of a run goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

PHASES = ("startup", "search", "predict", "build", "measure", "train", "store")
"""The phases that every result lists; others (baseline, confirm, paused) appear when they happen."""


class PhaseClock:
    """Attributes every second to exactly one phase: the innermost that is open."""

    def __init__(self) -> None:
        self._secs: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._open: list[str] = ["other"]
        self._since = time.monotonic()
        self._started = self._since

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Attribute the time of the block to `name`, and none of it to the phase around it."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def enter(self, name: str) -> None:
        """Rename the innermost open phase from now on."""
        self._charge()
        self._open[-1] = name

    def secs(self) -> dict[str, float]:
        """Seconds of each phase so far."""
        self._charge()
        return {name: round(secs, 4) for name, secs in self._secs.items() if name != "other"}

    def wall_secs(self) -> float:
        """Seconds since the clock was made."""
        return time.monotonic() - self._started

    def _charge(self) -> None:
        now = time.monotonic()
        name = self._open[-1]
        self._secs[name] = self._secs.get(name, 0.0) + now - self._since
        self._since = now
