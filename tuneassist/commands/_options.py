"""Options and output habits that subcommands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tuneassist.errors import UsageError

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


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPV6]:PORT`.

    Raises:
        UsageError: It has not that form.
    """
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise UsageError(f"{text!r} is no address.", remedy="Write HOST:PORT, such as 127.0.0.1:9190.")
    return host, int(port)
