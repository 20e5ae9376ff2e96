"""Figures of an evaluation and of a data set, as PNG, SVG or PDF files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.mixture import Mixture
from tuneassist.errors import UsageError

Array = npt.NDArray[np.float64]

FORMATS = ("png", "svg", "pdf")
_PANEL_INCHES = (3.4, 2.9)
_WIDEST = 4
"""Panels in a row."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """One panel: a workload that was held out.

    Attributes:
        workload: Its name.
        predicted: (n,) seconds.
        measured: (n,) seconds.
        component: (n,) number of the mixture component of each, which colours it; None: one colour.
        note: Shown under the name, such as a figure.
    """

    workload: str
    predicted: Array
    measured: Array
    component: npt.NDArray[np.int64] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One panel: the log times of a workload and what was fitted to them.

    Attributes:
        workload: Its name.
        secs: (n,) seconds of its valid trials.
        mixture: None where nothing could be fitted.
    """

    workload: str
    secs: Array
    mixture: Mixture | None


def plot_predictions(panels: Sequence[Predicted], path: Path, *, title: str = "") -> None:
    """Plot predicted against measured, log-log, one panel a workload.

    Raises:
        UsageError: There is nothing to plot, or the file can't be written.
    """
    with _figure(len(panels), path, title) as axes:
        for ax, panel in zip(axes, panels, strict=True):
            usable = (panel.predicted > 0) & (panel.measured > 0)
            measured, predicted = panel.measured[usable] * 1e3, panel.predicted[usable] * 1e3
            colours = "C0" if panel.component is None else [f"C{k % 10}" for k in panel.component[usable]]
            ax.scatter(measured, predicted, s=7, alpha=0.6, c=colours, linewidths=0)
            if usable.any():
                ends = [min(measured.min(), predicted.min()), max(measured.max(), predicted.max())]
                ax.plot(ends, ends, color="black", linewidth=0.8)
                ax.set(xscale="log", yscale="log")
            ax.set(xlabel="measured, ms", ylabel="predicted, ms")
            ax.set_title("\n".join(filter(None, (panel.workload, panel.note))), fontsize=8)


def plot_ablation(
    means: Mapping[str, float], errors: Mapping[str, float], path: Path, *, metric: str, title: str = ""
) -> None:
    """Plot a bar for each variant, in the order given, with its standard error.

    Args:
        means: Each variant's figure.
        errors: Its standard error; a variant may be absent.
        path: The file to write.
        metric: Names the figure.
        title: Of the plot.

    Raises:
        UsageError: There is nothing to plot, or the file can't be written.
    """
    with _figure(min(len(means), 1), path, title, size=(6.4, 0.9 + 0.32 * len(means))) as axes:
        names, values = list(means), list(means.values())
        bars = axes[0].barh(names, values, xerr=[errors.get(name, 0.0) for name in names], capsize=2)
        axes[0].bar_label(bars, fmt="%.3f", padding=4, fontsize=8)
        axes[0].invert_yaxis()
        # Variants differ in the second digit: bars from zero would all look alike.
        spread = max(max(values) - min(values), 1e-3)
        axes[0].set_xlim(min(values) - 0.5 * spread, max(values) + 0.35 * spread)
        axes[0].set_xlabel(metric)


def plot_distributions(panels: Sequence[Distribution], path: Path, *, title: str = "") -> None:
    """Plot the histogram of log time of each workload, with the mixture and the normal distribution.

    Raises:
        UsageError: There is nothing to plot, or the file can't be written.
    """
    with _figure(len(panels), path, title) as axes:
        for number, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
            _distribution(ax, panel, legend=number == 0)


def _distribution(ax: Any, panel: Distribution, *, legend: bool) -> None:
    logs = np.log10(panel.secs * 1e3)
    ax.hist(logs, bins=min(40, max(8, len(logs) // 8)), density=True, color="0.8")
    ax.set_title(panel.workload, fontsize=8)
    ax.set_xlabel("latency, ms (log)")
    ax.xaxis.set_major_formatter(lambda value, _: f"{10**value:.3g}")
    if panel.mixture is None:
        return
    at = np.linspace(logs.min(), logs.max(), 400)
    # Densities over natural logs become those over powers of ten.
    parts = panel.mixture.densities(at * math.log(10) - math.log(1e3)) * math.log(10)
    normal = np.exp(-0.5 * ((at - logs.mean()) / logs.std()) ** 2) / (logs.std() * math.sqrt(2 * math.pi))
    for k in range(parts.shape[1]):
        ax.plot(at, parts[:, k], color=f"C{k % 10}", linewidth=0.8)
    ax.plot(at, parts.sum(axis=1), color="black", linewidth=1.2, label=f"mixture of {parts.shape[1]}")
    ax.plot(at, normal, color="black", linewidth=0.8, linestyle="--", label="normal")
    if legend:
        ax.legend(fontsize=6, frameon=False)


@contextmanager
def _figure(
    panels: int, path: Path, title: str, *, size: tuple[float, float] | None = None
) -> Iterator[list[Any]]:
    """Axes for so many panels; what is drawn on them is written to the file in the end."""
    if not panels:
        raise UsageError(
            f"There is nothing to plot into {path}.", remedy="Measure something first, or name other data."
        )
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(
            f"{path} is no kind of picture that can be written.",
            remedy=f"Let its name end in {', '.join(f'.{name}' for name in FORMATS)}.",
        )
    # No display is needed, and pyplot's global state is left alone.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(panels, _WIDEST)
    rows = -(-panels // columns)
    figure = Figure(
        figsize=size or (_PANEL_INCHES[0] * columns, _PANEL_INCHES[1] * rows), layout="constrained"
    )
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.set_axis_off()
    yield axes[:panels]
    figure.suptitle(title, fontsize=10)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UsageError(
            f"The picture {path} can't be written: {error.strerror or error}",
            remedy="Name a file in a folder that exists and can be written to.",
        ) from error
