"""What the engine said, newest last."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import RichLog

from tuneassist.ui import format as fmt
from tuneassist.ui.run_state import LogLine

_STYLES = {"warning": ("!", "warning"), "error": ("✗", "error"), "best": ("★", "success")}


class LogPane(RichLog):
    """The last lines of the run's log; it follows the end unless scrolled up."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, wrap=True, markup=False, highlight=False, max_lines=600, min_width=20)
        self._last: LogLine | None = None

    def show(self, lines: tuple[LogLine, ...]) -> None:
        """Write the lines that are not yet there."""
        if not lines or lines[-1] is self._last:
            return
        start = next((i + 1 for i in range(len(lines) - 1, -1, -1) if lines[i] is self._last), 0)
        self._last = lines[-1]
        at_end = self.is_vertical_scroll_end
        for line in lines[start:]:
            sign, role = _STYLES.get(line.level, (" ", ""))
            text = Text(f"{fmt.clock(line.time)} {sign} ", style=self.app.theme_variables.get(role, ""))
            text.append(fmt.plain(line.text), style="" if role != "error" else "bold")
            self.write(text, scroll_end=at_end)
