"""Best-latency curves of several runs in one chart."""

from __future__ import annotations

import math
from typing import NamedTuple

from tuneassist.ui.format import latency
from tuneassist.ui.task_state import BestPoint
from tuneassist.ui.widgets.axes import Axis, CountAxis, ElapsedAxis, LogLatencyAxis
from tuneassist.ui.widgets.best_chart import staircase
from tuneassist.ui.widgets.chart import Chart, Series, view_of

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

    x_axis: Axis = CountAxis()
    y_axis = LogLatencyAxis()

    def show(self, workload: str, curves: tuple[Curve, ...], *, over_time: bool) -> None:
        """Draw them."""
        self.x_axis = ElapsedAxis() if over_time else CountAxis()
        if not curves:
            self.clear()
            return
        where = "time" if over_time else "trials"
        self.border_title = f"Best latency of {workload} over {where}".replace("[", r"\[")
        series: list[Series] = []
        said: list[str] = []
        xs_all, ys_all = [0.0], []
        for curve, name, marker in zip(curves, _COLOURS, _MARKERS, strict=False):
            steps = tuple(BestPoint(*point) for point in curve.points)
            end = curve.secs if over_time else float(curve.trials)
            xs, ys = staircase(steps, end, over_time=over_time)
            marks = curve.points[:: max(1, len(curve.points) // 20)]
            at = [secs if over_time else float(trial) for trial, secs, _ in marks]
            series += [
                Series(name, xs, ys),
                Series(name, at, [math.log10(best) for _, _, best in marks], marker),
            ]
            xs_all += xs
            ys_all += ys
            said.append(f"[$series-{name}]{marker}[/] {curve.name} {latency(curve.points[-1][2])}")
        self.put(series, view_of(xs_all, ys_all), "  ".join(said))
