"""How well the cost model ordered each round."""

from __future__ import annotations

from tuneassist.ui.format import number
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.axes import CountAxis, ShareAxis
from tuneassist.ui.widgets.chart import Chart, Series, view_of


class QualityChart(Chart):
    """Rank correlation and pairwise accuracy by round; the line at 0.5 is chance for pairs."""

    TITLE = "Model quality by round"
    EMPTY = "No round has ended yet.\nEach round shows how well the model ranked it before it was measured."

    x_axis = CountAxis()
    y_axis = ShareAxis()

    def show(self, task: TaskState | None) -> None:
        """Draw the task's rounds."""
        points = task.quality.all() if task else ()
        if not self.changed(task.task_id if task else None, points):
            return
        rank = [(p.round, p.spearman) for p in points if p.spearman is not None]
        pairs = [(p.round, p.pairwise_accuracy) for p in points if p.pairwise_accuracy is not None]
        if not rank and not pairs:
            self.clear()
            return
        rounds = [round_ for round_, _ in (*rank, *pairs)]
        span = (float(min(rounds)), float(max(max(rounds), min(rounds) + 1)))
        series = [Series("quiet", span, (level, level)) for level in (0.5, 1.0)]
        for curve, name, marker in ((rank, "measured", "●"), (pairs, "newest", "◆")):
            xs, ys = [x for x, _ in curve], [y for _, y in curve]
            series.append(Series(name, xs, ys))
            if len(curve) <= 40:
                series.append(Series(name, xs, ys, marker))
        self.put(
            series,
            view_of(span, [*(value for _, value in (*rank, *pairs)), 0.5, 1.0]),
            f"[$series-measured]●[/] rank ρ {number(rank[-1][1] if rank else None)}  "
            f"[$series-newest]◆[/] pairs {number(pairs[-1][1] if pairs else None)} (chance 0.50)",
        )
