"""PyTorch programs: the built-in networks, and `.pt2` files read without unpickling anything."""

from __future__ import annotations

import contextlib
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneassist.errors import UsageError
from tuneassist.models.faults import cause, check_memory
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads.models import model_path, model_shapes, network_name

if TYPE_CHECKING:
    import torch

_SAVE = "Save it with torch.export.save(torch.export.export(net.eval(), inputs), 'net.pt2'), by this torch."
_CODE = "aotinductor"
_SYMBOLIC = re.compile(
    r"(?:'[su]\d+'|\b(?:[su]\d+|True|False|Symbol|Integer|Add|Mul|Pow|Max|Min|Mod|PythonMod|ModularIndexing"
    r"|FloorDiv|CeilDiv|CleanDiv|Eq|Ne|Lt|Le|Gt|Ge|And|Or|Not|oo|int_oo|positive|nonnegative|integer|real|\d+)\b"
    r"|[-+*/<>=!&|~(), ])*"
)
"""Dimensions as torch.export writes them; PyTorch evaluates that text as Python."""


def export_network(info: WorkloadInfo) -> torch.export.ExportedProgram:
    """A built-in network as an exported program.

    Raises:
        UsageError: The shapes do not fit the network.
    """
    import torch

    from tuneassist.models.networks import build_network

    try:
        network = build_network(info)
        with torch.no_grad():
            return torch.export.export(network, tuple(_example(tensor) for tensor in info.inputs))
    except (RuntimeError, ValueError, AssertionError, IndexError) as error:
        shapes = ", ".join(f"{t.name}={'x'.join(map(str, t.shape))}" for t in info.inputs)
        raise UsageError(
            f"{info.network} can't take {shapes}: {cause(error)}",
            remedy=f"`tuneassist workloads model:{info.network}` shows its usual shapes.",
        ) from error


def load_program(info: WorkloadInfo) -> torch.export.ExportedProgram:
    """The program of a `.pt2` file.

    Raises:
        UsageError: It is no file of `torch.export.save`, would unpickle objects, does not fit into memory,
            holds NaN, or has dynamic dimensions.
    """
    import torch

    path = model_path(info)
    _check_archive(path)
    check_memory(info.name, path.stat().st_size)
    try:
        with _weights_only():
            program = torch.export.load(path)
    except Exception as error:  # whatever PyTorch makes of a damaged archive
        raise UsageError(f"{path} can't be loaded by this PyTorch: {cause(error)}", remedy=_SAVE) from error
    return _with_shapes(info, program)


def program_inputs(program: torch.export.ExportedProgram) -> tuple[TensorSpec, ...]:
    """Name, shape and dtype of each input; a dynamic dimension is -1."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    specs = []
    for name in program.graph_signature.user_inputs:
        value: Any = values.get(str(name))
        if value is None or not hasattr(value, "shape"):
            raise UsageError(
                f"The program's input {name} is no tensor.", remedy="Export it with tensors as inputs only."
            )
        shape = tuple(int(n) if isinstance(n, int) else -1 for n in value.shape)
        specs.append(TensorSpec(str(name), shape, str(value.dtype).removeprefix("torch.")))
    return tuple(specs)


def check_weights(name: str, program: torch.export.ExportedProgram) -> None:
    """Refuse weights that are not finite.

    Raises:
        UsageError: The first tensor that holds NaN or infinity is named.
    """
    for key, tensor in program.state_dict.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise UsageError(
                f"{name}: the weight {key} holds NaN or infinity.",
                remedy="No output could be verified: save the model with sound weights.",
            )


def _example(tensor: TensorSpec) -> torch.Tensor:
    import torch

    if tensor.dtype == "int64":
        return torch.zeros(tensor.shape, dtype=torch.int64)
    return torch.randn(tensor.shape)


def _with_shapes(info: WorkloadInfo, program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program at the shapes that the spec gives; every dynamic dimension must get one."""
    import torch

    given, inputs = model_shapes(info), program_inputs(program)
    names = [tensor.name for tensor in inputs]
    if unknown := [name for name in given if name not in names]:
        raise UsageError(
            f"{info.name} has no input {unknown[0]!r}.", remedy=f"Its inputs: {', '.join(names)}."
        )
    for tensor in inputs:
        shape = given.get(tensor.name, tensor.shape)
        fits = len(shape) == len(tensor.shape) and all(
            want in (-1, got) for want, got in zip(tensor.shape, shape, strict=False)
        )
        if not fits:
            raise UsageError(
                f"{info.name} was exported for {tensor.name}={_text(tensor.shape)}, not {_text(shape)}.",
                remedy="Give that shape, or export the program again (torch.export's dynamic_shapes).",
            )
        if -1 in shape:
            raise UsageError(
                f"{info.name} has dynamic dimensions: {tensor.name}={_text(tensor.shape)}.",
                remedy=f"Tuning needs concrete shapes: --shape {tensor.name}="
                + ",".join(str(extent) if extent > 0 else "N" for extent in shape),
            )
    if all(-1 not in tensor.shape for tensor in inputs):
        return program
    examples = tuple(torch.zeros(given.get(t.name, t.shape), dtype=getattr(torch, t.dtype)) for t in inputs)
    try:
        with torch.no_grad():
            return torch.export.export(program.module(), examples)
    except Exception as error:
        raise UsageError(
            f"{info.name} can't take these shapes: {cause(error)}",
            remedy="Give shapes within the bounds that it was exported with.",
        ) from error


def _text(shape: tuple[int, ...]) -> str:
    return "x".join("?" if extent < 0 else str(extent) for extent in shape)


def _check_archive(path: Path) -> None:
    """Refuse what is no exported program, and what PyTorch would run code to load."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if (broken := archive.testzip()) is not None:
                raise zipfile.BadZipFile(f"{broken} is damaged")
            parts = {name.partition("/")[2] for name in names}
            if "models/model.json" not in parts or "archive_format" not in parts:
                pickled = any(part.endswith(".pkl") for part in parts)
                kind = "a pickle of torch.save" if pickled else "no program of torch.export"
                raise UsageError(f"{path} is {kind}.", remedy=_SAVE)
            if any(_CODE in part for part in parts):
                raise UsageError(f"{path} holds compiled code, which is not run.", remedy=_SAVE)
            for name in names:
                if name.endswith("_config.json"):
                    _refuse_pickles(path, json.loads(archive.read(name)))
                elif name.endswith("models/model.json"):
                    _refuse_expressions(path, json.loads(archive.read(name)))
    except (zipfile.BadZipFile, IndexError, ValueError, OSError) as error:
        raise UsageError(
            f"{path} is no file of torch.export.save: {cause(error)}.",
            remedy=f"A pickle is never loaded, since that can run code. {_SAVE}",
        ) from error


def _refuse_pickles(path: Path, config: Any) -> None:
    for name, payload in config.get("config", {}).items():
        if payload.get("use_pickle"):
            raise UsageError(
                f"{path}: {name} is a pickled object, which is not loaded, since that can run code.",
                remedy="Export the program with plain tensors as weights and constants.",
            )


def _refuse_expressions(path: Path, value: Any) -> None:
    if isinstance(value, dict):
        text = value.get("expr_str")
        if isinstance(text, str) and _SYMBOLIC.fullmatch(text) is None:
            raise UsageError(
                f"{path} holds {text[:60]!r} as a dimension, which is none.",
                remedy=f"PyTorch would run it as code. {_SAVE}",
            )
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _refuse_expressions(path, item)


@contextlib.contextmanager
def _weights_only() -> Iterator[None]:
    """Have every `torch.load` refuse arbitrary objects, also where PyTorch asks for them."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def reference_program(info: WorkloadInfo) -> torch.export.ExportedProgram | None:
    """The program of a model that PyTorch can run; None for the others."""
    if network_name(info):
        return export_network(info)
    return load_program(info) if model_path(info).suffix == ".pt2" else None
