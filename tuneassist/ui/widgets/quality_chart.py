"""How well the cost model ordered each round."""

from __future__ import annotations

from textual_plot import PlotWidget

from tuneassist.ui.format import number
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.chart import BRAILLE, Chart, CountAxis, ShareAxis


class QualityChart(Chart):
    """Rank correlation and pairwise accuracy by round; the line at 0.5 is chance for pairs."""

    TITLE = "Model quality by round"
    EMPTY = "No round has ended yet.\nEach round shows how well the model ranked it before it was measured."

    def set_axes(self, plot: PlotWidget) -> None:
        """Coefficient over rounds."""
        plot.set_x_formatter(CountAxis())
        plot.set_y_formatter(ShareAxis())

    def show(self, task: TaskState | None) -> None:
        """Draw the task's rounds."""
        points = task.quality.all() if task else ()
        if not self.changed(task.task_id if task else None, points):
            return
        rank = [(p.round, p.spearman) for p in points if p.spearman is not None]
        pairs = [(p.round, p.pairwise_accuracy) for p in points if p.pairwise_accuracy is not None]
        plot = self.begin(bool(rank or pairs))
        if plot is None:
            return
        rounds = [round_ for round_, _ in (*rank, *pairs)]
        span = (float(min(rounds)), float(max(max(rounds), min(rounds) + 1)))
        ys_all = [value for _, value in (*rank, *pairs)]
        self.room(plot, span, (*ys_all, 0.5, 1.0))
        self.level_line(plot, 0.5, span, "quiet")
        self.level_line(plot, 1.0, span, "quiet")
        for series, style, marker in ((rank, "measured", "●"), (pairs, "newest", "◆")):
            xs, ys = [float(x) for x, _ in series], [float(y) for _, y in series]
            plot.plot(xs, ys, line_style=self.colour(style), hires_mode=BRAILLE)
            if len(series) <= 40:
                plot.scatter(xs, ys, marker=marker, marker_style=self.colour(style))
        self.border_subtitle = (
            f"[{self.colour('measured')}]●[/] rank ρ {number(rank[-1][1] if rank else None)}  "
            f"[{self.colour('newest')}]◆[/] pairs {number(pairs[-1][1] if pairs else None)} (chance 0.50)"
        )
