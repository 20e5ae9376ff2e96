"""`tuneassist dataset`: measured data as a whole. Each subcommand lives in a module of its own."""

from __future__ import annotations

import click

from tuneassist.commands._group import LazySubgroup

_SUBCOMMANDS = {
    "collect": ("_dataset_collect", "Measure schedules of many workloads into the store."),
    "repeat": ("_dataset_repeat", "Measure disturbed trials again, and tell the noise of the others."),
    "stats": ("_dataset_stats", "Show counts, failures and the distribution of log time per workload."),
}


@click.group(cls=LazySubgroup, name="dataset", members=_SUBCOMMANDS)
def command() -> None:
    """Measured schedules to train and judge cost models on."""
