"""How a kernel gets to a device: linked here, or as objects that the device links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneassist.targets import native
from tuneassist.targets.llvm import architecture_of

CROSS_COMPILER = "TUNEASSIST_CC"
"""Environment variable that names the compiler which links for devices."""


@dataclass(frozen=True, slots=True)
class Linker:
    """`suffix` is what TVM's `export_library` writes: `.so` (linked by `compiler`) or `.tar` (objects)."""

    suffix: str
    compiler: str | None = None

    @property
    def note(self) -> str:
        """In words."""
        if self.compiler is None:
            return "kernels are sent as objects, which the device links with its own compiler"
        return f"kernels are linked here by {self.compiler}"


def linker_for(config: Mapping[str, Any]) -> Linker:
    """The compiler that links for a target in dict form, if there is one here.

    That is the one that `TUNEASSIST_CC` names, this machine's own for its own architecture, or the cross
    compiler that is called after the target's triple, such as `aarch64-linux-gnu-gcc`.
    """
    host = config.get("host")
    cpu: Mapping[str, Any] = host if isinstance(host, Mapping) else config
    triple = str(cpu.get("mtriple") or "")
    named = os.environ.get(CROSS_COMPILER)
    if named:
        return Linker(".so", named)
    if architecture_of(cpu) in (None, native.architecture()):
        compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    else:
        compiler = shutil.which(f"{triple}-gcc")
    return Linker(".so", compiler) if compiler else Linker(".tar")
