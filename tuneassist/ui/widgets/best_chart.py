"""Best latency over trials or time, with the latencies to beat."""

from __future__ import annotations

import math

from tuneassist.ui.format import latency
from tuneassist.ui.task_state import BestPoint, TaskState
from tuneassist.ui.widgets.axes import Axis, CountAxis, ElapsedAxis, LogLatencyAxis
from tuneassist.ui.widgets.chart import Chart, Series, view_of


class BestChart(Chart):
    """Staircase of the best latency; `over_time` chooses the horizontal axis."""

    TITLE = "Best latency over trials"
    EMPTY = "No valid trial yet.\nThe first one starts this curve."

    over_time = False

    x_axis: Axis = CountAxis()
    y_axis = LogLatencyAxis()

    def turn_axis(self) -> None:
        """Trials become time, or the other way round; the next `show` draws it."""
        self.over_time = not self.over_time
        self.border_title = "Best latency over time" if self.over_time else self.TITLE
        self.x_axis = ElapsedAxis() if self.over_time else CountAxis()

    def show(self, task: TaskState | None, elapsed_secs: float) -> None:
        """Draw the task's staircase up to now."""
        points = task.best.all() if task else ()
        end = elapsed_secs if self.over_time else float(task.trials if task else 0)
        baselines = (
            ("untuned", "untuned", task.untuned_secs if task else None),
            ("PyTorch", "pytorch", task.pytorch_secs if task else None),
        )
        if not self.changed(task.task_id if task else None, points, round(end), self.over_time, baselines):
            return
        if task is None or not points:
            self.clear()
            return
        xs, ys = staircase(points, end, over_time=self.over_time)
        span = (0.0, max(xs[-1], 1.0))
        levels = [(words, name, secs) for words, name, secs in baselines if secs is not None]
        heights = [math.log10(secs) for _, _, secs in levels]
        series = [
            Series(name, span, (height,) * 2) for (_, name, _), height in zip(levels, heights, strict=True)
        ]
        said = [f"[$series-best]━[/] best {latency(task.best_secs)}"]
        said += [f"[$series-{name}]━[/] {words} {latency(secs)}" for words, name, secs in levels]
        self.put([*series, Series("best", xs, ys)], view_of(span, (*ys, *heights)), "  ".join(said))


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
