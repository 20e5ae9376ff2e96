"""`tuneassist history sql`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

import click

from tuneassist.commands._history_options import csv_option, store_path
from tuneassist.commands._history_print import (
    hint,
    print_csv,
    print_table,
    reports_errors,
    safe,
    say,
    terminal_width,
)
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import UsageError
from tuneassist.storage.console import query
from tuneassist.storage.reading import reading

_TABLE_ROWS = 200


@click.command("sql")
@click.argument("statement")
@db_option
@csv_option
@json_option
@reports_errors
def sql_command(statement: str, db: str | None, as_csv: bool, as_json: bool) -> None:
    """Run STATEMENT (`-` reads it from stdin), one SQL query that only reads.

    Good starting points are the views run_summary, task_summary, best_trials and failed_trials. A table
    shows the first 200 rows, --csv and --json give all.
    """
    if statement == "-":
        statement = sys.stdin.read()
    if "\0" in statement or not statement.strip():
        raise UsageError("There is no SQL statement.", remedy='Try "SELECT * FROM run_summary".')
    path = store_path(db)
    statement = statement.encode(errors="replace").decode()
    with reading(path) as conn, query(conn, statement) as result:
        if as_json:
            rows = [
                dict(zip(result.columns, [_plain(value) for value in row], strict=True))
                for row in result.rows
            ]
            print_json({"db": path, "columns": list(result.columns), "rows": rows})
        elif as_csv:
            print_csv(result.columns, ([_plain(value) for value in row] for row in result.rows))
        else:
            shown = list(itertools.islice(result.rows, _TABLE_ROWS + 1))
            _print(result.columns, [[_shown(value) for value in row] for row in shown[:_TABLE_ROWS]])
            if len(shown) > _TABLE_ROWS:
                hint(f"The first {_TABLE_ROWS} rows; --csv and --json give all.")


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _shown(value: object) -> str:
    return "" if value is None else safe(_plain(value))


def _print(columns: Sequence[str], rows: list[list[str]]) -> None:
    """As a table where one fits, else a row after the other, a line for each column."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    if sum(widths) + 2 * len(widths) <= terminal_width():
        print_table(columns, rows)
        return
    longest = max(map(len, columns))
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            say(f"{safe(column):<{longest}}  {cell}".rstrip())
        say()
