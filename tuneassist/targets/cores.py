"""The CPU cores that this process may use."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable

from tuneassist.errors import UsageError
from tuneassist.targets.cgroups import cpu_quota


def allowed_cores() -> tuple[int, ...]:
    """Ids of the cores that the scheduler gives this process, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def usable_cores() -> tuple[int, ...]:
    """Ids of the cores to tune on: the allowed ones, no more than the control group's CPU quota.

    A quota of 1.5 CPUs counts as 2 cores.
    """
    cores, quota = allowed_cores(), cpu_quota()
    return cores if quota is None else cores[: max(1, math.ceil(quota))]


def parse_cores(text: str, allowed: Iterable[int] | None = None) -> tuple[int, ...]:
    """Read a list of core ids such as `0,2-5`.

    Args:
        text: Ids and ranges of ids, separated by commas.
        allowed: Ids to accept; None: those that this process may use.

    Returns:
        The ids, ascending, each once.

    Raises:
        UsageError: The text is no such list, or names a core that is not there or not allowed.
    """
    permitted = set(allowed_cores() if allowed is None else allowed)
    remedy = f"Cores that this process may use: {format_cores(permitted)}."
    chosen: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part, re.ASCII)
        if match is None:
            raise UsageError(
                f"The core list {text!r} holds {part.strip()!r}, which is no core id or range.",
                remedy=f"Write it as 0,2-5. {remedy}",
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(
                f"The core range {part.strip()!r} runs backwards.",
                remedy=f"Write it as {last}-{first}. {remedy}",
            )
        chosen.update(range(first, last + 1))
    if refused := chosen - permitted:
        raise UsageError(
            f"The core list {text!r} asks for {format_cores(refused)}, which this process may not use.",
            remedy=remedy,
        )
    return tuple(sorted(chosen))


def format_cores(cores: Iterable[int]) -> str:
    """Write core ids the short way, such as `0,2-5`."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
