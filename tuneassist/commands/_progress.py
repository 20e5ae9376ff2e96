"""Progress of a batch run on stderr: a live line on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

import click

from tuneassist.events import Event, RunEnded, RunStarted
from tuneassist.ui import format as fmt
from tuneassist.ui.run_state import LogLine, RunState, fold

_PLAIN_EVERY_SECS = 5.0
_FAILURES_SHOWN = 3


class Progress(Protocol):
    """Shows a run as it goes; used as a context manager around it."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, new: Sequence[Event]) -> None:
        """Take in new events and bring what is shown up to date."""
        ...

    def stopping(self, *, at_once: bool) -> None:
        """Say that a stop was asked for."""
        ...


def make_progress(*, quiet: bool) -> Progress:
    """The form that fits stderr."""
    if quiet:
        return _Null()
    return _Live() if sys.stderr.isatty() else _Plain()


class _Null:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, new: Sequence[Event]) -> None: ...

    def stopping(self, *, at_once: bool) -> None: ...


class _Folding(_Null):
    """Keeps the run's state; says what a person should know, once."""

    def __init__(self) -> None:
        self._state = RunState()
        self._said = 0.0
        self._failures = 0
        self._headed = False

    def show(self, new: Sequence[Event]) -> None:
        for event in new:
            before = self._state
            try:
                self._state = fold(self._state, event)
            except (TypeError, ValueError, AttributeError):
                continue
            if isinstance(event, RunStarted) and not self._headed:
                self._headed = True
                for line in _header(self._state):
                    self._line(line)
            if isinstance(event, RunEnded):
                continue  # The result, or the error, is printed when all is over.
            for entry in self._state.log:
                if entry not in before.log and entry.level in ("info", "warning", "error"):
                    self._say(entry)
        self._draw()

    def stopping(self, *, at_once: bool) -> None:
        self._line(
            "Stopping at once."
            if at_once
            else "Stopping after the running trial; Ctrl-C again stops at once."
        )

    def _say(self, entry: LogLine) -> None:
        """Print a line of the log; of many failed trials only the first few."""
        if entry.level == "warning" and entry.text.startswith("Trial "):
            self._failures += 1
            if self._failures > _FAILURES_SHOWN:
                return
        self._line(_log_text(entry))
        if self._failures == _FAILURES_SHOWN:
            self._line("  Further failed trials are counted; `tuneassist history trials` lists them.")

    def _line(self, text: str) -> None:
        click.echo(text, err=True)

    def _draw(self) -> None: ...


class _Plain(_Folding):
    """A line every few seconds."""

    def _draw(self) -> None:
        now = time.monotonic()
        if self._state.run_id is not None and now - self._said >= _PLAIN_EVERY_SECS:
            self._said = now
            self._line(_status(self._state))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state.trials:
            self._line(_status(self._state))


class _Live(_Folding):
    """A rich bar with the figures below it."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        self._console = Console(stderr=True)
        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"), console=self._console, transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=None, figures="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._state.trials:
            self._line(_status(self._state))

    def _line(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)

    def _draw(self) -> None:
        state = self._state
        figures = [figure for figure in _figures(state) if figure]
        self._bar.update(
            self._task, description=_phase(state) or "starting", completed=state.trials,
            total=state.trials_requested or None, figures="  ".join(figures),
        )  # fmt: skip


def _header(state: RunState) -> list[str]:
    target = dict(state.target)
    machine = dict(state.machine)
    what = ", ".join(task.name for task in state.tasks[:6]) + (" ..." if len(state.tasks) > 6 else "")
    lines = [
        f"Run {state.run_id}: {what}",
        f"  for {target.get('mcpu') or target.get('kind')} with {target.get('num-cores', '?')} cores "
        f"on {machine.get('cpu', 'this machine')}; cost model {state.cost_model}, seed {state.seed}, "
        f"{state.trials_requested} trials",
    ]
    return [*lines, f"  {state.target_note}"] if state.target_note else lines


def _log_text(line: LogLine) -> str:
    return line.text if line.level == "info" else f"{line.level}: {line.text}"


def _phase(state: RunState) -> str:
    return "resting" if state.paused else state.phase


def _status(state: RunState) -> str:
    share = f"{state.trials}/{state.trials_requested} trials"
    return "  ".join(figure for figure in (share, *_figures(state)) if figure)


def _figures(state: RunState) -> list[str]:
    counts = state.counts
    best = [task for task in state.tasks if task.best_secs]
    leading = best[0] if len(state.tasks) == 1 and best else None
    rate, eta = state.trials_per_minute, state.eta_secs
    rank = _rank_correlation(state)
    figures = [f"{counts.failed} failed" if counts.failed else ""]
    if leading is not None:
        figures.append(f"best {fmt.latency(leading.best_secs)}")
        if leading.gflops:
            peak = f" ({leading.gflops / state.peak_gflops:.0%} of peak)" if state.peak_gflops else ""
            figures.append(f"{leading.gflops:.0f} GFLOPS{peak}")
    elif len(state.tasks) > 1:
        figures.append(f"{len(best)}/{len(state.tasks)} tasks measured")
    figures.append(f"{rate:.0f} trials/min" if rate else "")
    figures.append(f"ETA {fmt.duration(eta)}" if eta is not None else "")
    figures.append(f"rank corr. {rank:.2f}" if rank is not None else "")
    return figures


def _rank_correlation(state: RunState) -> float | None:
    """Spearman's, of all predictions so far with what was measured; of the task with most trials."""
    task = max(state.tasks, key=lambda task: task.trials, default=None)
    points = task.points.all() if task is not None else ()
    if len(points) < 2:
        return None
    import numpy as np

    from tuneassist.ui.ranking import rank_figures

    predicted, measured = np.array(points, dtype=np.float64).T
    return rank_figures(predicted, measured)[0]
