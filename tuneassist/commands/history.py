"""`tuneassist history`: inspect what was measured. Each subcommand lives in a module of its own."""

from __future__ import annotations

import click

from tuneassist.commands._group import LazySubgroup

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


@click.group(cls=LazySubgroup, name="history", members=_SUBCOMMANDS, default="list")
def command() -> None:
    """Inspect what was measured. Without a subcommand the runs are listed.

    Patterns ignore case, know * and ?, and match anywhere where they have neither. Opening history never
    starts work.
    """
