"""`tuneassist model list`."""

from __future__ import annotations

from pathlib import Path

import click

from tuneassist.commands._history_options import store_path
from tuneassist.commands._history_print import as_data, hint, print_table, reports_errors
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.storage.models import ModelRow, packaged_models, stored_models
from tuneassist.storage.reading import reading
from tuneassist.ui import format as fmt

_COLUMNS = ("kind", "made", "from", "trained on", "SHA-256", "file")


@click.command("list")
@db_option
@json_option
@reports_errors
def list_command(db: str | None, as_json: bool) -> None:
    """List the checkpoints that the database knows and those that came with the installation."""
    path = store_path(db)
    with reading(path) as conn:
        stored = stored_models(conn)
    found = [("database", row) for row in stored] + [("installation", row) for row in packaged_models()]
    if as_json:
        print_json({"db": path, "models": [_data(origin, row) for origin, row in found]})
    elif found:
        print_table(_COLUMNS, [_cells(origin, row) for origin, row in found])
    else:
        hint("No checkpoint is known: runs start untrained, and learn from what they measure.")


def _data(origin: str, row: ModelRow) -> dict[str, object]:
    return {**as_data(row), "from": origin, "exists": Path(row.path).is_file()}


def _cells(origin: str, row: ModelRow) -> tuple[str, ...]:
    there = row.path if Path(row.path).is_file() else f"{row.path} (gone)"
    return (
        row.kind or fmt.NONE, fmt.moment(row.created_at), origin, row.trained_on, row.sha256[:12], there,
    )  # fmt: skip
