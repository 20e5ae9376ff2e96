"""What the features need to know of the machine that runs the kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

HARDWARE_FACT = "hardware"
"""Name under which the store keeps a machine's `Hardware`."""
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CPUINFO = Path("/proc/cpuinfo")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Hardware:
    """A CPU as the features see it. The defaults are a common x86-64 server core."""

    cores: int
    """Cores that the kernel may use."""
    vector_bytes: int = 32
    registers: int = 16
    """Vector registers."""
    l1_bytes: int = 32 << 10
    """Data caches, of one core (L3: shared)."""
    l2_bytes: int = 1 << 20
    l3_bytes: int = 32 << 20
    line_bytes: int = 64

    def lanes(self, itemsize: float) -> int:
        """Elements of `itemsize` bytes in one vector register."""
        return max(1, int(self.vector_bytes / itemsize))


def host(cores: int) -> Hardware:
    """This machine, as Linux describes it; what it does not say keeps its default."""
    return replace(_host(), cores=cores)


@lru_cache(maxsize=1)
def _host() -> Hardware:
    found: dict[str, int] = {}
    for index in _CACHES.glob("index*"):
        try:
            level = (index / "level").read_text().strip()
            kind = (index / "type").read_text().strip()
            size = (index / "size").read_text().strip()
            if kind != "Instruction" and level in "123":
                found[f"l{level}_bytes"] = int(size.rstrip("KMG")) * _UNITS.get(size[-1], 1)
        except (OSError, ValueError):
            continue
    return Hardware(cores=1, **found, **_vectors())


def _vectors() -> dict[str, int]:
    try:
        text = _CPUINFO.read_text()
    except OSError:
        return {}
    flags = set(
        next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "").split()
    )
    if "avx512f" in flags:
        return {"vector_bytes": 64, "registers": 32}
    if "avx" in flags:
        return {"vector_bytes": 32, "registers": 16}
    if "asimd" in flags:
        return {"vector_bytes": 16, "registers": 32}
    return {"vector_bytes": 16, "registers": 16}
