"""The frame that all charts share: a plot with axes in people's units, or a sentence while there is no data.

`textual_plot` draws linear axes only, so logarithmic data are given to it as log10, and the formatter puts
ticks at round numbers of the real scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Grid
from textual.reactive import reactive
from textual.widgets import Static
from textual_plot import AxisFormatter, HiResMode, PlotWidget
from textual_plot.plot_widget import Legend

from tuneassist.ui.format import count, duration, latency
from tuneassist.ui.widgets.canvas import StyledCanvas

BRAILLE = HiResMode.BRAILLE


class Plot(PlotWidget, inherit_bindings=False):
    """The plot with keys that leave the screen's own alone and stay out of the footer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "pan_left", "Pan left", show=False),
        Binding("right", "pan_right", "Pan right", show=False),
        Binding("up", "pan_up", "Pan up", show=False),
        Binding("down", "pan_down", "Pan down", show=False),
        Binding("z", "zoom_in", "Zoom in", show=False),
        Binding("Z", "zoom_out", "Zoom out", show=False),
        Binding("0", "reset_scales", "Whole chart", show=False),
    ]
    margin_top = reactive(0)
    margin_bottom = reactive(1)
    margin_left = reactive(9)

    def compose(self) -> ComposeResult:
        """The plot's own parts, on canvases that every terminal can show."""
        with Grid():
            for part in ("margin-top", "margin-left", "plot", "margin-bottom"):
                yield StyledCanvas(1, 1, id=part)
        yield Legend(id="legend")


class LogLatencyAxis(AxisFormatter):
    """Ticks at 1, 2, 5 (or decades) of a latency whose log10 is plotted."""

    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        """Tick positions, as log10 of seconds."""
        decades = range(math.floor(min_), math.ceil(max_) + 1)
        for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0,)):
            ticks = [decade + math.log10(step) for decade in decades for step in steps]
            inside = [tick for tick in ticks if min_ <= tick <= max_]
            if len(inside) <= max_ticks:
                return inside or _linear_in_log(min_, max_)
        return inside[:: math.ceil(len(inside) / max_ticks)]

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        """Latencies in words."""
        return [_short_latency(10**tick) for tick in ticks]


def _linear_in_log(min_: float, max_: float) -> list[float]:
    """Where the span holds no round number: its ends."""
    return [min_ + (max_ - min_) * 0.1, max_ - (max_ - min_) * 0.1]


def _short_latency(secs: float) -> str:
    value, unit = latency(secs).split(" ")
    return f"{value.rstrip('0').rstrip('.') if '.' in value else value} {unit}"


class _RoundAxis(AxisFormatter):
    """Ticks at whole multiples of 1, 2 or 5."""

    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        span = max(max_ - min_, 1e-9)
        raw = span / max(2, max_ticks - 2)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
        first = math.ceil(min_ / step)
        return [n * step for n in range(first, math.floor(max_ / step) + 1)]


class CountAxis(_RoundAxis):
    """Counts, such as trials."""

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        """Counts with a unit."""
        return [count(round(tick, 6)).replace(" ", "") for tick in ticks]


class ShareAxis(_RoundAxis):
    """Coefficients such as a rank correlation."""

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        """Two decimals."""
        return [f"{tick:.2f}" for tick in ticks]


class ElapsedAxis(_RoundAxis):
    """Working time."""

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        """Spans of time."""
        return [duration(tick) for tick in ticks]


class Chart(Container):
    """A framed plot with a title, a line of figures below it, and a sentence while it is empty."""

    TITLE = ""
    EMPTY = "Nothing to draw yet."

    _shown: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """The plot, and the sentence that stands in for it."""
        yield Static(self.EMPTY, classes="empty", markup=False)
        yield Plot(allow_pan_and_zoom=True)

    def on_mount(self) -> None:
        """Empty until there is something to show."""
        self.border_title = self.TITLE
        self.set_class(True, "-empty")
        self.set_axes(self.plot)

    @property
    def plot(self) -> PlotWidget:
        """The plot inside."""
        return self.query_one(PlotWidget)

    def set_axes(self, plot: PlotWidget) -> None:
        """Choose the axes' formatters."""

    def changed(self, *data: object) -> bool:
        """Whether the data (or the theme) are others than at the last call."""
        now = (self.app.theme, *data)
        same = now == self._shown
        self._shown = now
        return not same

    def begin(self, has_data: bool) -> PlotWidget | None:
        """Clear the plot for new data; None (and the sentence) where there is none."""
        self.set_class(not has_data, "-empty")
        if not has_data:
            self.border_subtitle = ""
            return None
        plot = self.plot
        plot.clear()
        return plot

    def colour(self, series: str) -> str:
        """The theme's colour of a series, as a Rich style."""
        return self.app.theme_variables.get(f"series-{series}", "white")

    def room(self, plot: PlotWidget, xs: Sequence[float], ys: Sequence[float]) -> None:
        """Leave a margin around the data: what lies on the frame would not be seen.

        Lines of one point draw nothing but count for the scale, which the user may still zoom and pan.
        """
        x_pad = max((max(xs) - min(xs)) * 0.02, 1e-3)
        y_pad = max((max(ys) - min(ys)) * 0.06, 0.02)
        plot.plot((min(xs) - x_pad,), (min(ys) - y_pad,))
        plot.plot((max(xs) + x_pad,), (max(ys) + y_pad,))

    def level_line(self, plot: PlotWidget, level: float, x: tuple[float, float], series: str) -> None:
        """A horizontal line."""
        plot.plot(x, (level, level), line_style=self.colour(series), hires_mode=BRAILLE)
