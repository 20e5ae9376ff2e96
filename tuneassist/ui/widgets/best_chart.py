"""Best latency over trials or time, with the latencies to beat."""

from __future__ import annotations

import math

from textual_plot import PlotWidget

from tuneassist.ui.format import latency
from tuneassist.ui.task_state import BestPoint, TaskState
from tuneassist.ui.widgets.chart import BRAILLE, Chart, CountAxis, ElapsedAxis, LogLatencyAxis


class BestChart(Chart):
    """Staircase of the best latency; `over_time` chooses the horizontal axis."""

    TITLE = "Best latency over trials"
    EMPTY = "No valid trial yet.\nThe first one starts this curve."

    over_time = False

    def set_axes(self, plot: PlotWidget) -> None:
        """Latency over counts or over time."""
        plot.set_x_formatter(ElapsedAxis() if self.over_time else CountAxis())
        plot.set_y_formatter(LogLatencyAxis())

    def turn_axis(self) -> None:
        """Trials become time, or the other way round; the next `show` draws it."""
        self.over_time = not self.over_time
        self.border_title = "Best latency over time" if self.over_time else self.TITLE
        self.set_axes(self.plot)

    def show(self, task: TaskState | None, elapsed_secs: float) -> None:
        """Draw the task's staircase up to now."""
        points = task.best.all() if task else ()
        end = elapsed_secs if self.over_time else float(task.trials if task else 0)
        if not self.changed(task.task_id if task else None, points, round(end), self.over_time):
            return
        plot = self.begin(bool(points))
        if plot is None or task is None:
            return
        xs, ys = staircase(points, end, over_time=self.over_time)
        span = (0.0, max(xs[-1], 1.0))
        levels = [math.log10(secs) for secs in (task.untuned_secs, task.pytorch_secs) if secs is not None]
        self.room(plot, span, (*ys, *levels))
        said: list[str] = []
        for name, secs, series in (
            ("untuned", task.untuned_secs, "untuned"),
            ("PyTorch", task.pytorch_secs, "pytorch"),
        ):
            if secs is not None:
                self.level_line(plot, math.log10(secs), span, series)
                said.append(f"[{self.colour(series)}]━[/] {name} {latency(secs)}")
        plot.plot(xs, ys, line_style=self.colour("best"), hires_mode=BRAILLE)
        self.border_subtitle = "  ".join(
            [f"[{self.colour('best')}]━[/] best {latency(task.best_secs)}", *said]
        )


def staircase(
    points: tuple[BestPoint, ...], end: float, *, over_time: bool
) -> tuple[list[float], list[float]]:
    """Corners of the staircase: x in trials or seconds, y as log10 of seconds."""
    xs: list[float] = []
    ys: list[float] = []
    for point in points:
        x = point.elapsed_secs if over_time else float(point.trial)
        y = math.log10(point.best_secs)
        if ys:
            xs.append(x)
            ys.append(ys[-1])
        xs.append(x)
        ys.append(y)
    xs.append(max(end, xs[-1]))
    ys.append(ys[-1])
    return xs, ys
