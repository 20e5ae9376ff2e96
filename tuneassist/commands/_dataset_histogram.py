"""A histogram of latencies in the terminal, on a log scale, coloured by mixture component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from tuneassist.ui import format as fmt

if TYPE_CHECKING:
    from tuneassist.cost_model.mixture import Mixture

_BARS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 4
_BINS = 60
_COLOURS = ("green", "cyan", "blue", "magenta", "yellow", "red")


def print_histogram(secs: Sequence[float], mixture: Mixture | None) -> None:
    """Print the histogram of log time, and a line for each component.

    Args:
        secs: Seconds, at least one.
        mixture: What was fitted to their logs, if anything: it colours each bin by the component that is
            likeliest in its middle.
    """
    console = Console(highlight=False)
    logs = np.log(np.asarray(secs, dtype=np.float64))
    counts, edges = np.histogram(logs, bins=min(_BINS, max(console.width - 4, 10)))
    middles = (edges[:-1] + edges[1:]) / 2
    styles = ["default"] * len(counts)
    if mixture is not None:
        styles = [_COLOURS[k % len(_COLOURS)] for k in mixture.component(middles)]
    eighths = np.ceil(counts / counts.max() * _HEIGHT * 8).astype(int)
    for row in reversed(range(_HEIGHT)):
        line = Text("  ")
        for level, style in zip(np.clip(eighths - 8 * row, 0, 8), styles, strict=True):
            line.append(_BARS[level], style=style)
        console.print(line)
    console.print(Text(f"  {_axis(edges, len(counts))}", style="dim"))
    for k in range(mixture.components if mixture is not None else 0):
        assert mixture is not None
        console.print(
            Text(f"  {mixture.weights[k]:4.0%} ", style=_COLOURS[k % len(_COLOURS)]).append(
                f"around {fmt.latency(float(np.exp(mixture.means[k])))}, "
                f"within a factor of {np.exp(mixture.stds[k]):.2f}",
                style="default",
            )
        )


def _axis(edges: np.ndarray, width: int) -> str:
    """Latencies at the left, in the middle and at the right of the bins."""
    left, middle, right = (fmt.latency(float(np.exp(edges[at]))) for at in (0, len(edges) // 2, -1))
    return f"{left}{middle:^{max(width - len(left) - len(right), 0)}}{right}"
