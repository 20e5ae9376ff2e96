"""The AST as a tree that folds, coloured by what each node adds to the predicted time."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tuneassist.ui.format import plain
from tuneassist.ui.program import WEIGHT_SIGNS, Node, Program, weight_level

KIND_COLOURS = {
    "loop": "primary",
    "for": "primary",
    "block": "success",
    "load": "secondary",
    "store": "accent",
}


def node_text(node: Node, heaviest: float, colours: dict[str, str]) -> Text:
    """Weight sign, kind and label; the weight's colour comes with a sign of its own."""
    level = weight_level(node.contribution, heaviest)
    text = Text(no_wrap=True, overflow="ellipsis")
    if heaviest > 0:
        style = (
            (colours.get("accent", "") if level >= 3 else colours.get("series-quiet", "")) if level else ""
        )
        text.append(f"{WEIGHT_SIGNS[level]} ", style=style)
    colour = next((c for word, c in KIND_COLOURS.items() if word in node.kind.lower()), "foreground")
    text.append(plain(node.kind), style=colours.get(colour, ""))
    text.append(f" {plain(node.label)}", style="bold" if level == 4 else "")
    if node.contribution is not None:
        text.append(f"  {node.contribution:+.3g}", style=colours.get("series-quiet", ""))
    return text


class AstTree(Tree[Node]):
    """The tree of one program."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "fold", "Fold", show=False),
        Binding("right", "unfold", "Unfold", show=False),
    ]

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__("program", id=id)
        self.show_root = False
        self.guide_depth = 2

    def show_program(self, program: Program) -> None:
        """Show it, unfolded."""
        self.clear()
        children = program.children()
        colours = dict(self.app.theme_variables)
        stack = [(self.root, node) for node in reversed(children.get(None, []))]
        while stack:
            parent, node = stack.pop()
            below = children.get(node.id, [])
            text = node_text(node, program.heaviest, colours)
            if below:
                branch = parent.add(text, data=node, expand=True)
                stack.extend((branch, child) for child in reversed(below))
            else:
                parent.add_leaf(text, data=node)
        self.root.expand()
        self.cursor_line = 0

    def folded(self) -> frozenset[int]:
        """Ids of the folded nodes."""
        found: set[int] = set()
        stack: list[TreeNode[Node]] = [self.root]
        while stack:
            node = stack.pop()
            stack.extend(node.children)
            if node.data is not None and node.children and not node.is_expanded:
                found.add(node.data.id)
        return frozenset(found)

    def action_fold(self) -> None:
        """Fold the node, or go to its parent."""
        node = self.cursor_node
        if node is None:
            return
        if node.children and node.is_expanded:
            node.collapse()
        elif node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)

    def action_unfold(self) -> None:
        """Unfold the node, or go to its first child."""
        node = self.cursor_node
        if node is None or not node.children:
            return
        if node.is_expanded:
            self.move_cursor(node.children[0])
        else:
            node.expand()
