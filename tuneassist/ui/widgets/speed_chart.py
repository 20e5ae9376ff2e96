"""Throughput over time, and where the time goes."""

from __future__ import annotations

from tuneassist.ui.format import duration, number
from tuneassist.ui.raster import Raster
from tuneassist.ui.run_state import ProgressPoint, RunState
from tuneassist.ui.widgets.axes import CountAxis, ElapsedAxis
from tuneassist.ui.widgets.chart import Chart, Series, view_of

_NAMES = 9
"""Columns of a phase's name."""


class SpeedChart(Chart):
    """Trials a minute over working time, beside bars of the time by phase."""

    TITLE = "Trials a minute, and time by phase"
    EMPTY = "No trial has ended yet."

    x_axis = ElapsedAxis()
    y_axis = CountAxis()

    _phases: tuple[tuple[str, float], ...] = ()

    def show(self, state: RunState) -> None:
        """Draw the run's throughput and phases."""
        rates = rate_series(state.progress.all())
        phases = state.phase_secs()
        if not self.changed(rates, tuple((name, round(secs)) for name, secs in phases)):
            return
        self._phases = phases
        if not rates:
            self.clear()
            return
        xs, ys = [x for x, _ in rates], [y for _, y in rates]
        span = (0.0, xs[-1])
        self.put(
            [Series("quiet", span, (0.0, 0.0)), Series("measured", xs, ys)],
            view_of(span, (0.0, max(ys))),
            f"now {number(state.trials_per_minute, 1)} a minute",
        )

    def draw(self, raster: Raster) -> None:
        """The phases stand right of the plot."""
        room = max(28, raster.width * 2 // 5)
        self.draw_plot(raster, raster.width - room)
        bars = phase_bars(self._phases, room - 2)
        for y, (name, bar, share) in enumerate(bars[: raster.height - 1], 1):
            x = raster.width - room + 1
            raster.text(x, y, f"{name:<{_NAMES}}")
            raster.text(x + _NAMES, y, "━" * bar, self.colour("measured"))
            raster.text(x + _NAMES + bar + 1, y, share)


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


def phase_bars(phases: tuple[tuple[str, float], ...], width: int) -> list[tuple[str, int, str]]:
    """(name, length of its bar, share and time) of each phase, longest first, within `width` columns."""
    known = sorted(
        ((name[: _NAMES - 1], secs) for name, secs in phases if secs > 0), key=lambda item: -item[1]
    )
    total = sum(secs for _, secs in known)
    bars = []
    for name, secs in known:
        share = f"{secs / total:4.0%} {duration(secs)}"
        room = max(1, width - _NAMES - 1 - len(share))
        bars.append((name, max(1, round(room * secs / known[0][1])), share))
    return bars
