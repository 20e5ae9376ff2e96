"""Full garbage collections at moments when nobody waits for a key to be painted.

A full collection stops the app for 70 ms and more, and Python would do one every few seconds of a live run:
longer than a key may take. Young objects are collected as ever.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TICK_SECS = 1.0
_EVERY_SECS = 5.0
_QUIET_SECS = 0.7
"""After this long without input the next key is not expected at once."""
_LONGEST_SECS = 60.0
"""Someone who never stops typing gets a collection this often all the same."""
_NEVER = 1 << 30


class IdleCollector:
    """Call `tick` about once a second, `input_seen` at every key and mouse event.

    Args:
        clock: Monotonic seconds.
        collect: Does a full collection.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, collect: Callable[[], object] = gc.collect
    ) -> None:
        self._clock = clock
        self._collect = collect
        self._input_at = self._collected_at = clock()

    def take_over(self) -> None:
        """Keep Python from full collections of its own; what is there already is kept for good."""
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)

    def input_seen(self) -> None:
        """The user is there."""
        self._input_at = self._clock()

    def tick(self) -> None:
        """Collect if it is time and nobody types."""
        now = self._clock()
        since = now - self._collected_at
        if since >= _LONGEST_SECS or (since >= _EVERY_SECS and now - self._input_at >= _QUIET_SECS):
            self._collect()
            self._collected_at = self._clock()
