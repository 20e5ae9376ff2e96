"""One line that names the live screen's panes; a click or a digit shows one."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widgets import Static


class PaneBar(Static):
    """`1 Best  2 Predicted  ...` with the shown pane reversed."""

    @dataclass
    class Chosen(Message):
        """A pane's name was clicked."""

        pane: str

    def __init__(self, panes: tuple[tuple[str, str], ...], id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self._panes = panes
        self._spans: list[tuple[int, int, str]] = []

    def show(self, current: str, available: frozenset[str]) -> None:
        """Draw the names of the panes that can be chosen now."""
        text = Text(no_wrap=True, overflow="ellipsis")
        self._spans = []
        for number, (pane, label) in enumerate(self._panes, 1):
            if pane not in available:
                continue
            start = text.cell_len
            text.append(f" {number} {label} ", style="reverse" if pane == current else "")
            self._spans.append((start, text.cell_len, pane))
        self.update(text, layout=False)

    def on_click(self, event: events.Click) -> None:
        """Choose the pane under the pointer."""
        for start, end, pane in self._spans:
            if start <= event.x < end:
                self.post_message(self.Chosen(pane))
