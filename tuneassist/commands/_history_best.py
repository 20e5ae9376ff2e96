"""`tuneassist history best`."""

from __future__ import annotations

import difflib
import json
import platform
from dataclasses import fields

import click

from tuneassist.commands._history_options import csv_option, store_path
from tuneassist.commands._history_print import (
    as_data,
    hint,
    print_csv,
    print_table,
    reports_errors,
    safe,
    say,
)
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import UsageError
from tuneassist.storage.queries import BestRow, best, workload_names
from tuneassist.storage.reading import reading
from tuneassist.ui import format as fmt

_COLUMNS = ("workload", "best", "spread", "GFLOPS", "untuned", "PyTorch", "run", "trials")


@click.command("best")
@click.argument("workload", default="", metavar="[WORKLOAD]")
@click.option("--target", default="", metavar="PATTERN", help="Target spec.")
@click.option("--machine", default="", metavar="PATTERN", help="Host name or CPU. [default: this machine]")
@click.option("--all-machines", is_flag=True, help="Of every machine in the database.")
@db_option
@csv_option
@json_option
@reports_errors
def best_command(
    workload: str, target: str, machine: str, all_machines: bool, db: str | None, as_csv: bool, as_json: bool
) -> None:
    """Show the best known of each workload, with its run and the spread of its repeats.

    WORKLOAD is a pattern of a task name or workload spec. Machines and targets are kept apart: latencies
    of one say little about another. Without --machine those of this machine are shown.
    """
    path = store_path(db)
    host = "" if machine or all_machines else platform.node()
    with reading(path) as conn:
        found = best(conn, workload=workload, target=target, machine=machine)
        names = workload_names(conn)
    here = [row for row in found if not host or row.machine == host]
    if workload and not found:
        near = difflib.get_close_matches(workload, names, n=3, cutoff=0.4)
        raise UsageError(
            f"No measured workload matches {workload!r}.",
            remedy=f"Nearest: {', '.join(near)}."
            if near
            else "`tuneassist history best` lists those that are.",
        )
    if as_json:
        print_json({"db": path, "machine": machine or host or None, "best": [best_data(row) for row in here]})
    elif as_csv:
        header = [*(field.name for field in fields(BestRow)), "spread"]
        print_csv(header, [[best_data(row)[name] for name in header] for row in here])
    else:
        _print(here, path)
    if len(here) < len(found):
        hint(f"{len(found) - len(here)} more of other machines: --all-machines shows them.")


def best_data(row: BestRow) -> dict[str, object]:
    """A best as JSON shows it."""
    return {**as_data(row), "run_secs": list(row.run_secs), "spread": spread(row)}


def spread(row: BestRow) -> float | None:
    """Range of the repeats over their median."""
    if len(row.run_secs) < 2 or row.best_secs <= 0:
        return None
    return (max(row.run_secs) - min(row.run_secs)) / row.best_secs


def _target(row: BestRow) -> str:
    """The target's spec and, since `native` says little, its CPU model."""
    try:
        model = json.loads(row.target_json).get("mcpu", "")
    except (ValueError, AttributeError):
        model = ""
    return row.target if model in row.target else f"{row.target} ({model})"


def _print(found: list[BestRow], path: str) -> None:
    if not found:
        hint(f"Nothing measured in {path} for this machine.")
        return
    places: dict[str, list[BestRow]] = {}
    for row in found:
        places.setdefault(f"{row.machine}, {_target(row)}", []).append(row)
    for place, rows in sorted(places.items()):
        say(safe(place))
        print_table(_COLUMNS, map(_cells, rows), numeric=_COLUMNS[1:])
        say()
    hint("untuned, PyTorch: their latency over the best's, on the same cores.")


def _cells(row: BestRow) -> tuple[str, ...]:
    share = spread(row)
    return (
        row.workload,
        fmt.latency(row.best_secs),
        fmt.NONE if share is None else f"{share:.1%}",
        fmt.number(row.gflops, 1),
        fmt.ratio(row.untuned_secs / row.best_secs if row.untuned_secs else None),
        fmt.ratio(row.pytorch_secs / row.best_secs if row.pytorch_secs else None),
        str(row.run_id),
        str(row.trials),
    )
