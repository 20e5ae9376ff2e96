"""`tuneassist doctor`: check this machine, TVM and the store."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path
from tuneassist.errors import TuneAssistError

if TYPE_CHECKING:
    from tuneassist.targets.checks import Check

_STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


@click.command("doctor")
@db_option
@json_option
@click.pass_context
def command(ctx: click.Context, db: str | None, as_json: bool) -> None:
    """Check this machine, TVM and the store; say what to do about what is wrong.

    Takes about 15 seconds: kernels are compiled, run, checked against NumPy and timed. Each check is ok,
    a warning (tuning works, but its figures may be worse than they need be) or an error. Exit code 0
    without an error, 5 where only the store is at fault, else 3.
    """
    try:
        path = database_path(db)
    except TuneAssistError as error:
        if as_json:
            failure = {"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
            print_json({"ok": False, "checks": [], **failure})
        raise
    from tuneassist.targets.diagnosis import diagnose, exit_code

    checks = []
    with _progress(quiet=as_json or not sys.stderr.isatty()):
        for check in diagnose(path):
            checks.append(check)
            if not as_json and not sys.stdout.isatty():
                click.echo(f"{check.status}\t{check.id}\t{check.seen}\t{check.remedy}".rstrip("\t"))
    code = exit_code(checks)
    if as_json:
        print_json({"ok": code == 0, "exit_code": code, "checks": [asdict(check) for check in checks]})
    elif sys.stdout.isatty():
        _print_table(checks)
    ctx.exit(code)


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[None]:
    if quiet:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("Checking; kernels are compiled and timed ..."):
        yield


def _print_table(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Check", "", "Seen, and what to do"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "Seen, and what to do")
    for check in checks:
        finding = Text(check.seen)
        if check.remedy:
            finding.append(f"\n{check.remedy}", style="italic")
        table.add_row(check.id, Text(check.status, style=_STYLES[check.status]), finding)
    console = Console()
    console.print(table)
    wrong = [sum(check.status == status for check in checks) for status in ("error", "warning")]
    console.print(f"\n{len(checks)} checks: {wrong[0]} errors, {wrong[1]} warnings.", style="bold")
