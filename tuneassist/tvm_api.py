"""The one adapter to TVM: everything that we use of it is imported here, and from here by the rest.

Importing this module costs an `import tvm` (about a second) and no torch. MetaSchedule lives at
`tvm.meta_schedule` or `tvm.s_tir.meta_schedule` depending on the release: only this module knows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

from tuneassist.tvm_repairs import load_tensor_intrinsics, torch_hidden

with torch_hidden():
    import tvm
import tvm_ffi
from tvm import relax, rpc, te, tirx, topi
from tvm.ir.utils import derived_object
from tvm.rpc import base as rpc_base
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.analysis import estimate_tir_flops
from tvm.s_tir.schedule import Trace
from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock
from tvm.support import cc

structural_equal = tvm_ffi.structural_equal
structural_hash = tvm_ffi.structural_hash
IRModule = tvm.IRModule
PrimFunc = tirx.PrimFunc
Target = tvm.target.Target

_array_get = tvm_ffi.get_global_func("ffi.ArrayGetItem")
_array_size = tvm_ffi.get_global_func("ffi.ArraySize")
map_size: Callable[[Any], int] = tvm_ffi.get_global_func("ffi.MapSize")
"""Entries of a TVM map; twice as fast as `len`."""


def array_items(array: Any) -> list[Any]:
    """What a TVM array holds; several times faster than iterating over it."""
    return list(map(_array_get, repeat(array), range(_array_size(array))))


def handle(obj: Any) -> int:
    """The address of a TVM object: which one it is, not what it holds (`hash` of a container)."""
    address: int = obj.__chandle__()
    return address


def module_to_text(mod: Any) -> str:
    """A module as text for another process of the same TVM; `tvm.ir.save_json` is for keeping."""
    text: str = tvm_ffi.serialization.to_json_graph_str(mod)
    return text


def module_from_text(text: str) -> Any:
    """The module that `module_to_text` gave: without `tvm.ir.load_json`'s upgrade of old formats, which
    takes ten times as long as the rest."""
    return tvm_ffi.serialization.from_json_graph_str(text)


__all__ = [
    "IRModule",
    "PrimFunc",
    "RemoveWeightLayoutRewriteBlock",
    "Schedule",
    "Target",
    "Trace",
    "array_items",
    "cc",
    "derived_object",
    "estimate_tir_flops",
    "handle",
    "load_tensor_intrinsics",
    "map_size",
    "module_from_text",
    "module_to_text",
    "ms",
    "relax",
    "rpc",
    "rpc_base",
    "structural_equal",
    "structural_hash",
    "te",
    "tirx",
    "topi",
    "tvm",
]
