"""What is known of one AST node."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table
from textual.containers import VerticalScroll
from textual.widgets import Static

from tuneassist.ui.format import plain
from tuneassist.ui.program import Node


class NodeFeatures(VerticalScroll, can_focus=True):
    """Kind, label, contribution, and every feature by name."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(Static("Choose a node to see its features.", markup=False), id=id)

    def show_node(self, node: Node) -> None:
        """Show its features."""
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, style="bold")
        table.add_column(overflow="fold")
        table.add_row(plain(node.kind), plain(node.label))
        if node.contribution is not None:
            table.add_row("contribution", f"{node.contribution:+.4g}")
        for name, value in node.detail:
            table.add_row(plain(name), plain(_words(value)))
        self.query_one(Static).update(table)
        self.scroll_home(animate=False)


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
