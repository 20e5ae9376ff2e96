"""Throughput over time, and where the time goes."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static
from textual_plot import PlotWidget

from tuneassist.ui.format import duration, number
from tuneassist.ui.run_state import ProgressPoint, RunState
from tuneassist.ui.widgets.chart import BRAILLE, Chart, CountAxis, ElapsedAxis


class SpeedChart(Chart):
    """Trials a minute over working time, beside bars of the time by phase."""

    TITLE = "Trials a minute, and time by phase"
    EMPTY = "No trial has ended yet."

    def compose(self) -> ComposeResult:
        """The phases beside the plot."""
        yield from super().compose()
        yield Static(id="phases", markup=False)

    def set_axes(self, plot: PlotWidget) -> None:
        """Counts over time."""
        plot.set_x_formatter(ElapsedAxis())
        plot.set_y_formatter(CountAxis())

    def show(self, state: RunState) -> None:
        """Draw the run's throughput and phases."""
        phases = self.query_one("#phases", Static)
        phases.update(
            phase_bars(state.phase_secs(), max(8, phases.content_size.width), self.colour("measured")),
            layout=False,
        )
        rates = rate_series(state.progress.all())
        if not self.changed(rates):
            return
        plot = self.begin(bool(rates))
        if plot is None:
            return
        self.room(plot, (0.0, rates[-1][0]), (0.0, max(rate for _, rate in rates)))
        plot.plot([0.0, rates[-1][0]], [0.0, 0.0], line_style=self.colour("quiet"), hires_mode=BRAILLE)
        plot.plot(
            [x for x, _ in rates],
            [y for _, y in rates],
            line_style=self.colour("measured"),
            hires_mode=BRAILLE,
        )
        self.border_subtitle = f"now {number(state.trials_per_minute, 1)} a minute"


def rate_series(points: tuple[ProgressPoint, ...], bins: int = 60) -> tuple[tuple[float, float], ...]:
    """(seconds, trials a minute) of equal spans of working time."""
    if len(points) < 2 or points[-1].elapsed_secs <= 0:
        return ()
    width = points[-1].elapsed_secs / min(bins, len(points))
    rates: list[tuple[float, float]] = []
    before, edge = ProgressPoint(0.0, points[0].trials - 1), width
    for point in points:
        if point.elapsed_secs >= edge - 1e-9:
            secs = point.elapsed_secs - before.elapsed_secs
            if secs > 0:
                rates.append((point.elapsed_secs, (point.trials - before.trials) / secs * 60))
            before = point
            edge = point.elapsed_secs + width
    return tuple(rates)


def phase_bars(phases: tuple[tuple[str, float], ...], width: int, colour: str) -> Text:
    """One line a phase, longest first: name, bar, time."""
    text = Text(no_wrap=True, overflow="ellipsis")
    total = sum(secs for _, secs in phases)
    longest = max((secs for _, secs in phases), default=0.0)
    for name, secs in sorted(phases, key=lambda item: -item[1]):
        if secs <= 0:
            continue
        share = f"{secs / total:4.0%} {duration(secs)}"
        room = max(1, width - 9 - len(share) - 1)
        text.append(f"{name[:8]:<9}")
        text.append("━" * max(1, round(room * secs / longest)), style=colour)
        text.append(f" {share}\n")
    return text
