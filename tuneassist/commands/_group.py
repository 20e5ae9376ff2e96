"""Command groups that import a subcommand's module only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

SUBCOMMANDS = {
    "apply": "Compile the best known schedule of a workload, verify it, and show how to use it.",
    "dataset": "Measure schedules for a data set; say what it holds and how it is distributed.",
    "devices": "Look at the devices behind an RPC tracker.",
    "doctor": "Check this machine, TVM and the store; say what to do about what is wrong.",
    "export": "Write what was measured, or the best kernel, to files for other tools.",
    "history": "Inspect what was measured.",
    "import": "Read a MetaSchedule database, or another tuneassist database, into this one.",
    "model": "List, describe and explain cost models.",
    "serve": "Offer this machine to an RPC tracker as a device to measure on.",
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


class LazySubgroup(click.Group):
    """A subcommand with subcommands of its own, imported when called.

    Args:
        members: Module and one-line help of each, in the order of the help; the module holds it as
            `<name>_command`.
        default: The one that is meant where none is named; empty: the help is shown.
    """

    def __init__(
        self, *args: Any, members: Mapping[str, tuple[str, str]], default: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._members = members
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._members)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._members:
            return None
        module: Any = importlib.import_module(f"tuneassist.commands.{self._members[cmd_name][0]}")
        found: click.Command = getattr(module, f"{cmd_name}_command")
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._default and (not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._members.items()])
