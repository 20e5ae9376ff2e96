"""Runs, as the start screen and history list them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text

from tuneassist.storage.queries import RunRow
from tuneassist.ui import format as fmt
from tuneassist.ui.theme import SIGNS
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("Run", "id", right=True),
    Column("State", "status", width=15),
    Column("Workloads", "task_names"),
    Column("Best", "best_secs", right=True),
    Column("Trials", "trials", right=True),
    Column("Started", "started_at"),
    Column("Took", "", right=True),
    Column("Model", "cost_model"),
    Column("Target", "target"),
    Column("Note", "note"),
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
        state = Text(f"{sign} {run.state}", style=self.app.theme_variables.get(role, ""))
        if run.resumable:
            state.append(" ↻")
        names = fmt.plain(run.task_names)
        room = 24 if self.app.size.width < 110 else 48
        if len(names) > room:
            names = f"{names[: room - 1]}…"
        took = run.ended_at - run.started_at if run.ended_at else None
        return Row(
            str(run.id),
            (
                (_MARK if run.id in marked else "") + str(run.id),
                state,
                names,
                fmt.latency(run.best_secs),
                f"{run.trials}/{run.trials_requested}",
                fmt.moment(run.started_at),
                fmt.duration(took),
                run.cost_model,
                run.target,
                run.note,
            ),
        )
