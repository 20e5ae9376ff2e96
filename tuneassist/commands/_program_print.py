"""A trial's program as a coloured tree, with what each node adds to the predicted time."""

from __future__ import annotations

from typing import Any

from tuneassist.commands._history_print import hint, safe

_NEGLIGIBLE = 0.05
"""Contributions below this share of the largest are dimmed."""


def print_tree(program: dict[str, Any]) -> None:
    """Print a program as `exchange.program.inspect_trial` gives it.

    Contributions, where there are any, are natural logs of seconds: red ones make it slower, green ones
    faster. Classes of AST nodes that this version does not know are told on stderr.
    """
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    nodes = program["nodes"]
    largest = max((abs(node["contribution"] or 0.0) for node in nodes), default=0.0)

    def words(node: dict[str, Any]) -> Text:
        text = Text(node["kind"], style="cyan").append(f" {safe(node['label'])}".rstrip(), style="default")
        if node["contribution"] is not None:
            text.append(f"  {node['contribution']:+.3g}", style=_style(node["contribution"], largest))
        return text

    branches: dict[int, Tree] = {}
    for node in nodes:  # Parents come before their children.
        above = branches.get(node["parent"])
        branches[node["id"]] = Tree(words(node)) if above is None else above.add(words(node))
    Console(highlight=False).print(branches[nodes[0]["id"]])
    if program["unknown"]:
        seen = ", ".join(f"{safe(name)} ({count})" for name, count in sorted(program["unknown"].items()))
        hint(f"AST nodes of unknown class, which a model sees as such: {seen}.")


def _style(contribution: float, largest: float) -> str:
    if abs(contribution) <= _NEGLIGIBLE * largest:
        return "dim"
    return "red" if contribution > 0 else "green"
