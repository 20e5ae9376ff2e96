"""Two programs side by side."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from tuneassist.ui.program import DiffLine, side_by_side

_ROLES = {"~": "warning", "-": "error", "+": "success", "⋯": "secondary"}


class DiffView(VerticalScroll, can_focus=True):
    """Both texts line by line; changed lines bear `~`, lines of one side only `-` or `+`."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)

    def compose(self) -> ComposeResult:
        """Two columns that scroll together."""
        with Horizontal():
            yield Static(classes="left", markup=False)
            yield Static(classes="right", markup=False)

    def show_diff(self, left: str, right: str) -> None:
        """Show the difference."""
        lines = side_by_side(left, right)
        changed = sum(line.sign in "~-+" for line in lines)
        self.border_subtitle = f"{changed} lines differ" if changed else "equal"
        self.query_one(".left", Static).update(self._column(lines, left=True))
        self.query_one(".right", Static).update(self._column(lines, left=False))
        self.scroll_home(animate=False)

    def _column(self, lines: list[DiffLine], *, left: bool) -> Text:
        text = Text(no_wrap=True)
        colours = self.app.theme_variables
        for line in lines:
            shown = line.left if left else line.right
            here = line.sign if line.sign in " ~⋯" or (line.sign == "-") == left else " "
            style = colours.get(_ROLES.get(here, ""), "")
            text.append(f"{here} {shown}\n", style=style)
        return text
