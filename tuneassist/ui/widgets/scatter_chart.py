"""Predicted against measured latency."""

from __future__ import annotations

import numpy as np

from tuneassist.ui.format import number
from tuneassist.ui.ranking import rank_figures
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.axes import LogLatencyAxis
from tuneassist.ui.widgets.chart import Chart, Series, view_of


class ScatterChart(Chart):
    """Log-log scatter with the diagonal; the newest round stands out."""

    TITLE = "Predicted ↑ against measured →"
    EMPTY = (
        "No valid trial has a prediction yet.\nThe cost model predicts every candidate before it is measured."
    )

    x_axis = LogLatencyAxis()
    y_axis = LogLatencyAxis()

    def show(self, task: TaskState | None) -> None:
        """Draw the task's points."""
        points = task.points.all() if task else ()
        newest = task.newest if task else ()
        if not self.changed(task.task_id if task else None, points, newest):
            return
        if task is None or not points:
            self.clear()
            return
        logs = np.log10(np.array(points, dtype=np.float64))
        new = np.log10(np.array(newest, dtype=np.float64)).reshape(-1, 2)
        predicted, measured = logs[:, 0], logs[:, 1]
        ends = (float(logs.min()), float(logs.max()))
        rank, pairs = rank_figures(predicted, measured)
        thinned = f" of {task.points.seen}" if task.points.seen > len(points) else ""
        self.put(
            [
                Series("quiet", ends, ends),
                Series("measured", measured, predicted, "."),
                Series("newest", new[:, 1], new[:, 0], "◆"),
            ],
            view_of(ends, ends),
            f"{len(points)}{thinned} trials · rank ρ {number(rank)} · pairs {number(pairs)}"
            f" · [$series-newest]◆[/] round {task.round}",
        )
