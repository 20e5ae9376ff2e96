"""Whether the engine that a run names still lives."""

from __future__ import annotations

_CLOCK_SLACK_SECS = 2.0
"""Start times are derived from the boot time, which the system's clock corrections move a little."""


def engine_alive(pid: int | None, pid_started: float | None) -> bool:
    """True if a process of that id runs on this machine and started at that Unix time.

    An id alone says nothing: the system gives it again after a reboot or a few thousand processes.
    """
    if pid is None:
        return False
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return pid_started is None or abs(process.create_time() - pid_started) < _CLOCK_SLACK_SECS
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
