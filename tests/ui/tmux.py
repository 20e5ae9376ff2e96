"""A program in a tmux session of its own, driven by keys and read as text."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence

import pytest

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: it gives the app a real terminal"
)
_PASSED_ON = ("TUNEASSIST_DB", "TUNEASSIST_CONFIG", "PYTHONPATH", "TERM", "NO_COLOR")


class Tmux:
    """One session on a server of its own; use as a context manager, which ends both.

    Args:
        command: The program with its arguments; it sees this process's settings and database.
    """

    def __init__(self, command: Sequence[str], *, width: int = 120, height: int = 36) -> None:
        self._socket = f"tuneassist-{os.getpid()}-{time.monotonic_ns()}"
        env = [f"{name}={os.environ[name]}" for name in _PASSED_ON if name in os.environ and name != "TERM"]
        # A size in the environment would be believed more than the terminal.
        inner = f"exec env -u COLUMNS -u LINES {shlex.join([*env, *command])}"
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), inner,
            ";", "set-option", "-g", "remain-on-exit", "on",
        )  # fmt: skip

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    @property
    def pid(self) -> int:
        """Process id of the program."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def exit_code(self) -> int | None:
        """The program's exit code once it has ended by itself."""
        code = self._tmux("display-message", "-p", "#{pane_dead_status}")
        return int(code) if code else None

    @property
    def cursor_line(self) -> int:
        """The line that the cursor is on, from 0: the one of an input that has the focus."""
        return int(self._tmux("display-message", "-p", "#{cursor_y}"))

    def text(self) -> str:
        """What the terminal shows."""
        return self._tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Type keys by tmux's names, one at a time as a person does."""
        for key in keys:
            self._tmux("send-keys", key)
            time.sleep(0.2)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        """Make the terminal another size."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait_for(self, *words: str, timeout_secs: float = 60.0) -> str:
        """Wait until one of these is shown; return the screen."""
        shown = ""

        def there() -> bool:
            nonlocal shown
            shown = self.text()
            return any(word in shown for word in words)

        self.wait(there, f"none of {words} is shown", timeout_secs=timeout_secs)
        return shown

    def wait(self, condition: Callable[[], bool], otherwise: str, *, timeout_secs: float = 60.0) -> None:
        """Wait until the condition holds; fail with what is shown when it takes too long."""
        deadline = time.monotonic() + timeout_secs
        while not condition():
            assert time.monotonic() < deadline, f"{otherwise}:\n{self.text()}"
            time.sleep(0.1)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.rstrip("\n")
