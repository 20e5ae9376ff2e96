"""What doctor finds out without loading TVM: versions, cores, memory, clock, other load, environment."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil
from packaging.version import Version

from tuneassist.targets.cgroups import cpu_quota, memory_limit
from tuneassist.targets.cores import allowed_cores, format_cores, usable_cores

_GIB = 1 << 30
_ROOT = Path("/")


class CheckStatus(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of doctor."""

    id: str
    status: CheckStatus
    seen: str
    """What was found, with its value."""
    remedy: str = ""
    """What to do about it; empty where nothing is to be done."""


def machine_checks() -> Iterator[Check]:
    """All checks of this module, in the order in which they are shown."""
    yield check_python()
    yield from check_packages()
    yield check_cores(allowed_cores(), os.cpu_count() or 1, cpu_quota())
    yield check_memory(psutil.virtual_memory().available, memory_limit())
    yield check_clock()
    yield check_load(*_cpu_times_over(1.0))
    yield check_environment(os.environ, len(usable_cores()))


def check_python() -> Check:
    """The interpreter's version."""
    return Check("python", CheckStatus.OK, f"Python {platform.python_version()} at {sys.executable}")


_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "torch", "torch-geometric")
_KNOWN_BAD = (
    # Package, first bad version, what happens, what to install.
    ("apache-tvm-ffi", "0.1.15", "tvm.ir.save_json crashes", "apache-tvm-ffi>=0.1.14.post0,<0.1.15"),
)


def check_packages(installed: Mapping[str, str | None] | None = None) -> Iterator[Check]:
    """Versions of what tuneassist stands on, and versions known not to work together.

    Args:
        installed: Version of each package, None where it is absent; by default, those of this interpreter.
    """
    found = installed if installed is not None else {name: _version(name) for name in _PACKAGES}
    for name, version in found.items():
        bad = [
            row for row in _KNOWN_BAD if row[0] == name and version and Version(version) >= Version(row[1])
        ]
        if version is None:
            yield Check(name, CheckStatus.ERROR, "not installed", f"python -m pip install {name}")
        elif bad:
            _, _, effect, requirement = bad[0]
            yield Check(
                name,
                CheckStatus.ERROR,
                f"{version}, with which {effect}",
                f"python -m pip install '{requirement}'",
            )
        else:
            yield Check(name, CheckStatus.OK, version)


def check_cores(allowed: Sequence[int], present: int, quota: float | None) -> Check:
    """Cores that this process may use, against those in the machine and the control group's quota."""
    seen = f"{len(allowed)} of {present} cores allowed ({format_cores(allowed)})"
    if quota is None:
        return Check("cores", CheckStatus.OK, seen)
    seen += f", CPU quota {quota:g}"
    if quota >= len(allowed):
        return Check("cores", CheckStatus.OK, seen)
    return Check(
        "cores", CheckStatus.WARNING, seen,
        "The quota pauses this process in the middle of measurements: give it whole cores "
        f"(docker run --cpuset-cpus), or tune with --cores {format_cores(allowed[: max(1, int(quota))])}.",
    )  # fmt: skip


def check_memory(available_bytes: int, limit_bytes: int | None) -> Check:
    """Memory left for the engine and its candidates."""
    free = min(available_bytes, limit_bytes) if limit_bytes is not None else available_bytes
    seen = f"{free / _GIB:.1f} GiB free"
    if limit_bytes is not None:
        seen += f", control group's limit {limit_bytes / _GIB:.1f} GiB"
    if free >= 2 * _GIB:
        return Check("memory", CheckStatus.OK, seen)
    status = CheckStatus.WARNING if free >= _GIB else CheckStatus.ERROR
    return Check("memory", status, seen, "Tuning takes about 2 GiB: end other programs or raise the limit.")


def check_clock(root: Path = _ROOT) -> Check:
    """Frequency governor and turbo.

    Args:
        root: Where `sys` is, for tests.
    """
    cpus = root / "sys/devices/system/cpu"
    governors = sorted({_read(file) for file in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""})
    no_turbo, boost = _read(cpus / "intel_pstate/no_turbo"), _read(cpus / "cpufreq/boost")
    turbo = {"0": "on", "1": "off"}.get(no_turbo) or {"1": "on", "0": "off"}.get(boost)
    parts = [f"governor {', '.join(governors)}"] if governors else []
    parts += [f"turbo {turbo}"] if turbo else []
    seen = "; ".join(parts) or "not shown by this system (usual in a virtual machine)"
    if governors and governors != ["performance"]:
        return Check(
            "clock", CheckStatus.WARNING, seen,
            "The clock follows the load: `sudo cpupower frequency-set -g performance` steadies measurements.",
        )  # fmt: skip
    return Check("clock", CheckStatus.OK, seen)


def check_load(before: Sequence[int], after: Sequence[int]) -> Check:
    """How busy others keep this machine, from two readings of the `cpu` line of /proc/stat.

    Args:
        before: user, nice, system, idle, iowait, irq, softirq, steal, ... in ticks.
        after: The same, a while later.
    """
    ticks = [late - early for early, late in zip(before, after, strict=False)]
    total = sum(ticks[:8])
    if len(ticks) < 8 or total <= 0:
        return Check("load", CheckStatus.OK, "not shown by this system")
    steal = ticks[7] / total
    busy = 1.0 - (ticks[3] + ticks[4]) / total - steal
    seen = f"others use {busy:.0%} of the CPU time; the hypervisor takes {steal:.0%}"
    if steal > 0.02:
        return Check(
            "load", CheckStatus.WARNING, seen,
            "This virtual machine shares its cores: use dedicated ones, or more repeats (--repeat).",
        )  # fmt: skip
    if busy > 0.2:
        return Check(
            "load", CheckStatus.WARNING, seen,
            "End other work, or keep it off the cores that you tune on (--cores).",
        )  # fmt: skip
    return Check("load", CheckStatus.OK, seen)


_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")


def check_environment(environment: Mapping[str, str], cores: int) -> Check:
    """Variables that give the PyTorch baseline or TVM fewer threads than there are cores."""
    found = {name: environment[name] for name in _THREAD_VARIABLES if environment.get(name)}
    seen = ", ".join(f"{name}={value}" for name, value in found.items()) or "no thread variables set"
    few = [name for name, value in found.items() if not (value.isdigit() and int(value) >= cores)]
    if few:
        return Check(
            "environment", CheckStatus.WARNING, seen,
            f"With fewer threads than the {cores} cores the PyTorch baseline is slower than it need be: "
            f"unset {' '.join(few)}.",
        )  # fmt: skip
    return Check("environment", CheckStatus.OK, seen)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_times_over(secs: float, stat: Path = _ROOT / "proc/stat") -> tuple[list[int], list[int]]:
    before = _read(stat)
    time.sleep(secs)
    first, second = (
        [int(word) for word in text.partition("\n")[0].split()[1:]] for text in (before, _read(stat))
    )
    return first, second


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
