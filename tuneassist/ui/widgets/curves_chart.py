"""Best-latency curves of several runs in one chart."""

from __future__ import annotations

import math
from typing import NamedTuple

from textual_plot import PlotWidget

from tuneassist.ui.format import latency
from tuneassist.ui.task_state import BestPoint
from tuneassist.ui.widgets.best_chart import staircase
from tuneassist.ui.widgets.chart import BRAILLE, Chart, CountAxis, ElapsedAxis, LogLatencyAxis

_COLOURS = ("measured", "newest", "best", "untuned", "pytorch", "quiet")
_MARKERS = ("●", "◆", "■", "▲", "▼", "○")


class Curve(NamedTuple):
    """One run's curve: (trial, seconds, best latency) at each improvement, and where it ends."""

    name: str
    points: tuple[tuple[int, float, float], ...]
    trials: int
    secs: float


class CurvesChart(Chart):
    """Each curve has a colour and a marker at its improvements."""

    TITLE = "Best latency"
    EMPTY = "These runs have no valid trial of this workload."

    def set_axes(self, plot: PlotWidget) -> None:
        """The vertical axis; the horizontal one depends on what is shown."""
        plot.set_y_formatter(LogLatencyAxis())

    def show(self, workload: str, curves: tuple[Curve, ...], *, over_time: bool) -> None:
        """Draw them."""
        plot = self.begin(bool(curves))
        if plot is None:
            return
        self.border_title = f"Best latency of {workload} over {'time' if over_time else 'trials'}".replace(
            "[", r"\["
        )
        plot.set_x_formatter(ElapsedAxis() if over_time else CountAxis())
        stairs = [
            staircase(
                tuple(BestPoint(*point) for point in curve.points),
                curve.secs if over_time else float(curve.trials),
                over_time=over_time,
            )
            for curve in curves
        ]
        self.room(plot, [0.0, *(x for xs, _ in stairs for x in xs)], [y for _, ys in stairs for y in ys])
        said: list[str] = []
        for number, (curve, (xs, ys)) in enumerate(zip(curves, stairs, strict=True)):
            colour, marker = self.colour(_COLOURS[number % 6]), _MARKERS[number % 6]
            plot.plot(xs, ys, line_style=colour, hires_mode=BRAILLE)
            marks = curve.points[:: max(1, len(curve.points) // 20)]
            where = [secs if over_time else float(trial) for trial, secs, _ in marks]
            plot.scatter(
                where, [math.log10(best) for _, _, best in marks], marker=marker, marker_style=colour
            )
            said.append(f"[{colour}]{marker}[/] {curve.name} {latency(curve.points[-1][2])}")
        self.border_subtitle = "  ".join(said)
