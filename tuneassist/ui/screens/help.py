"""The keys of the screen below."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table as RichTable
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static


class HelpScreen(ModalScreen[None]):
    """What the screen is for, and its keys: those of the focused widget, of the screen, of the app."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter", "close", "Close")]

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self._about = getattr(screen, "HELP", "")
        self._keys = key_list(screen)

    def compose(self) -> ComposeResult:
        """The text over a table of keys."""
        table = RichTable.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for key, description in self._keys:
            table.add_row(key, description)
        with VerticalScroll(classes="dialog long") as frame:
            frame.border_title = "Help"
            frame.border_subtitle = "esc closes"
            yield Static(self._about, markup=False, classes="about")
            yield Static(table)

    def action_close(self) -> None:
        """Close it."""
        self.dismiss()


def key_list(screen: Screen[object]) -> list[tuple[str, str]]:
    """(keys, description) of every active binding that has a description."""
    keys: dict[str, list[str]] = {}
    for active in screen.active_bindings.values():
        if active.binding.description and active.enabled:
            shown = keys.setdefault(active.binding.description, [])
            name = screen.app.get_key_display(active.binding)
            if name not in shown:
                shown.append(name)
    return [(", ".join(names), description) for description, names in keys.items()]
