"""From a model's spec to its Relax module with weights as constants."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneassist.errors import UsageError
from tuneassist.models import onnx_file, torch_program
from tuneassist.models.faults import cause, check_memory
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.tvm_api import IRModule, relax, tirx, tvm
from tuneassist.workloads.models import model_path, network_name

_CONTROL_FLOW = ("cond", "while_loop", "scan", "map", "associative_scan")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to be lowered."""

    module: IRModule
    """`main` takes `inputs` in their order."""
    inputs: tuple[TensorSpec, ...]


def load_model(info: WorkloadInfo) -> LoadedModel:
    """Load a model.

    Raises:
        UsageError: The file is damaged, needs shapes, or holds what TVM can't import.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch and TVM to themselves
        if not network_name(info) and model_path(info).suffix == ".onnx":
            model, inputs = onnx_file.load_onnx(info)
            return LoadedModel(onnx_file.to_relax(info, model, inputs), inputs)
        program = torch_program.reference_program(info)
        return _load_relax(info) if program is None else _from_torch(info, program)


def example_inputs(inputs: tuple[TensorSpec, ...], seed: int) -> list[NDArray[Any]]:
    """Inputs to measure and compare on: floats are standard normal, integers (ids, masks) are 0 or 1."""
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal(tensor.shape).astype(tensor.dtype)
        if tensor.dtype.startswith("float")
        else rng.integers(0, 2, tensor.shape).astype(tensor.dtype)
        for tensor in inputs
    ]


def _from_torch(info: WorkloadInfo, program: Any) -> LoadedModel:
    from tvm.relax.frontend.torch import from_exported_program

    torch_program.check_weights(info.name, program)
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    if control := [node.name for node in calls if str(node.target) in _CONTROL_FLOW]:
        raise UsageError(
            f"{info.name} holds control flow, which can't be tuned: {', '.join(control[:5])}.",
            remedy="Export the branch that inference takes, with loops unrolled.",
        )
    try:
        module = from_exported_program(program, unwrap_unit_return_tuple=True)
    except Exception as error:  # TVM raises many types here
        text = str(error)
        users = [node.name for node in calls if str(node.target).split(".")[-2:-1][0:1] and node.name in text]
        named = [
            node.name
            for node in calls
            if getattr(node.target, "__name__", str(node.target)) in text or str(node.target) in text
        ]
        where = f" (nodes: {', '.join(dict.fromkeys([*users, *named][:5]))})" if users or named else ""
        raise UsageError(
            f"TVM can't import {info.name}: {cause(error)}{where}.",
            remedy="Write the network without that operator.",
        ) from error
    return LoadedModel(module, torch_program.program_inputs(program))


def _load_relax(info: WorkloadInfo) -> LoadedModel:
    path = model_path(info)
    check_memory(info.name, path.stat().st_size)
    try:
        module = tvm.ir.load_json(path.read_text(encoding="utf-8"))
    except Exception as error:  # whatever TVM's reader makes of an arbitrary file
        raise UsageError(
            f"{path} is no saved TVM module: {cause(error)}.",
            remedy="Save the module with tvm.ir.save_json(module), by this version of TVM.",
        ) from error
    names = [var.name_hint for var in module.functions] if isinstance(module, IRModule) else []
    if "main" not in names or not isinstance(module["main"], relax.Function):
        raise UsageError(
            f"{path} has no Relax function main; it holds {', '.join(names[:8]) or 'nothing'}.",
            remedy="Name the function that is to be tuned main.",
        )
    inputs = []
    for param in module["main"].params:
        shape = getattr(param.ty, "shape", None)
        extents = list(shape) if shape is not None else None
        if extents is None or not all(isinstance(extent, tirx.IntImm) for extent in extents):
            raise UsageError(
                f"{path}: the shape of {param.name} is not constant: {param.ty}.",
                remedy="Tuning needs concrete shapes: bind them with relax.transform.BindSymbolicVars.",
            )
        inputs.append(TensorSpec(param.name, tuple(int(n) for n in extents), str(param.ty.dtype)))
    return LoadedModel(module, tuple(inputs))
