"""`tuneassist import`: what others measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tuneassist.commands._history_print import hint, reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path

_SHOWN = 10
"""Malformed lines that are named."""


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--machine", metavar="NAME", default="", help="Name of the machine that measured the records.")
@click.option("--strict", is_flag=True, help="Refuse everything because of one malformed line.")
@db_option
@json_option
@reports_errors
def command(path: Path, machine: str, strict: bool, db: str | None, as_json: bool) -> None:
    """Read PATH into the database, whole or not at all; what is there already is not added again.

    PATH is a MetaSchedule JSON database (the folder with database_workload.json and
    database_tuning_record.json, or one of the two), or another tuneassist database.

    A MetaSchedule database does not say which machine measured it: its records get a machine of their
    own, unless --machine names it or tuneassist itself exported it. Times such as 1e10 are failures, and
    are stored as such. A malformed line is named and left out.
    """
    from tuneassist.exchange.metaschedule import RECORDS, WORKLOADS
    from tuneassist.storage.sqlite import open_store

    source = path.expanduser()
    with open_store(database_path(db)) as store:
        if source.is_dir() or source.name in (WORKLOADS, RECORDS):
            from tuneassist.exchange import from_metaschedule

            records = from_metaschedule.import_database(store, source, machine=machine, strict=strict)
            done = {"format": "metaschedule", **from_metaschedule.as_dict(records)}
        else:
            done = _merge(store, source, machine, strict)
    if as_json:
        print_json({"path": str(source), "db": str(database_path(db)), **done})
    else:
        _report(source, done)


def _merge(store: Any, source: Path, machine: str, strict: bool) -> dict[str, Any]:
    from dataclasses import asdict

    from tuneassist.errors import UsageError
    from tuneassist.exchange.merge import merge_database

    if machine or strict:
        raise UsageError(
            f"{'--machine' if machine else '--strict'} goes with a MetaSchedule database only.",
            remedy="A tuneassist database knows its machines.",
        )
    return {"format": "tuneassist", **asdict(merge_database(store, source))}


def _report(source: Path, done: dict[str, Any]) -> None:
    runs = ", ".join(map(str, done["runs"])) or "none"
    say(f"{safe(source)}: {done['added']} trials added, {done['known']} known already; runs {runs}")
    if done["format"] == "tuneassist":
        if done["confirmed"]:
            hint(f"{done['confirmed']} of the known ones were measured again or checked there.")
        return
    if done["failed"]:
        hint(f"{done['failed']} of those added are failures.")
    if done["added"]:
        hint(f"They count as measured on {safe(done['machine'])}.")
    for problem in done["problems"][:_SHOWN]:
        hint(f"Left out: {safe(problem)}")
    if done["skipped"] > _SHOWN:
        hint(f"Left out: {done['skipped'] - _SHOWN} more lines.")
