"""The canvas that charts and graphs draw on."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual_hires_canvas import Canvas

_NO_STYLE = Style.null()


class StyledCanvas(Canvas):
    """A canvas whose every cell has a style: Textual's filter for NO_COLOR fails on cells without one."""

    def render_line(self, y: int) -> Strip:
        """One line of cells."""
        strip = super().render_line(y)
        segments = [Segment(text, style or _NO_STYLE, control) for text, style, control in strip]
        return Strip(segments, strip.cell_length)
