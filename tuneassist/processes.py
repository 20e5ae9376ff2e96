"""What the processes of a run know of each other."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs one of our modules in a process of its own.

    `-P`: else a folder or file of the working directory is imported instead of what has its name here.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, however it ends (Linux; else no effect)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
