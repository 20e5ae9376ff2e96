"""`tuneassist history trials`."""

from __future__ import annotations

from dataclasses import fields

import click

from tuneassist.commands._history_options import RUN, csv_option, store_path
from tuneassist.commands._history_print import (
    as_data,
    hint,
    print_csv,
    print_table,
    reports_errors,
    terminal_width,
)
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.records import TrialStatus
from tuneassist.storage.queries import FAILED, TrialRow, run_row, trials
from tuneassist.storage.reading import reading
from tuneassist.ui import format as fmt

_STATUSES = [FAILED, *(status.value for status in TrialStatus)]
_FIELDS = [field.name for field in fields(TrialRow)]
_COLUMNS = ("trial", "task", "round", "status", "measured", "predicted", "build", "error")
_NUMERIC = ("trial", "round", "measured", "predicted", "build")
_WIDE = 110
_DROPPED = ("round", "build")
"""Columns that a narrow terminal has no room for."""


@click.command("trials")
@click.argument("run", type=RUN)
@click.option("--task", "task_name", default="", metavar="NAME", help="Of this task only.")
@click.option("--status", default="", type=click.Choice(["", *_STATUSES]), help="[default: all]")
@click.option("--sort", default="ordinal", show_default=True, type=click.Choice(_FIELDS))
@click.option("--reverse", is_flag=True, help="Largest first.")
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, help="0 for all.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many first.")
@db_option
@csv_option
@json_option
@reports_errors
def trials_command(
    run: int, task_name: str, status: str, sort: str, reverse: bool, limit: int, offset: int, db: str | None,
    as_csv: bool, as_json: bool,
) -> None:  # fmt: skip
    """List the trials of run RUN in the order in which they ended; `--sort best_of` puts the best first."""
    path = store_path(db)
    with reading(path) as conn:
        row = run_row(conn, run, path)
        found = trials(
            conn, run, task_name=task_name, status=status, order=sort, descending=reverse, limit=limit or -1,
            offset=offset,
        )  # fmt: skip
    if as_json:
        print_json({"db": path, "run_id": run, "trials_of_run": row.trials, "trials": as_data(found)})
    elif as_csv:
        print_csv(_FIELDS, [[getattr(trial, name) for name in _FIELDS] for trial in found])
    else:
        narrow = terminal_width() < _WIDE
        rows = [_cells(trial, 24 if narrow else 80) for trial in found]
        shown = [at for at, column in enumerate(_COLUMNS) if not (narrow and column in _DROPPED)]
        print_table(
            [_COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows], numeric=_NUMERIC
        )
        if len(found) < row.trials:
            hint(f"{len(found)} of the run's {row.trials} trials.")


def _cells(trial: TrialRow, error_chars: int) -> tuple[str, ...]:
    return (
        str(trial.ordinal),
        trial.task_name,
        str(trial.round),
        f"{trial.status.value}{' (wrong output)' if trial.correct is False else ''}",
        fmt.latency(trial.best_of),
        fmt.latency(trial.predicted_secs),
        fmt.latency(trial.build_secs),
        first_line(trial.error, error_chars),
    )


def first_line(text: str | None, most: int) -> str:
    """The first line with something in it, cut to `most` characters."""
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), "")
    return line if len(line) <= most else f"{line[: most - 1]}…"
