"""Options of the history subcommands: which runs, which database, which form of output."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from tuneassist.config import database_path
from tuneassist.errors import UsageError
from tuneassist.storage.filters import STATES, RunFilter

F = TypeVar("F", bound=Callable[..., Any])

RUN = click.IntRange(min=1, max=2**63 - 1)
"""A run's id."""

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_SPAN_SECS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LONGEST_SPAN_SECS = 1e10


def csv_option(function: F) -> F:
    """Add `--csv`, given to the command as `as_csv`."""
    return click.option("--csv", "as_csv", is_flag=True, help="Print CSV on stdout.")(function)


def filter_options(function: F) -> F:
    """Add the options that `run_filter` takes."""
    options = (
        click.option("--workload", default="", metavar="PATTERN", help="Task name or workload spec."),
        click.option("--target", default="", metavar="PATTERN", help="Target spec or JSON."),
        click.option("--machine", default="", metavar="PATTERN", help="Host name or CPU."),
        click.option("--cost-model", default="", metavar="PATTERN", help="Cost model."),
        click.option(
            "--status", "states", multiple=True, type=click.Choice(STATES), help="May be given several times."
        ),
        click.option(
            "--since", metavar="TIME", help="Started at or after: 2026-07-01, 2026-07-01T12:30, or 7d ago."
        ),
        click.option("--until", metavar="TIME", help="Started before."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def run_filter(options: dict[str, Any]) -> RunFilter:
    """The filter that the options of `filter_options` describe.

    Raises:
        UsageError: A time is none.
    """
    return RunFilter(
        workload=options["workload"],
        target=options["target"],
        machine=options["machine"],
        cost_model=options["cost_model"],
        states=tuple(options["states"]),
        since=moment("--since", options["since"]),
        until=moment("--until", options["until"]),
    )


def moment(option: str, text: str | None) -> float | None:
    """Unix time of a date, a date with a time of day (local), or a span before now.

    Raises:
        UsageError: It is none of them.
    """
    if text is None:
        return None
    span = _SPAN.fullmatch(text.strip().removesuffix("ago").strip())
    if span and float(span[1]) * _SPAN_SECS[span[2]] < _LONGEST_SPAN_SECS:
        return time.time() - float(span[1]) * _SPAN_SECS[span[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"{option} {text!r} is no time.",
            remedy="Give a date (2026-07-01), a date with time (2026-07-01T12:30), or a span (36h, 7d, 4w).",
        ) from error


def store_path(db: str | None) -> str:
    """The database that `--db` or the settings name."""
    return str(database_path(db))


def db_suffix(db: str | None) -> str:
    """` --db PATH` for a command shown to the user, where it was given one."""
    return f" --db {shlex.quote(db)}" if db else ""
