"""`tuneassist history vacuum` and `salvage`: the file itself."""

from __future__ import annotations

from pathlib import Path

import click

from tuneassist.commands._history_options import store_path
from tuneassist.commands._history_print import as_data, hint, print_table, reports_errors, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import StoreError
from tuneassist.storage.maintenance import vacuum
from tuneassist.storage.salvage import salvage
from tuneassist.ui import format as fmt


@click.command("vacuum")
@db_option
@json_option
@reports_errors
def vacuum_command(db: str | None, as_json: bool) -> None:
    """Give the space of removed runs back to the disk; needs twice the file's size while it works."""
    path = store_path(db)
    before, after = vacuum(path)
    if as_json:
        print_json({"db": path, "bytes_before": before, "bytes_after": after})
    else:
        say(f"{path}: {fmt.count(before)}B before, {fmt.count(after)}B now")


@click.command("salvage")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@json_option
@reports_errors
def salvage_command(source: Path, target: Path, as_json: bool) -> None:
    """Copy what is readable of the damaged database SOURCE to the new database TARGET."""
    done = salvage(source, target)
    if not any(table.rows for table in done):
        raise StoreError(
            f"Nothing of {source} could be read.",
            remedy="Use a backup: before a schema change one is kept beside the file (*.bak).",
        )
    if as_json:
        print_json({"source": str(source), "db": str(target), "tables": as_data(done)})
        return
    rows = [
        (table.table, table.rows, table.lost, "parts could not be read" if table.damaged else "whole")
        for table in done
    ]
    print_table(("table", "copied", "dropped", ""), rows, numeric=("copied", "dropped"))
    if any(table.lost for table in done):
        hint("Dropped rows are garbled, or refer to rows that could not be read.")
