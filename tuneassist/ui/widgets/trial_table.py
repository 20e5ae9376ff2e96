"""The trials of a run, read page by page from the store."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from tuneassist.storage.queries import TrialRow
from tuneassist.ui import format as fmt
from tuneassist.ui.theme import SIGNS
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("#", "ordinal", right=True, width=7),
    Column("Status", "status", width=15),
    Column("Measured", "best_of", right=True, width=10),
    Column("Predicted", "predicted_secs", right=True, width=11),
    Column("Off by", "", right=True, width=6),
    Column("Round", "round", right=True, width=7),
    Column("Build", "build_secs", right=True, width=7),
    Column("Source", "source", width=10),
    Column("Task", "task_name", width=24),
    Column("Error", width=80),
)
"""Fixed widths: measuring every cell would cost more than all the rest."""

FILTERS = ("", "ok", "failed", "build_error", "build_timeout", "run_error", "run_timeout", "duplicate")
"""What `f` goes through; empty is all."""


class TrialTable(Table):
    """One row a trial, newest first by default."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(_COLUMNS, order="ordinal", descending=True, id=id)
        self._trials: dict[str, TrialRow] = {}

    @property
    def current(self) -> TrialRow | None:
        """The trial under the cursor."""
        return self._trials.get(self.current_key or "")

    def show_trials(self, trials: Sequence[TrialRow], *, below: bool = False) -> None:
        """Show a page, alone or below the pages before it."""
        rows = [self._row(trial) for trial in trials]
        if not below:
            self._trials = {}
        self._trials.update((str(trial.id), trial) for trial in trials)
        if below:
            self.append(rows)
        else:
            self.show(rows)

    def _row(self, trial: TrialRow) -> Row:
        sign, role = SIGNS[trial.status.value]
        status = Text(f"{sign} {trial.status.value}", style=role)
        if trial.correct is False:
            status = Text("✗ wrong result", style="error")
        off = trial.predicted_secs / trial.best_of if trial.predicted_secs and trial.best_of else None
        error = (trial.error or "").strip().splitlines()
        return Row(
            str(trial.id),
            (
                str(trial.ordinal),
                status,
                fmt.latency(trial.best_of),
                fmt.latency(trial.predicted_secs),
                fmt.ratio(off),
                str(trial.round),
                fmt.duration(trial.build_secs)
                if (trial.build_secs or 0) >= 10
                else fmt.latency(trial.build_secs),
                trial.source,
                trial.task_name,
                error[0] if error else "",
            ),
        )
