"""The top-level command group, which imports a subcommand's module only when it is called."""

from __future__ import annotations

import importlib
from typing import Any

import click

SUBCOMMANDS = {
    "apply": "Compile the best known schedule of a workload, verify it, and show how to use it.",
    "doctor": "Check this machine, TVM and the store; say what to do about what is wrong.",
    "export": "Write what was measured, or the best kernel, to files for other tools.",
    "history": "Inspect what was measured.",
    "import": "Read a MetaSchedule database, or another tuneassist database, into this one.",
    "targets": "List hardware targets, or explain one.",
    "trial": "Show the program of a trial: its tree, TVMScript and trace.",
    "workloads": "List workloads with their shapes, FLOPs and arithmetic intensity.",
}
"""Name and one-line help of each; `tuneassist.commands.<name>` holds its `command`."""

_MODULES = {"import": "import_"}
"""Modules that can't bear their command's name."""


class LazyGroup(click.Group):
    """A group that knows its subcommands' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module: Any = importlib.import_module(f"tuneassist.commands.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUBCOMMANDS[name]) for name in self.list_commands(ctx)])
