"""`tuneassist model`: cost models. Each subcommand lives in a module of its own."""

from __future__ import annotations

import click

from tuneassist.commands._group import LazySubgroup

_SUBCOMMANDS = {
    "train": ("_model_train", "Train a cost model on a data set, or on your own history."),
    "list": ("_model_list", "List the checkpoints that are known."),
    "evaluate": ("_model_evaluate", "Judge models on held-out parts of a data set, and compare them."),
    "info": ("_model_info", "Show what a checkpoint is, and whether this version can use it."),
    "explain": ("_model_explain", "Show what each node of a trial's program adds to the predicted time."),
}


@click.group(cls=LazySubgroup, name="model", members=_SUBCOMMANDS)
def command() -> None:
    """List, describe and explain cost models."""
