"""`tuneassist trial`: the program of a trial."""

from __future__ import annotations

from typing import Any

import click

from tuneassist.commands._history_print import hint, reports_errors
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.commands._program_print import print_tree
from tuneassist.config import database_path
from tuneassist.errors import UsageError
from tuneassist.storage.models import checkpoint_path, packaged_models


@click.command("trial")
@click.argument("trial_id", type=click.IntRange(min=1, max=2**63 - 1))
@click.option(
    "--view", type=click.Choice(("tree", "script", "trace")), default="tree", show_default=True,
    help="What to print.",
)  # fmt: skip
@click.option(
    "--model", metavar="PATH|pretrained|none",
    help="The checkpoint that says what each node adds to the predicted log time. [default: the pretrained "
    "model, where there is one]",
)  # fmt: skip
@click.option("--untuned", is_flag=True, help="Show its workload as it is before any schedule instead.")
@db_option
@json_option
@reports_errors
def command(
    trial_id: int, view: str, model: str | None, untuned: bool, db: str | None, as_json: bool
) -> None:
    """Show the program of the trial with id TRIAL_ID (`tuneassist history trials RUN` lists ids).

    The trace that the store keeps is replayed on the workload. The tree is what a cost model sees: loops
    with extent and kind, accesses with their strides along the loops around them, innermost first. --json
    prints everything: nodes with all their features, edges, TVMScript and trace.
    """
    from tuneassist.exchange.program import inspect_trial
    from tuneassist.storage.sqlite import open_store

    with open_store(database_path(db), readonly=True) as store:
        if model is not None:
            named = None if model == "none" else str(checkpoint_path(model))
            program = inspect_trial(store, trial_id, model=named, untuned=untuned)
        else:
            program = _with_pretrained(store, trial_id, untuned)
    if as_json:
        print_json(program)
    elif view == "tree":
        print_tree(program)
    else:
        click.echo(program[view])


def _with_pretrained(store: Any, trial_id: int, untuned: bool) -> dict[str, Any]:
    """The program, explained where a pretrained model can; the program matters more than the explanation."""
    from tuneassist.exchange.program import inspect_trial

    program = inspect_trial(store, trial_id, untuned=untuned)
    for model in packaged_models():
        try:
            return inspect_trial(store, trial_id, model=model.path, untuned=untuned)
        except UsageError as error:
            hint(f"No contributions by {model.path}: {error.message}")
    return program
