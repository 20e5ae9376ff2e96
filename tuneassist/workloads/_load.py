"""Modules from files: a TVMScript function, which runs when it is loaded, and a saved IRModule."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.tvm_api import IRModule, PrimFunc, Schedule, tirx, tvm
from tuneassist.workloads._files import SCRIPT, script_parts

_EXAMPLE = "Write it as @T.prim_func(s_tir=True) over T.Buffer arguments with constant shapes, inputs first."


def load_module(info: WorkloadInfo) -> IRModule:
    """Load, check and normalise the module of a file workload; its one function is `main`.

    Raises:
        UsageError: See `build.build_prim_func`.
    """
    loaded = _run_script(info) if info.op == SCRIPT else _read_module(Path(info.spec))
    function = _only_function(info, loaded)
    _check_arguments(info, function)
    module = IRModule({"main": function.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)})
    _check_schedulable(info, module)
    return module


def arguments(function: Any) -> list[TensorSpec]:
    """Name, shape and dtype of each argument of a function with static buffers."""
    return [
        TensorSpec(param.name, tuple(int(extent) for extent in param.ty.shape), str(param.ty.dtype))
        for param in function.params
    ]


def _run_script(info: WorkloadInfo) -> Any:
    path, name = script_parts(info)
    # TVMScript parses its own source, so the file must be a module that inspect can find
    alias = f"_tuneassist_script_{path.stem}"
    spec = importlib.util.spec_from_file_location(alias, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    sys.path.insert(0, str(path.parent))  # as `python kernels.py` would have it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{path} failed when it ran: {type(error).__name__}: {_cause(error)}",
            remedy=f"Run `python {path.name}` to see where. {_EXAMPLE}",
        ) from error
    finally:
        del sys.modules[alias]
        sys.path.remove(str(path.parent))
    found = getattr(module, name, None)
    if found is None:
        functions = [key for key, value in vars(module).items() if isinstance(value, PrimFunc | IRModule)]
        holds = f"It holds {', '.join(functions)}." if functions else "It holds no TVMScript function."
        raise UsageError(f"{path} defines no {name}.", remedy=f"{holds} {_EXAMPLE}")
    return found


def _read_module(path: Path) -> Any:
    try:
        return tvm.ir.load_json(path.read_text(encoding="utf-8"))
    except Exception as error:  # whatever TVM's reader makes of an arbitrary JSON file
        raise UsageError(
            f"{path} is no saved TVM module: {_cause(error)}",
            remedy="Save the module with tvm.ir.save_json(module), by this version of TVM.",
        ) from error


def _only_function(info: WorkloadInfo, loaded: Any) -> Any:
    if isinstance(loaded, PrimFunc):
        return loaded
    if not isinstance(loaded, IRModule):
        raise UsageError(
            f"{info.name} is a {type(loaded).__name__}, not a PrimFunc or an IRModule.", remedy=_EXAMPLE
        )
    functions = {var.name_hint: function for var, function in loaded.functions.items()}
    prim_funcs = {name: function for name, function in functions.items() if isinstance(function, PrimFunc)}
    if len(functions) != len(prim_funcs):
        raise UsageError(
            f"{info.name} holds a Relax program, which a whole model is read from as a file.",
            remedy="Save it with tvm.ir.save_json(module) as mod.relax, and name that.",
        )
    if len(prim_funcs) != 1:
        named = f": {', '.join(prim_funcs)}" if prim_funcs else ""
        raise UsageError(
            f"{info.name} holds {len(prim_funcs)} functions{named}.", remedy="Give a module with one."
        )
    return next(iter(prim_funcs.values()))


def _check_arguments(info: WorkloadInfo, function: Any) -> None:
    for param in function.params:
        if not isinstance(param.ty, tirx.BufferType):
            raise UsageError(f"{info.name}: the argument {param.name} is no buffer.", remedy=_EXAMPLE)
    symbolic = [
        f"{param.name}.shape[{axis}] = {extent}"
        for param in function.params
        for axis, extent in enumerate(param.ty.shape)
        if not isinstance(extent, tirx.IntImm)
    ]
    if symbolic:
        raise UsageError(
            f"{info.name} has symbolic dimensions: {', '.join(symbolic)}.",
            remedy="Tuning needs concrete shapes: replace each by a number.",
        )


def _check_schedulable(info: WorkloadInfo, module: IRModule) -> None:
    """Refuse what MetaSchedule can't schedule, and what does not end with its one output."""
    params = list(module["main"].params)
    try:
        schedule = Schedule(module)
        blocks = [schedule.get(block) for block in schedule.get_child_blocks(schedule.get_sblock("root"))]
    except Exception as error:  # TVM raises many types here
        raise UsageError(f"{info.name} can't be scheduled: {_cause(error)}", remedy=_EXAMPLE) from error
    written = [region.source for block in blocks for region in block.writes]
    outputs = [param.name for param in params if any(param.same_as(buffer) for buffer in written)]
    names = [param.name for param in params]
    if outputs != names[-1:]:
        raise UsageError(
            f"{info.name} writes to {', '.join(outputs) or 'none'} of its arguments {', '.join(names)}.",
            remedy="Give a function that writes to its last argument only.",
        )


def _cause(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
