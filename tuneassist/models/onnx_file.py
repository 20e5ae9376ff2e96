"""ONNX files: read, checked, and turned into Relax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.errors import MachineError, UsageError
from tuneassist.models.faults import cause, check_memory
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads.models import model_path, model_shapes

_CONTROL_FLOW = ("If", "Loop", "Scan")


def load_onnx(info: WorkloadInfo) -> tuple[Any, tuple[TensorSpec, ...]]:
    """The checked model of a file, with its weights, and its inputs at concrete shapes.

    Raises:
        UsageError: The file is damaged or uses what can't be tuned; its message names the part.
        MachineError: The package `onnx` is not installed.
    """
    onnx = _package()
    path = model_path(info)
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf raises its own
        raise UsageError(
            f"{path} is no ONNX model: {cause(error)}.",
            remedy="It is damaged, or another format: save it again.",
        ) from error
    if not model.graph.node:
        raise UsageError(f"{path} holds no ONNX graph.", remedy="It is damaged: save it again.")
    _check_opset(onnx, path, model)
    _check_names(path, model)
    _check_control_flow(path, model)
    check_memory(info.name, path.stat().st_size + _read_external(onnx, path, model))
    try:
        onnx.checker.check_model(model)
    except Exception as error:
        raise UsageError(
            f"{path} is no valid ONNX model: {cause(error)}.", remedy="Save it again, or see onnx.checker."
        ) from error
    _check_weights(onnx, path, model)
    return model, _inputs(onnx, info, model)


def to_relax(info: WorkloadInfo, model: Any, inputs: tuple[TensorSpec, ...]) -> Any:
    """The model as a Relax module.

    Raises:
        UsageError: TVM can't import an operator; it is named with the nodes that use it.
    """
    from tvm.relax.frontend.onnx import from_onnx

    try:
        return from_onnx(
            model,
            shape_dict={tensor.name: list(tensor.shape) for tensor in inputs},
            keep_params_in_input=False,
        )
    except Exception as error:  # TVM raises many types here
        text = str(error)
        users = [node for node in model.graph.node if f"{node.op_type}" in text.replace(",", " ").split()]
        where = ", ".join(f"{node.op_type} in {node.name or node.output[0]}" for node in users[:5])
        raise UsageError(
            f"TVM can't import {info.name}: {cause(error)}" + (f" ({where})." if where else "."),
            remedy="Export it without that operator, or at another opset.",
        ) from error


def _package() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MachineError(
            "ONNX files need the Python package onnx, which is not installed.",
            remedy="Install it: pip install 'tuneassist[onnx]'.",
        ) from error
    return onnx


def _check_opset(onnx: Any, path: Path, model: Any) -> None:
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > newest:
            raise UsageError(
                f"{path} uses opset {opset.version}; the newest that is known here is {newest}.",
                remedy=f"Export it with opset {newest} or lower, or update the package onnx.",
            )


def _check_names(path: Path, model: Any) -> None:
    seen: set[str] = set()
    for value in model.graph.input:
        if value.name in seen:
            raise UsageError(f"{path} has two inputs called {value.name!r}.", remedy="Rename one of them.")
        seen.add(value.name)


def _check_control_flow(path: Path, model: Any) -> None:
    found = [node for node in model.graph.node if node.op_type in _CONTROL_FLOW]
    if found:
        names = ", ".join(f"{node.op_type} in {node.name or node.output[0]}" for node in found[:5])
        raise UsageError(
            f"{path} holds control flow, which can't be tuned: {names}.",
            remedy="Export the branch that inference takes, with loops unrolled.",
        )


def _read_external(onnx: Any, path: Path, model: Any) -> int:
    """Take in the weights that other files hold; return their bytes."""
    from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data

    tensors = [tensor for tensor in model.graph.initializer if uses_external_data(tensor)]
    files = sorted({str(ExternalDataInfo(tensor).location) for tensor in tensors})
    for name in files:
        if not (path.parent / name).is_file():
            raise UsageError(
                f"{path} keeps weights in {name}, which is not beside it.",
                remedy=f"Put {name} into {path.parent}.",
            )
    size = sum((path.parent / name).stat().st_size for name in files)
    check_memory(path.name, size)
    try:
        load_external_data_for_model(model, str(path.parent))
    except Exception as error:
        raise UsageError(
            f"The weights of {path} can't be read from {', '.join(files)}: {cause(error)}.",
            remedy="The files do not belong together, or one is cut off: copy both again.",
        ) from error
    return size


def _check_weights(onnx: Any, path: Path, model: Any) -> None:
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype.kind == "f" and not bool(np.isfinite(array).all()):
            raise UsageError(
                f"{path}: the weight {tensor.name} holds NaN or infinity.",
                remedy="No output could be verified: save the model with sound weights.",
            )


def _inputs(onnx: Any, info: WorkloadInfo, model: Any) -> tuple[TensorSpec, ...]:
    weights = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in weights]
    given = model_shapes(info)
    names = [value.name for value in values]
    if unknown := [name for name in given if name not in names]:
        raise UsageError(
            f"{info.name} has no input {unknown[0]!r}.", remedy=f"Its inputs: {', '.join(names)}."
        )
    specs, open_ = [], []
    for value in values:
        dims = value.type.tensor_type.shape.dim
        stored = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims)
        shape = given.get(value.name, stored)
        if len(shape) != len(stored) or any(
            want not in (-1, got) for want, got in zip(stored, shape, strict=True)
        ):
            raise UsageError(
                f"{info.name}: the input {value.name} has shape {_text(stored)}, not {_text(shape)}.",
                remedy="Give extents only where the model leaves them open (?).",
            )
        if -1 in shape:
            open_.append(f"--shape {value.name}={','.join(str(n) if n >= 0 else 'N' for n in shape)}")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        specs.append(TensorSpec(value.name, shape, str(dtype)))
    if open_:
        raise UsageError(
            f"{info.name} has dynamic dimensions.",
            remedy=f"Tuning needs concrete shapes: {' '.join(open_)}, with a number for each N.",
        )
    return tuple(specs)


def _text(shape: tuple[int, ...]) -> str:
    return "x".join("?" if extent < 0 else str(extent) for extent in shape)
