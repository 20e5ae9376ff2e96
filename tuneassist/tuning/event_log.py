"""The engine's end of the event file."""

from __future__ import annotations

import os
from pathlib import Path

from tuneassist.events import Event, encode


class EventLog:
    """Appends events to a file, a line each, as they happen.

    The store is what counts: where an event can't be written (a full disk), the run goes on.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.lost = 0
        """Events that could not be written."""

    def write(self, event: Event) -> None:
        """Append one event."""
        try:
            os.write(self._fd, (encode(event) + "\n").encode())
        except OSError:
            self.lost += 1
