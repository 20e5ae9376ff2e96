"""How history prints: tables for people, CSV and JSON for programs, and text that is safe to show."""

from __future__ import annotations

import csv
import functools
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

import click

from tuneassist.commands._options import print_json
from tuneassist.errors import TuneAssistError

F = TypeVar("F", bound=Callable[..., Any])

_WIDTH_ELSEWHERE = 160
"""Columns where the output is no terminal."""
_BARS = "▁▂▃▄▅▆▇█"
_STEERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of a line, or break it."""


def safe(text: object) -> str:
    r"""The text with what would steer a terminal escaped: `\n`, `\x1b`, `\u202e`."""
    return "".join(
        character.encode("unicode_escape").decode()
        if character in _STEERING or unicodedata.category(character) in ("Cc", "Cs")
        else character
        for character in str(text)
    )


def as_data(value: Any) -> Any:
    """Dataclasses, enums and tuples as JSON takes them."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    return value


def print_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as CSV with a header line; absent values are empty."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, numeric: Iterable[str] = ()
) -> None:
    """Print a table in the width of the terminal; long cells are folded.

    Args:
        columns: Headings.
        rows: Cells; made safe here.
        numeric: Headings of columns that are aligned to the right and never folded.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    numbers = set(numeric)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_ELSEWHERE)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        right = column in numbers
        table.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        table.add_row(*(Text(safe(cell)) for cell in row))
    console.print(table)


def terminal_width() -> int:
    """Columns that a table may take."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_ELSEWHERE


def say(text: str = "") -> None:
    """Print one line of the result."""
    click.echo(text)


def hint(text: str) -> None:
    """Print one line on stderr: what the reader may want to know beside the result."""
    click.echo(text, err=True)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Values as bars, the largest the tallest; more than `width` of them are thinned out evenly."""
    if len(values) > width:
        values = [values[round(at * (len(values) - 1) / (width - 1))] for at in range(width)]
    if not values:
        return ""
    low, high = min(values), max(values)
    if high == low:
        return _BARS[0] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


def reports_errors(function: F) -> F:
    """With `--json`, print an error as one JSON object, too, before it is raised."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TuneAssistError as error:
            if kwargs.get("as_json"):
                print_json({"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code})
            raise

    return wrapped  # type: ignore[return-value]
