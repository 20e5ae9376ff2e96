"""The frame that all charts share: series over two axes, or a sentence while there is no data.

A chart is one widget that keeps its drawn lines: it draws when it is painted after its data, its size, its
view or the theme have changed, and at no other time.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widget import Widget

from tuneassist.ui.raster import Raster
from tuneassist.ui.widgets.axes import Axis, CountAxis

_LABELS = 8
"""Columns of the vertical axis' labels."""


class Series(NamedTuple):
    """What is drawn in one colour; `xs` and `ys` are (num_points,).

    `marker` is a character for each point, `.` for one dot a point, or empty for a line.
    """

    name: str
    xs: ArrayLike
    ys: ArrayLike
    marker: str = ""


class View(NamedTuple):
    """The part of the plane that is shown."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def moved(self, x_share: float, y_share: float) -> View:
        """Shifted by shares of its size."""
        x, y = x_share * (self.x_high - self.x_low), y_share * (self.y_high - self.y_low)
        return View(self.x_low + x, self.x_high + x, self.y_low + y, self.y_high + y)

    def scaled(self, factor: float) -> View:
        """Larger or smaller about its middle."""
        x, y = (factor - 1) / 2 * (self.x_high - self.x_low), (factor - 1) / 2 * (self.y_high - self.y_low)
        return View(self.x_low - x, self.x_high + x, self.y_low - y, self.y_high + y)


def view_of(xs: Sequence[float], ys: Sequence[float]) -> View:
    """A view with a margin around the data: what lies on the frame would not be seen."""
    x_pad = max((max(xs) - min(xs)) * 0.02, 1e-3)
    y_pad = max((max(ys) - min(ys)) * 0.06, 0.02)
    return View(min(xs) - x_pad, max(xs) + x_pad, min(ys) - y_pad, max(ys) + y_pad)


class Chart(Widget, can_focus=True):
    """A framed plot with a title, a line of figures below it, and a sentence while it is empty."""

    TITLE = ""
    EMPTY = "Nothing to draw yet."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "pan(-0.1, 0)", "Pan left", show=False),
        Binding("right", "pan(0.1, 0)", "Pan right", show=False),
        Binding("up", "pan(0, 0.1)", "Pan up", show=False),
        Binding("down", "pan(0, -0.1)", "Pan down", show=False),
        Binding("z", "zoom(0.8)", "Zoom in", show=False),
        Binding("Z", "zoom(1.25)", "Zoom out", show=False),
        Binding("0", "whole", "Whole chart", show=False),
    ]

    x_axis: Axis = CountAxis()
    y_axis: Axis = CountAxis()

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._series: tuple[Series, ...] = ()
        self._whole = View(0.0, 1.0, 0.0, 1.0)
        self._chosen: View | None = None
        """What the user panned or zoomed to."""
        self._data: tuple[object, ...] = ()
        self._strips: list[Strip] = []
        self._drawn_for: tuple[object, ...] = ()

    def on_mount(self) -> None:
        """The title."""
        self.border_title = self.TITLE

    def changed(self, *data: object) -> bool:
        """Whether the data are others than at the last call."""
        same = data == self._data
        self._data = data
        return not same

    def put(self, series: Sequence[Series], view: View, said: str) -> None:
        """Draw these series from now on; without any the sentence takes their place.

        Args:
            said: The line of figures below; `$series-NAME` is the colour of a series.
        """
        self._series, self._whole = tuple(series), view
        if self.border_subtitle != said:
            self.border_subtitle = said
        self.redraw()

    def clear(self) -> None:
        """There is nothing to draw."""
        self.put((), self._whole, "")

    def redraw(self) -> None:
        """Draw anew at the next paint."""
        self._drawn_for = ()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the drawing, which is made if it is not there."""
        now = (self.size, self.app.theme, self._chosen)
        if now != self._drawn_for:
            raster = Raster(max(1, self.size.width), max(1, self.size.height))
            self.draw(raster)
            self._strips = raster.strips(self.rich_style)
            self._drawn_for = now
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def draw(self, raster: Raster) -> None:
        """Draw everything; a subclass may keep a part of the raster for itself."""
        self.draw_plot(raster, raster.width)

    def colour(self, name: str) -> str:
        """The theme's colour of a series."""
        return self.app.theme_variables.get(f"series-{name}", "")

    def draw_plot(self, raster: Raster, width: int) -> None:
        """Draw the plot, or the sentence, in the left `width` columns."""
        quiet = self.app.theme_variables.get("secondary", "")
        if not self._series:
            lines = [
                part for line in self.EMPTY.splitlines() for part in textwrap.wrap(line, max(1, width - 2))
            ]
            for number, line in enumerate(lines):
                top = (raster.height - len(lines)) // 2
                raster.text(max(0, (width - len(line)) // 2), top + number, line, quiet)
            return
        view = self._chosen or self._whole
        left, right, bottom = _LABELS + 1, width - 1, raster.height - 2
        if right - left < 4 or bottom < 2:
            return
        across = (right - left) / (view.x_high - view.x_low)
        down = bottom / (view.y_high - view.y_low)

        self._draw_axes(raster, view, (left, right, bottom), quiet)
        clip = (left, 0, right, bottom)
        for series in self._series:
            xs = left + (np.asarray(series.xs, dtype=np.float64) - view.x_low) * across
            ys = (view.y_high - np.asarray(series.ys, dtype=np.float64)) * down
            if series.marker == "":
                raster.line(xs, ys, self.colour(series.name), clip)
            elif series.marker == ".":
                raster.points(xs, ys, self.colour(series.name), clip)
            else:
                raster.markers(xs, ys, series.marker, self.colour(series.name), clip)

    def _draw_axes(self, raster: Raster, view: View, place: tuple[int, int, int], style: str) -> None:
        left, right, bottom = place
        for y in range(bottom):
            raster.text(left - 1, y, "│", style)
        raster.text(left - 1, bottom, "└" + "─" * (right - left), style)
        for tick in self.y_axis.ticks(view.y_low, view.y_high, max(3, bottom // 2)):
            y = int((view.y_high - tick) / (view.y_high - view.y_low) * bottom)
            if 0 <= y < bottom:
                raster.text(0, y, f"{self.y_axis.label(tick)[:_LABELS]:>{_LABELS}}┤", style)
        free = left - 1
        for tick in self.x_axis.ticks(view.x_low, view.x_high, max(2, (right - left) // 10)):
            x = left + int((tick - view.x_low) / (view.x_high - view.x_low) * (right - left))
            label = self.x_axis.label(tick)
            start = min(x - len(label) // 2, right - len(label) + 1)
            if left <= x < right:
                raster.text(x, bottom, "┬", style)
                if start >= free:
                    raster.text(start, bottom + 1, label, style)
                    free = start + len(label) + 1

    def action_pan(self, x_share: float, y_share: float) -> None:
        """Move the view."""
        self._chosen = (self._chosen or self._whole).moved(x_share, y_share)
        self.refresh()

    def action_zoom(self, factor: float) -> None:
        """Zoom about the middle."""
        self._chosen = (self._chosen or self._whole).scaled(factor)
        self.refresh()

    def action_whole(self) -> None:
        """Everything again."""
        self._chosen = None
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out."""
        event.stop()
        self.action_zoom(1.25)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in."""
        event.stop()
        self.action_zoom(0.8)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the view."""
        if event.button and self.size.area:
            self.action_pan(-event.delta_x / self.size.width, event.delta_y / self.size.height)
