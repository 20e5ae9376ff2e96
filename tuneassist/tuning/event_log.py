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
        self._torn = False

    def write(self, event: Event) -> None:
        """Append one event."""
        # After a line that was cut short, a line of its own for what follows.
        line = ("\n" if self._torn else "") + encode(event) + "\n"
        data = line.encode()
        try:
            written = os.write(self._fd, data)
        except OSError:
            written = 0
        self._torn = self._torn if not written else written < len(data)
        self.lost += written < len(data)
