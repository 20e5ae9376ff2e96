"""A pseudo-terminal with the app in it: sends keys, waits for words, reads the app's CPU time and memory."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

_ESCAPES = re.compile(rb"\x1b\[[0-9;?$<>=:]*[ -/]*[@-~]|\x1b[=>]")


class Terminal:
    """One program in a terminal of a fixed size; use as a context manager, which ends it.

    Args:
        command: The program with its arguments.
        size: (columns, lines).
        env: Variables on top of this process's own.
    """

    def __init__(
        self, command: Sequence[str], size: tuple[int, int], env: Mapping[str, str] | None = None
    ) -> None:
        self.started = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})})
            # The size must be there before the program asks for it, and only this end is sure to be first.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.execvp(command[0], list(command))
        self._seen = b""
        self.process = psutil.Process(self.pid)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)

    def wait_for(self, words: str, *, timeout_secs: float = 60.0) -> float:
        """Read until the program has written these words since the last `send`; return when (perf_counter).

        Raises:
            TimeoutError: They did not come.
        """
        deadline = time.perf_counter() + timeout_secs
        while not self.shows(words):
            if not self._read(deadline):
                raise TimeoutError(f"{words!r} was not written within {timeout_secs:.0f} s")
        return time.perf_counter()

    def shows(self, words: str) -> bool:
        """Whether the program has written these words since the last `send`."""
        return words.encode() in _ESCAPES.sub(b"", self._seen)

    def send(self, key: str) -> float:
        """Forget what was written so far and type a key; return when (perf_counter)."""
        self.drain(0.0)
        self._seen = b""
        now = time.perf_counter()
        os.write(self._fd, key.encode())
        return now

    def drain(self, secs: float) -> None:
        """Read whatever is written within this time."""
        deadline = time.perf_counter() + secs
        while self._read(deadline):
            pass

    def cpu_secs(self) -> float:
        """CPU time of the program so far, to the nanosecond that Linux keeps."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def rss_bytes(self) -> int:
        """Resident memory of the program."""
        return int(self.process.memory_info().rss)

    def _read(self, deadline: float) -> bool:
        """One piece of output, if there is any before the deadline."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.perf_counter()))
        if not ready:
            return False
        try:
            self._seen += os.read(self._fd, 1 << 16)
        except OSError:  # the program has ended
            return False
        return True
