"""The keys of the moment on one line. Textual's footer builds its widgets anew at each change of focus."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.dom import DOMNode
from textual.widgets import Static


@dataclass(frozen=True, slots=True)
class _Span:
    """Columns of one key, and what a click on it does."""

    start: int
    end: int
    action: str
    node: DOMNode


class KeyBar(Static):
    """Keys that are marked to be shown, those of the screen first; a click works like the key."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self._spans: list[_Span] = []

    def on_mount(self) -> None:
        """Follow the screen's bindings."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.show_keys())
        self.app.theme_changed_signal.subscribe(self, lambda _: self.show_keys())
        self.show_keys()

    def show_keys(self) -> None:
        """Draw the keys that work now."""
        if not self.screen.is_active:
            return
        text = Text(no_wrap=True, overflow="ellipsis")
        accent = self.app.theme_variables.get("accent", "")
        self._spans = []
        seen: set[str] = set()
        for active in self.screen.active_bindings.values():
            binding: Binding = active.binding
            if not binding.show or not binding.description or not active.enabled or binding.action in seen:
                continue
            seen.add(binding.action)
            start = text.cell_len
            text.append(f" {self.app.get_key_display(binding)}", style=f"bold {accent}")
            text.append(f" {binding.description}")
            self._spans.append(_Span(start, text.cell_len, binding.action, active.node))
        self.update(text, layout=False)

    async def on_click(self, event: events.Click) -> None:
        """Do what the key under the pointer does."""
        for span in self._spans:
            if span.start <= event.x < span.end:
                await self.app.run_action(span.action, span.node)
                return
