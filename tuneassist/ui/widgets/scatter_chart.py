"""Predicted against measured latency."""

from __future__ import annotations

import numpy as np
from textual_plot import PlotWidget

from tuneassist.ui.format import number
from tuneassist.ui.ranking import rank_figures
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.chart import BRAILLE, Chart, LogLatencyAxis


class ScatterChart(Chart):
    """Log-log scatter with the diagonal; the newest round stands out."""

    TITLE = "Predicted ↑ against measured →"
    EMPTY = (
        "No valid trial has a prediction yet.\nThe cost model predicts every candidate before it is measured."
    )

    def set_axes(self, plot: PlotWidget) -> None:
        """Both axes are latencies."""
        plot.set_x_formatter(LogLatencyAxis())
        plot.set_y_formatter(LogLatencyAxis())

    def show(self, task: TaskState | None) -> None:
        """Draw the task's points."""
        points = task.points.all() if task else ()
        newest = task.newest if task else ()
        if not self.changed(task.task_id if task else None, points, newest):
            return
        plot = self.begin(bool(points))
        if plot is None or task is None:
            return
        logs = np.log10(np.array(points, dtype=np.float64))
        predicted, measured = logs[:, 0], logs[:, 1]
        low, high = float(logs.min()), float(logs.max())
        ends = (low, high)
        self.room(plot, ends, ends)
        plot.plot(ends, ends, line_style=self.colour("quiet"), hires_mode=BRAILLE)
        plot.scatter(measured, predicted, marker_style=self.colour("measured"), hires_mode=BRAILLE)
        if newest:
            new = np.log10(np.array(newest, dtype=np.float64))
            plot.scatter(new[:, 1], new[:, 0], marker="◆", marker_style=self.colour("newest"))
        rank, pairs = rank_figures(predicted, measured)
        thinned = f" of {task.points.seen}" if task.points.seen > len(points) else ""
        self.border_subtitle = (
            f"{len(points)}{thinned} trials · rank ρ {number(rank)} · pairs {number(pairs)}"
            f" · [{self.colour('newest')}]◆[/] round {task.round}"
        )
