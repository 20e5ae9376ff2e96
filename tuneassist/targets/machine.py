"""What this machine is, from the operating system alone."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

from tuneassist.records import Machine
from tuneassist.targets.cores import usable_cores

_CPUINFO = Path("/proc/cpuinfo")
_VECTOR_FLAG = re.compile(r"(sse|ssse|avx|fma|f16c|amx|bmi|asimd|sve|i8mm|bf16)|(pni|sme2?)$")
"""Flags that decide what code runs fast; others come and go with kernels and make no other machine."""


def this_machine() -> Machine:
    """This machine, with the cores that this process may use."""
    flags = sorted(flag for flag in cpu_flags() if _VECTOR_FLAG.match(flag))
    return Machine(platform.node() or "localhost", cpu_name(), len(usable_cores()), tuple(flags))


@cache
def cpu_flags(cpuinfo: Path = _CPUINFO) -> frozenset[str]:
    """Instruction set flags as the kernel names them; empty where it lists none."""
    fields = _cpuinfo(cpuinfo)
    return frozenset((fields.get("flags") or fields.get("Features") or "").split())


@cache
def cpu_name(cpuinfo: Path = _CPUINFO) -> str:
    """The CPU's name for people, such as `AMD EPYC 9754`."""
    fields = _cpuinfo(cpuinfo)
    name = fields.get("model name") or fields.get("Model") or ""
    if not name and "CPU part" in fields:
        name = f"Arm implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    return name or platform.processor() or platform.machine() or "unknown CPU"


def _cpuinfo(path: Path) -> dict[str, str]:
    """The first processor's fields."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    return fields
