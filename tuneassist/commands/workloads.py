"""`tuneassist workloads`: what can be tuned, with its arithmetic and its memory traffic."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path
from tuneassist.errors import TuneAssistError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.ui.format import count
from tuneassist.workloads.models import parse_model, parse_shapes, with_shapes
from tuneassist.workloads.operators import OPERATORS, Operator
from tuneassist.workloads.spec import list_workloads, prepacked, unknown_workload

_NARROW = 100
"""Below this many columns a table row is folded into fewer cells."""


@click.command("workloads")
@click.argument("filter", required=False)
@click.option("--kinds", is_flag=True, help="List the operator kinds with their parameters instead.")
@click.option("--shape", "shapes", multiple=True, metavar="NAME=N,N,...", help="Shape of a model's input.")
@db_option
@json_option
def command(
    filter: str | None,  # noqa: A002
    kinds: bool,
    shapes: tuple[str, ...],
    db: str | None,
    as_json: bool,
) -> None:
    """List workloads with their shapes, FLOPs and arithmetic intensity.

    FILTER is part of a name, a network or an operator kind; a pattern such as 'resnet18.c?'; or a whole
    spec, such as resnet18.c2:layout=NHWC or matmul:m=512,n=512,k=512. Any workload listed takes
    parameters that way.

    A whole model (model:resnet18, net.onnx, net.pt2; --shape names open dimensions) is loaded, and its
    kernels listed with their share of FLOPs and, where this machine measured them, of time.

    FLOPs are of one call, a multiply-add counting as two; bytes are of all inputs and the output; * marks
    a weight that the tuner may pre-pack, since it is a constant in deployment (parameter prepack).
    """
    try:
        if kinds:
            _list_kinds(_kinds(filter or ""), as_json)
        elif (model := parse_model(with_shapes(filter or "", parse_shapes(shapes)))) is not None:
            _list_kernels(model, db, as_json)
        else:
            _list_workloads(_workloads(filter), as_json)
    except TuneAssistError as error:
        if as_json:
            failure = {"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
            print_json({"kinds" if kinds else "workloads": [], **failure})
        raise


def _list_kernels(model: WorkloadInfo, db: str | None, as_json: bool) -> None:
    """Load a model in a process of its own, and list its kernels."""
    import tempfile

    from tuneassist.commands._model_report import print_tasks
    from tuneassist.models.extract import extract

    with tempfile.TemporaryDirectory(prefix="tuneassist-model-") as folder:
        extracted = extract(model, Path(folder))
    times = _times(Path(database_path(db)), [task.hash for task in extracted.tasks])
    whole = extracted.flops or 1
    tasks = [
        {
            **as_dict(task.info), "hash": task.hash, "weight": task.weight, "tunable": task.tunable,
            "share": task.weight * task.info.flops / whole, "untuned_secs": untuned, "best_secs": best,
        }
        for task, (untuned, best) in zip(extracted.tasks, times, strict=True)
    ]  # fmt: skip
    if as_json:
        inputs = [_tensor(tensor) for tensor in extracted.inputs]
        print_json({"model": model.spec, "inputs": inputs, "flops": extracted.flops, "workloads": tasks})
        return
    print_tasks(tasks)
    shapes = ", ".join(f"{tensor.name} {_extents(tensor)} {tensor.dtype}" for tensor in extracted.inputs)
    click.echo(f"{model.name}: {shapes}; {count(extracted.flops)} FLOPs")


def _times(db: Path, hashes: list[str]) -> list[tuple[float | None, float | None]]:
    """What this machine knows of kernels; nothing where there is no database."""
    from tuneassist.storage.known import times_on_host
    from tuneassist.storage.sqlite import open_store
    from tuneassist.targets.machine import this_machine

    if not db.exists():
        return [(None, None)] * len(hashes)
    with open_store(db, readonly=True) as store:
        return [times_on_host(store.connection, key, this_machine().hostname) for key in hashes]


def _workloads(filter: str | None) -> list[WorkloadInfo]:  # noqa: A002
    found = list_workloads(filter)
    if not found:
        raise unknown_workload(filter or "")
    return found


def _kinds(filter: str) -> list[Operator]:  # noqa: A002
    wanted = filter.strip().lower()
    if wanted in OPERATORS:
        return [OPERATORS[wanted]]
    found = [operator for operator in OPERATORS.values() if wanted in operator.kind]
    if not found:
        raise unknown_workload(filter)
    return found


def _list_workloads(found: list[WorkloadInfo], as_json: bool) -> None:
    if as_json:
        print_json({"workloads": [as_dict(info) for info in found]})
    elif sys.stdout.isatty():
        print_table(found)
    else:
        _print_lines(found)


def as_dict(info: WorkloadInfo) -> dict[str, Any]:
    """One workload as the JSON output shows it."""
    return {
        "name": info.name,
        "spec": info.spec,
        "op": info.op,
        "network": info.network,
        "dtype": _dtype(info),
        "inputs": [_tensor(tensor) for tensor in info.inputs],
        "output": _tensor(info.output),
        "flops": info.flops,
        "bytes": info.bytes,
        "intensity": info.intensity,
        "prepacked": prepacked(info) or None,
    }


def _tensor(tensor: TensorSpec) -> dict[str, Any]:
    return {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def _dtype(info: WorkloadInfo) -> str:
    return info.inputs[0].dtype if info.inputs else info.output.dtype


def shape_text(info: WorkloadInfo) -> str:
    """Shapes of the inputs and the output on one line; a star marks the input that may be pre-packed."""
    if not info.inputs:
        return "known when the file is loaded"
    packed = prepacked(info)
    inputs = ", ".join(_extents(tensor) + ("*" if tensor.name == packed else "") for tensor in info.inputs)
    return f"{inputs} -> {_extents(info.output)}"


def _extents(tensor: TensorSpec) -> str:
    return "x".join(map(str, tensor.shape))


def print_table(found: Iterable[WorkloadInfo]) -> None:
    """Print workloads for people, in the width of the terminal."""
    console = Console()
    narrow = console.width < _NARROW
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("Workload", style="cyan", overflow="fold")
    table.add_column("Shapes", overflow="fold", ratio=1)
    if not narrow:
        table.add_column("dtype")
    for heading in ("FLOPs", "Bytes", "FLOP/B"):
        table.add_column(heading, justify="right", no_wrap=True)
    for info in found:
        dtype = _dtype(info)
        shapes = shape_text(info)
        if narrow and dtype not in ("float32", ""):
            shapes = f"{shapes} {dtype}"
        row = [info.name, shapes, *(() if narrow else (dtype,))]
        table.add_row(*row, count(info.flops), f"{count(info.bytes)}B", f"{info.intensity:.1f}")
    console.print(table)
    console.print("[dim]* the tuner may pre-pack this weight" + ("; float32 unless named" if narrow else ""))


def _print_lines(found: Iterable[WorkloadInfo]) -> None:
    """One workload a line, cells separated by tabs, numbers in full."""
    click.echo("\t".join(("name", "shapes", "dtype", "flops", "bytes", "intensity")))
    for info in found:
        numbers = (str(info.flops), str(info.bytes), f"{info.intensity:.2f}")
        click.echo("\t".join((info.name, shape_text(info), _dtype(info), *numbers)))


def _list_kinds(kinds: list[Operator], as_json: bool) -> None:
    if as_json:
        print_json({"kinds": [_kind_as_dict(operator) for operator in kinds]})
        return
    for operator in kinds:
        click.echo(f"{operator.kind}: {operator.summary}")
        for param in operator.params:
            default = "required" if param.default is None else f"default {param.default}"
            meaning = f"{param.help}; " if param.help else ""
            click.echo(f"    {param.name}: {meaning}{param.accepts} ({default})")


def _kind_as_dict(operator: Operator) -> dict[str, Any]:
    return {
        "kind": operator.kind,
        "summary": operator.summary,
        "parameters": [
            {"name": param.name, "default": param.default, "accepts": param.accepts, "help": param.help}
            for param in operator.params
        ],
    }
