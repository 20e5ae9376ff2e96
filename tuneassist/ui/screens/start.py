"""The first screen: recent runs, and where to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Button, DataTable, Static

from tuneassist import __version__
from tuneassist.records import RunSettings
from tuneassist.storage.queries import RunRow
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.widgets.run_table import RunTable

RECENT = 50
_RELOAD_SECS = 2.0


class StartScreen(BaseScreen):
    """Recent runs; Enter on "New run" is the shortest way to a tuned kernel."""

    NAME = "start"
    HELP = (
        "Recent runs are listed newest first. Enter opens one: a running run is followed, an ended one is "
        "shown as it was. ↻ marks runs that can be continued with r. Opening a run never starts work."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.quit", "Quit", show=False),
        Binding("n", "go('new_run')", "New run"),
        Binding("h", "go('history')", "History"),
        Binding("m", "go('models')", "Models"),
        Binding("c", "go('doctor')", "Doctor"),
        Binding("r", "continue_run", "Continue run"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
        Binding("left", "app.focus_previous", show=False),
    ]

    def __init__(self, *, open_running: bool = True) -> None:
        super().__init__()
        self._open_running = open_running
        self._runs: dict[int, RunRow] = {}

    def title_line(self) -> str:
        """Version and database."""
        return f" tuneassist {__version__} · {self.tune_app.services.db}"

    def compose_body(self) -> ComposeResult:
        """Buttons over the table."""
        with Horizontal(classes="buttons"):
            yield Button("New run", id="new_run", variant="primary", compact=True)
            yield Button("History", id="history", compact=True)
            yield Button("Models", id="models", compact=True)
            yield Button("Doctor", id="doctor", compact=True)
        yield Static("Reading the store …", classes="empty", markup=False)
        yield RunTable(id="runs")

    def on_mount(self) -> None:
        """Read the store now, and again from time to time."""
        self.query_one("#new_run").focus()
        self.query_one(RunTable).display = False
        self.call_after_refresh(self.reload)
        self.set_interval(_RELOAD_SECS, self.reload)

    def on_screen_resume(self) -> None:
        """A run may have ended meanwhile."""
        if self.is_mounted:
            self.reload()

    def reload(self) -> None:
        """Read recent runs."""
        if self.in_sight:
            reader = self.tune_app.services.reader
            self.in_thread(
                lambda: reader.runs(limit=RECENT), self.show_runs, group="runs", failed=self.show_fault
            )

    def show_runs(self, runs: Sequence[RunRow]) -> None:
        """Show them; open the latest run that is going on, once."""
        self._runs = {run.id: run for run in runs}
        empty, table = self.query_one(".empty", Static), self.query_one(RunTable)
        table.display = bool(runs)
        empty.display = not runs
        empty.update("No run yet. Press n (or Enter) to choose a workload and start the first one.")
        table.border_title = "Recent runs"
        table.show_runs(runs)
        if self._open_running:
            self._open_running = False
            running = next((run.id for run in runs if run.alive), None)
            if running is not None:
                self.tune_app.open_run(running)

    def show_fault(self, error: Exception) -> None:
        """The store can't be read: say so where the runs would be."""
        self.query_one(RunTable).display = False
        empty = self.query_one(".empty", Static)
        empty.display = True
        empty.update(str(error))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Go there."""
        self.action_go(event.button.id or "")

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the run."""
        key = self.query_one(RunTable).current_key
        if key is not None:
            self.tune_app.open_run(int(key))

    def action_go(self, where: str) -> None:
        """Open one of the app's screens."""
        {
            "new_run": self.tune_app.open_new_run,
            "history": self.tune_app.open_history,
            "models": self.tune_app.open_models,
            "doctor": self.tune_app.open_doctor,
        }[where]()

    def action_continue_run(self) -> None:
        """Start an engine on the run under the cursor, where it can be continued."""
        key = self.query_one(RunTable).current_key
        run = self._runs.get(int(key)) if key else None
        if run is None or not run.resumable:
            self.notify(
                "This run can't be continued: it is done, or an engine works on it.", severity="warning"
            )
        else:
            self.tune_app.start_run(RunSettings(), resume_run_id=run.id)
