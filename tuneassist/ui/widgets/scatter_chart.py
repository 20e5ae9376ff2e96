"""Predicted against measured latency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from textual_plot import PlotWidget

from tuneassist.ui.format import number
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.chart import BRAILLE, Chart, LogLatencyAxis

Floats = NDArray[np.float64]


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


def rank_figures(predicted: Floats, measured: Floats) -> tuple[float | None, float | None]:
    """Spearman's rank correlation and pairwise accuracy of predictions, both (num_trials,).

    Pairs with equal measurements are left out. Both are None where they are undefined.
    """
    if len(predicted) < 2:
        return None, None
    ranks = [_ranks(values) for values in (predicted, measured)]
    spread = [float(rank.std()) for rank in ranks]
    rho = None
    if min(spread) > 0:
        rho = float(
            np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())) / (spread[0] * spread[1])
        )
    upper = np.triu_indices(len(predicted), k=1)
    order = np.sign(measured[upper[0]] - measured[upper[1]])
    said = np.sign(predicted[upper[0]] - predicted[upper[1]])
    decided = order != 0
    pairs = float(np.mean(order[decided] == said[decided])) if decided.any() else None
    return rho, pairs


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, equal values sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts + 1) / 2)[inverse]
    return ranks
