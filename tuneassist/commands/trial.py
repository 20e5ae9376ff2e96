"""`tuneassist trial`: the program of a trial."""

from __future__ import annotations

from typing import Any

import click

from tuneassist.commands._history_print import reports_errors, safe
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path


@click.command("trial")
@click.argument("trial_id", type=click.IntRange(min=1, max=2**63 - 1))
@click.option(
    "--view", type=click.Choice(("tree", "script", "trace")), default="tree", show_default=True,
    help="What to print.",
)  # fmt: skip
@db_option
@json_option
@reports_errors
def command(trial_id: int, view: str, db: str | None, as_json: bool) -> None:
    """Show the program of the trial with id TRIAL_ID (`tuneassist history trials RUN` lists ids).

    The trace that the store keeps is replayed on the workload. The tree is what a cost model sees: loops
    with extent and kind, accesses with their strides along the loops around them, innermost first. --json
    prints everything: nodes with all their features, edges, TVMScript and trace.
    """
    from tuneassist.exchange.program import inspect_trial
    from tuneassist.storage.sqlite import open_store

    with open_store(database_path(db), readonly=True) as store:
        program = inspect_trial(store, trial_id)
    if as_json:
        print_json(program)
    elif view == "tree":
        _print_tree(program["nodes"])
    else:
        click.echo(program[view])


def _print_tree(nodes: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    def words(node: dict[str, Any]) -> Text:
        text = Text(node["kind"], style="cyan").append(f" {safe(node['label'])}".rstrip(), style="default")
        if node["contribution"] is not None:
            text.append(f"  {node['contribution']:+.3g}", style="magenta")
        return text

    branches: dict[int, Tree] = {}
    for node in nodes:  # Parents come before their children.
        above = branches.get(node["parent"])
        branches[node["id"]] = Tree(words(node)) if above is None else above.add(words(node))
    Console(highlight=False).print(branches[nodes[0]["id"]])
