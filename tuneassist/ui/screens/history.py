"""All runs: filter, sort, open, replay, note, compare, delete. Looking never starts work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Input, Static

from tuneassist.records import RunSettings
from tuneassist.storage.queries import RunRow
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.screens.dialogs import Prompt, Question
from tuneassist.ui.widgets.run_table import RunTable
from tuneassist.ui.widgets.table import Table

_PAGE = 100


class HistoryScreen(BaseScreen):
    """Runs, page by page."""

    NAME = "history"
    HELP = (
        "Every run in the store. The filter looks in workloads, notes, targets and states; * and ? are "
        "wildcards. Space marks runs to compare. Enter shows a run as it ended, p plays it again. Nothing "
        "here starts work but r, which continues the run under the cursor."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("p", "replay", "Replay"),
        Binding("space", "mark", "Mark"),
        Binding("c", "compare", "Compare"),
        Binding("n", "note", "Note"),
        Binding("x,delete", "delete", "Delete"),
        Binding("r", "continue_run", "Continue run", show=False),
        Binding("e", "export", "Copy export command", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[int, RunRow] = {}
        self._marked: list[int] = []

    def compose_body(self) -> ComposeResult:
        """Filter over the table."""
        yield Input(placeholder="filter by workload, note, target or state", compact=True, id="filter")
        yield Static(classes="empty", markup=False)
        yield RunTable(order="id", id="runs")

    def on_mount(self) -> None:
        """Read the first page."""
        self.query_one(RunTable).focus()
        self.query_one(".empty").display = False
        self.reload()

    def on_screen_resume(self) -> None:
        """Something may have changed."""
        if self._runs:
            self.reload()

    def reload(self, offset: int = 0) -> None:
        """Read a page with the filter and order of the moment."""
        table, pattern = self.query_one(RunTable), self.query_one(Input).value
        reader, order, descending = self.tune_app.services.reader, table.order, table.descending
        limit = _PAGE if offset else max(_PAGE, min(table.row_count, 10 * _PAGE))

        def show(runs: Sequence[RunRow]) -> None:
            if not offset:
                self._runs = {}
            self._runs.update((run.id, run) for run in runs)
            table.show_runs(runs, marked=self._marked, below=bool(offset))
            self.show_empty(pattern)

        self.in_thread(
            lambda: reader.runs(
                pattern=pattern, order=order, descending=descending, limit=limit, offset=offset
            ),
            show,
            group="runs",
            failed=self.show_fault,
        )

    def show_empty(self, pattern: str) -> None:
        """Say why there is nothing, where there is nothing."""
        table, empty = self.query_one(RunTable), self.query_one(".empty", Static)
        table.display = bool(self._runs)
        empty.display = not self._runs
        table.border_title = f"{len(self._runs)} runs" + ("" if len(self._runs) % _PAGE else ", more below")
        marks = f"marked: {', '.join(map(str, self._marked))}" if self._marked else ""
        table.border_subtitle = marks
        if pattern.strip():
            empty.update(f"No run matches {pattern!r}. Change the filter, or clear it.")
        else:
            empty.update("No run is stored yet. escape, then n starts the first one.")

    def show_fault(self, error: Exception) -> None:
        """The store can't be read."""
        self.query_one(RunTable).display = False
        empty = self.query_one(".empty", Static)
        empty.display = True
        empty.update(str(error))

    @property
    def current(self) -> RunRow | None:
        """The run under the cursor."""
        key = self.query_one(RunTable).current_key
        return self._runs.get(int(key)) if key else None

    @on(Input.Changed, "#filter")
    def filter_changed(self) -> None:
        """Filter as typed."""
        self.reload()

    @on(Input.Submitted, "#filter")
    def filter_done(self) -> None:
        """Back to the table."""
        self.query_one(RunTable).focus()

    @on(Table.Sorted)
    def sorted_anew(self) -> None:
        """The store sorts."""
        self.reload()

    @on(Table.More)
    def more(self, message: Table.More) -> None:
        """The next page."""
        if message.offset >= _PAGE:
            self.reload(message.offset)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the run."""
        if self.current is not None:
            self.tune_app.open_run(self.current.id)

    def action_filter(self) -> None:
        """Type a filter."""
        self.query_one(Input).focus()

    def action_replay(self) -> None:
        """Play the run from its beginning; one that is going on is followed instead."""
        if self.current is not None:
            self.tune_app.open_run(self.current.id, replay=True)

    def action_mark(self) -> None:
        """Mark the run for comparison, or take the mark away."""
        run = self.current
        if run is not None:
            if run.id in self._marked:
                self._marked.remove(run.id)
            else:
                self._marked.append(run.id)
            self.query_one(RunTable).show_runs(list(self._runs.values()), marked=self._marked)
            self.show_empty(self.query_one(Input).value)

    def action_compare(self) -> None:
        """Compare the marked runs; with one mark or none, add the run under the cursor."""
        chosen = list(self._marked)
        if self.current is not None and len(chosen) < 2 and self.current.id not in chosen:
            chosen.append(self.current.id)
        if len(chosen) < 2:
            self.notify("Mark two or more runs with space, then compare them.", severity="warning")
        else:
            self.tune_app.open_compare(tuple(chosen))

    def action_note(self) -> None:
        """Write a note, which also serves as the run's name."""
        run = self.current
        if run is None:
            return

        def answered(text: str | None) -> None:
            if text is not None:
                self._command(("history", "note", str(run.id), "--", text), f"Run {run.id} has its note.")

        self.app.push_screen(Prompt(f"Note of run {run.id}:", run.note), answered)

    def action_delete(self) -> None:
        """Delete the run, after a question."""
        run = self.current
        if run is None:
            return
        if run.alive:
            self.notify("An engine works on this run. Stop it first.", severity="warning")
            return
        text = f"Delete run {run.id} ({run.task_names}) and its {run.trials} trials? This can't be undone."

        def answered(answer: str | None) -> None:
            if answer == "delete":
                self._marked = [run_id for run_id in self._marked if run_id != run.id]
                self._command(("history", "delete", str(run.id), "--yes"), f"Run {run.id} is deleted.")

        self.app.push_screen(Question(text, [("delete", "Delete")]), answered)

    def action_continue_run(self) -> None:
        """Start an engine on the run, where it can be continued."""
        run = self.current
        if run is None or not run.resumable:
            self.notify(
                "This run can't be continued: it is done, or an engine works on it.", severity="warning"
            )
        else:
            self.tune_app.start_run(RunSettings(), resume_run_id=run.id)

    def action_export(self) -> None:
        """Copy the command that exports the run's trials."""
        if self.current is not None:
            self.tune_app.copy(
                f"tuneassist history trials {self.current.id} --csv --db {self.tune_app.services.db}"
            )

    def _command(self, args: tuple[str, ...], done: str) -> None:
        commands = self.tune_app.services.commands

        def after(_: str) -> None:
            self.notify(done, timeout=3, markup=False)
            self.reload()

        self.in_thread(lambda: commands.run(*args), after, group="command")
