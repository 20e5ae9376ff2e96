"""`tuneassist history list`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from tuneassist.commands._history_options import csv_option, db_suffix, filter_options, run_filter, store_path
from tuneassist.commands._history_print import (
    as_data,
    hint,
    print_csv,
    print_table,
    reports_errors,
    say,
    terminal_width,
)
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.storage.filters import RunFilter
from tuneassist.storage.queries import RunRow, count_runs, runs
from tuneassist.storage.reading import reading
from tuneassist.ui import format as fmt

_WIDE = 110


@click.command("list")
@filter_options
@click.option(
    "--sort",
    type=click.Choice([field.name for field in fields(RunRow) if field.name not in ("alive", "task_names")]),
    default="id",
    show_default=True,
    help="Largest first.",
)
@click.option("--reverse", is_flag=True, help="Smallest first.")
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, help="0 for all.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many first.")
@db_option
@csv_option
@json_option
@reports_errors
def list_command(
    db: str | None, sort: str, reverse: bool, limit: int, offset: int, as_csv: bool, as_json: bool,
    **filters: Any,
) -> None:  # fmt: skip
    """List runs, the newest first."""
    path, wanted = store_path(db), run_filter(filters)
    found: list[RunRow] = []
    total = 0
    if Path(path).exists():
        with reading(path) as conn:
            found = runs(
                conn, wanted, order=sort, descending=not reverse, limit=limit or -1, offset=offset
            )  # fmt: skip
            total = count_runs(conn, wanted)
    if as_json:
        print_json({"db": path, "total": total, "runs": [run_data(run) for run in found]})
    elif as_csv:
        _print_csv(found)
    else:
        _print(found, total, db)
        if not found:
            hint(f"No runs {'yet' if wanted == RunFilter() and not offset else 'match'} in {path}.")


def run_data(run: RunRow) -> dict[str, Any]:
    """A run as JSON shows it."""
    return {**as_data(run), "state": run.state, "resumable": run.resumable}


def _print_csv(found: list[RunRow]) -> None:
    header = [*(field.name for field in fields(RunRow)), "state", "resumable"]
    print_csv(header, [[run_data(run)[name] for name in header] for run in found])


def _print(found: list[RunRow], total: int, db: str | None) -> None:
    if not found:
        return
    print_runs(found)
    if total > len(found):
        hint(f"{len(found)} of {total} runs; --limit 0 shows all.")
    resumable = [run for run in found if run.resumable]
    if resumable:
        say(f"* can be continued: tuneassist --batch --resume {resumable[0].id}{db_suffix(db)}")


def print_runs(found: list[RunRow]) -> None:
    """Print runs as a table; a star marks those that can be resumed."""
    wide = terminal_width() >= _WIDE
    columns = ["run", "state", "started", "workloads", "model", "valid/trials", "best"]
    columns += ["target", "machine", "note"] if wide else []
    rows = []
    for run in found:
        row = [
            str(run.id),
            f"{run.state}{'*' if run.resumable else ''}",
            fmt.moment(run.started_at) if wide else fmt.moment(run.started_at)[5:],
            shortened(run.task_names, run.tasks, 3 if wide else 1),
            run.cost_model,
            f"{run.valid}/{run.trials}",
            fmt.latency(run.best_secs),
        ]
        rows.append([*row, run.target, run.machine, run.note] if wide else row)
    print_table(columns, rows, numeric=("run", "started", "valid/trials", "best"))


def shortened(names: str, tasks: int, most: int) -> str:
    """Names of tasks, the first few of many."""
    parts = names.split(", ")
    return names if tasks <= most else f"{', '.join(parts[:most])} and {tasks - most} more"
