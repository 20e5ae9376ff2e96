"""Axes in people's units. Logarithmic data are plotted as log10, with ticks at round latencies."""

from __future__ import annotations

import math
from typing import Protocol

from tuneassist.ui.format import count, duration, latency


class Axis(Protocol):
    """Where ticks are, and what they say."""

    def ticks(self, low: float, high: float, at_most: int) -> list[float]:
        """Tick positions between `low` and `high`."""
        ...

    def label(self, tick: float) -> str:
        """The tick in words."""
        ...


class LogLatencyAxis:
    """Ticks at 1, 2, 5 (or decades) of a latency whose log10 is plotted."""

    def ticks(self, low: float, high: float, at_most: int) -> list[float]:
        """Tick positions, as log10 of seconds."""
        decades = range(math.floor(low), math.ceil(high) + 1)
        inside: list[float] = []
        for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0,)):
            ticks = [decade + math.log10(step) for decade in decades for step in steps]
            inside = [tick for tick in ticks if low <= tick <= high]
            if len(inside) <= at_most:
                # Where the span holds no round number, its ends must do.
                return inside or [low + (high - low) * 0.1, high - (high - low) * 0.1]
        return inside[:: math.ceil(len(inside) / at_most)]

    def label(self, tick: float) -> str:
        """A latency, without trailing zeros."""
        if not -12 < tick < 12:  # zoomed out beyond any latency
            return ""
        value, unit = latency(10**tick).split(" ")
        return f"{value.rstrip('0').rstrip('.') if '.' in value else value} {unit}"


class _RoundAxis:
    """Ticks at whole multiples of 1, 2 or 5."""

    def ticks(self, low: float, high: float, at_most: int) -> list[float]:
        """Tick positions."""
        raw = max(high - low, 1e-9) / max(1, at_most - 1)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
        return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


class CountAxis(_RoundAxis):
    """Counts, such as trials."""

    def label(self, tick: float) -> str:
        """A count with its unit."""
        return count(round(tick, 6)).replace(" ", "")


class ShareAxis(_RoundAxis):
    """Coefficients such as a rank correlation."""

    def label(self, tick: float) -> str:
        """Two decimals."""
        return f"{tick:.2f}"


class ElapsedAxis(_RoundAxis):
    """Working time."""

    def label(self, tick: float) -> str:
        """A span of time."""
        return duration(tick)
