"""Repairs, made at run time, of what makes this TVM slow to start. Nothing of TVM is changed on disk.

1. `import tvm` imports torch (through tvm_ffi, for DLPack only), which doubles the time to start.
2. `import tvm.s_tir.tensor_intrin`, which every `TuneContext` makes, parses the intrinsics of all backends.
   Each one calls `inspect.stack()`, and `inspect.getmodule` scans every loaded module for every frame:
   28 to 40 s with torch loaded.

On a TVM that has mended either, the repair changes nothing but the order of imports.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any

_INTRINSICS = "tvm.s_tir.tensor_intrin"
_OTHER_BACKENDS = {
    "llvm": ("cuda", "rocm", "metal", "hexagon"),
    "cuda": ("rocm", "metal", "hexagon", "arm_cpu", "riscv_cpu", "x86"),
}
"""Intrinsic modules that a target of that kind can't use."""


@contextlib.contextmanager
def torch_hidden() -> Iterator[None]:
    """Make `import torch` fail in the block, unless torch is loaded already."""
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]


def load_tensor_intrinsics(target_kind: str) -> None:
    """Import the tensor intrinsics that the target kind can use, in well under a second.

    Args:
        target_kind: TVM's target kind, such as `llvm` or `cuda`; all intrinsics for one not known here.
    """
    if _INTRINSICS in sys.modules:
        return
    for backend in _OTHER_BACKENDS.get(target_kind, ()):
        name = f"{_INTRINSICS}.{backend}"
        if importlib.util.find_spec(_INTRINSICS) is not None:
            sys.modules.setdefault(name, types.ModuleType(name, "Left out: no use to this target."))
    with _quick_getmodule():
        importlib.import_module(_INTRINSICS)


@contextlib.contextmanager
def _quick_getmodule() -> Iterator[None]:
    """Remember `inspect.getmodule` of frames and code objects by file name."""
    original: Any = inspect.getmodule
    seen: dict[str, Any] = {}

    def getmodule(object: Any, _filename: str | None = None) -> Any:  # noqa: A002 (its name in inspect)
        code = object.f_code if inspect.isframe(object) else object if inspect.iscode(object) else None
        if code is None:
            return original(object, _filename)
        if code.co_filename not in seen:
            seen[code.co_filename] = original(object, _filename)
        return seen[code.co_filename]

    inspect.getmodule = getmodule
    try:
        yield
    finally:
        inspect.getmodule = original
