"""Limits that control groups (v1 and v2) put on this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")


def cpu_quota(root: Path = _ROOT) -> float | None:
    """CPUs' worth of time that this process may use, such as 1.5; None where nothing limits it.

    Args:
        root: Where `proc` and `sys` are, for tests.
    """
    quotas = [_quota_v2(folder / "cpu.max") for folder in _folders("", root)]
    quotas += [_quota_v1(folder) for folder in _folders("cpu", root)]
    return min((quota for quota in quotas if quota is not None), default=None)


def memory_limit(root: Path = _ROOT) -> int | None:
    """Bytes that this process and its control group may use; None where nothing limits them."""
    files = [folder / "memory.max" for folder in _folders("", root)]
    files += [folder / "memory.limit_in_bytes" for folder in _folders("memory", root)]
    limits = [int(text) for file in files if (text := _read(file)).isdigit()]
    # Version 1 says "no limit" with the largest multiple of a page in 63 bits.
    return min((limit for limit in limits if limit < 1 << 60), default=None)


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """The control group's folder and those above it, whose limits hold as well.

    Args:
        controller: Name of a version 1 controller, or empty for version 2.
        root: Where `proc` and `sys` are.
    """
    mount = root / "sys/fs/cgroup" / controller
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller not in controllers.split(","):
            continue
        # Inside a container the path may be the host's: what of it does not exist is passed over.
        folder = mount / path.lstrip("/")
        while folder != mount and mount in folder.parents:
            yield folder
            folder = folder.parent
    yield mount


def _quota_v2(file: Path) -> float | None:
    quota, _, period = _read(file).partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _quota_v1(folder: Path) -> float | None:
    quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
