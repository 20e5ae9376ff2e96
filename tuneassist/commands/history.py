"""`tuneassist history`: inspect what was measured. Each subcommand lives in a module of its own."""

from __future__ import annotations

import importlib
from typing import Any

import click

_SUBCOMMANDS = {
    "list": ("_history_list", "List runs, the newest first (what `history` alone does)."),
    "show": ("_history_show", "Show a run: settings, best per task, failures, model quality, phases."),
    "best": ("_history_best", "Show the best known schedule of each workload, with its run and spread."),
    "trials": ("_history_trials", "List the trials of a run."),
    "compare": ("_history_compare", "Compare runs: latencies, ratios, and how soon each got there."),
    "sql": ("_history_sql", "Run a read-only SQL query."),
    "note": ("_history_edit", "Show or set the note of a run."),
    "prune": ("_history_edit", "Remove old runs, but never the best of a workload; asks first."),
    "delete": ("_history_edit", "Remove the runs named; asks first."),
    "vacuum": ("_history_file", "Give the space of removed runs back to the disk."),
    "salvage": ("_history_file", "Copy what is readable of a damaged database into a new one."),
}
"""Module and one-line help of each; the module holds it as `<name>_command`."""


class _HistoryGroup(click.Group):
    """Imports a subcommand's module only when it is called, and takes `list` where none is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        module: Any = importlib.import_module(f"tuneassist.commands.{_SUBCOMMANDS[cmd_name][0]}")
        found: click.Command = getattr(module, f"{cmd_name}_command")
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _SUBCOMMANDS.items()])


@click.group(cls=_HistoryGroup, name="history")
def command() -> None:
    """Inspect what was measured. Without a subcommand the runs are listed.

    Patterns ignore case, know * and ?, and match anywhere where they have neither. Opening history never
    starts work.
    """
