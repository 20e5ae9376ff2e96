"""Options and output habits that subcommands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def db_option(function: F) -> F:
    """Add `--db PATH`."""
    return click.option(
        "--db",
        metavar="PATH",
        envvar="TUNEASSIST_DB",
        help="The SQLite database. [default: TUNEASSIST_DB, the settings file, or the user data folder]",
    )(function)


def json_option(function: F) -> F:
    """Add `--json`, given to the command as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")(function)


def print_json(value: Any) -> None:
    """Print one JSON value on stdout; NaN and infinities become null."""
    click.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
