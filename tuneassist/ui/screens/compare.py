"""Runs side by side: their best-latency curves overlaid, their tasks in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from tuneassist.records import Task
from tuneassist.storage.queries import RunRow
from tuneassist.ui import format as fmt
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.services import Reader
from tuneassist.ui.widgets.curves_chart import Curve, CurvesChart
from tuneassist.ui.widgets.table import Column, Row, Table

MAX_RUNS = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """One run with its tasks and the curve of each."""

    run: RunRow
    tasks: tuple[Task, ...]
    curves: tuple[tuple[tuple[int, float, float], ...], ...]


class CompareScreen(BaseScreen):
    """Overlaid curves of one workload, and the best of every workload by run."""

    NAME = "compare"
    HELP = (
        "Best latency of each run over trials or time (t), one workload at a time: the one under the cursor. "
        "The ratio is to the first run; above 1× is faster."
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("t", "axis", "Trials/time")]

    def __init__(self, run_ids: tuple[int, ...]) -> None:
        super().__init__()
        self._run_ids = run_ids[:MAX_RUNS]
        self._compared: tuple[Compared, ...] = ()
        self._over_time = False

    def title_line(self) -> str:
        """The runs."""
        return f" tuneassist · compare runs {', '.join(map(str, self._run_ids))}"

    def compose_body(self) -> ComposeResult:
        """Chart over table."""
        columns = [Column("Workload", width=28)]
        for run_id in self._run_ids:
            columns += [Column(f"Run {run_id}", right=True), Column(f"at trial ({run_id})", right=True)]
            if run_id != self._run_ids[0]:
                columns.append(Column(f"{run_id} vs {self._run_ids[0]}", right=True))
        with Container(id="compare"):
            yield CurvesChart(id="curves")
            yield Table(columns, id="compared")

    def on_mount(self) -> None:
        """Read the runs."""
        self.query_one(Table).focus()
        reader, run_ids = self.tune_app.services.reader, self._run_ids
        self.in_thread(
            lambda: tuple(read_compared(reader, run_id) for run_id in run_ids),
            self.show_compared,
            group="runs",
        )

    def show_compared(self, compared: tuple[Compared, ...]) -> None:
        """Fill the table; the chart follows its cursor."""
        self._compared = compared
        names = dict.fromkeys(task.name for one in compared for task in one.tasks)
        self.query_one(Table).show([self._row(name) for name in names])
        self.draw()

    def on_data_table_row_highlighted(self) -> None:
        """Another workload."""
        self.draw()

    def action_axis(self) -> None:
        """Trials, or time."""
        self._over_time = not self._over_time
        self.draw()

    def draw(self) -> None:
        """Overlay the curves of the workload under the cursor."""
        name = self.query_one(Table).current_key
        curves = [
            Curve(f"run {one.run.id}", curve, one.run.trials, (one.run.ended_at or 0) - one.run.started_at)
            for one in self._compared
            for task, curve in zip(one.tasks, one.curves, strict=True)
            if task.name == name and curve
        ]
        self.query_one(CurvesChart).show(name or "", tuple(curves), over_time=self._over_time)

    def _row(self, name: str) -> Row:
        cells: list[str] = [name]
        first: float | None = None
        for number, one in enumerate(self._compared):
            curve = next((c for t, c in zip(one.tasks, one.curves, strict=True) if t.name == name), ())
            best = curve[-1][2] if curve else None
            cells += [fmt.latency(best), str(curve[-1][0]) if curve else fmt.NONE]
            if number == 0:
                first = best
            else:
                cells.append(fmt.ratio(first / best if first and best else None))
        return Row(name, tuple(cells))


def read_compared(reader: Reader, run_id: int) -> Compared:
    """Read one run. Raises `UsageError` if there is none."""
    tasks = tuple(reader.tasks(run_id))
    return Compared(reader.run_row(run_id), tasks, tuple(tuple(reader.best_curve(task.id)) for task in tasks))
