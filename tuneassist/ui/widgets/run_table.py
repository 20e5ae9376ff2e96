"""Runs, as the start screen and history list them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text

from tuneassist.storage.queries import RunRow
from tuneassist.ui import format as fmt
from tuneassist.ui.theme import SIGNS
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("Run", "id", right=True, width=7),
    Column("State", "status", width=15),
    Column("Workloads", "task_names", width=24),
    Column("Best", "best_secs", right=True, width=7),
    Column("Trials", "trials", right=True, width=9),
    Column("Started", "started_at", width=16),
    Column("Took", "", right=True, width=7),
    Column("Model", "cost_model", width=7),
    Column("Target", "target", width=20),
    Column("Note", "note", width=60),
)
_MARK = "◆ "


class RunTable(Table):
    """One row a run; those that can be continued say so."""

    def __init__(self, *, order: str = "", id: str | None = None) -> None:  # noqa: A002
        super().__init__(_COLUMNS, order=order, descending=True, id=id)

    def show_runs(self, runs: Sequence[RunRow], *, marked: Collection[int] = (), below: bool = False) -> None:
        """Show runs, alone or below those before; the marked ones bear a sign."""
        rows = [self._row(run, marked) for run in runs]
        if below:
            self.append(rows)
        else:
            self.show(rows)

    def _row(self, run: RunRow, marked: Collection[int]) -> Row:
        sign, role = SIGNS[run.state]
        state = Text(f"{sign} {run.state}", style=role)
        if run.resumable:
            state.append(" ↻")
        took = run.ended_at - run.started_at if run.ended_at else None
        return Row(
            str(run.id),
            (
                (_MARK if run.id in marked else "") + str(run.id),
                state,
                run.task_names,
                fmt.latency(run.best_secs),
                f"{run.trials}/{run.trials_requested}",
                fmt.moment(run.started_at),
                fmt.duration(took),
                run.cost_model,
                run.target,
                run.note,
            ),
        )
