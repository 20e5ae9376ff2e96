"""The live tuning screen: one engine, or one replay, as it goes."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import DataTable, Static

from tuneassist.storage.queries import TrialRow
from tuneassist.ui.follow import Snapshot
from tuneassist.ui.screens.dialogs import LongText
from tuneassist.ui.screens.engine import EngineScreen
from tuneassist.ui.services import Session
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.best_chart import BestChart
from tuneassist.ui.widgets.log_pane import LogPane
from tuneassist.ui.widgets.pane_bar import PaneBar
from tuneassist.ui.widgets.quality_chart import QualityChart
from tuneassist.ui.widgets.run_header import RunHeader
from tuneassist.ui.widgets.scatter_chart import ScatterChart
from tuneassist.ui.widgets.speed_chart import SpeedChart
from tuneassist.ui.widgets.table import Table
from tuneassist.ui.widgets.task_table import TaskTable
from tuneassist.ui.widgets.trial_table import FILTERS, TrialTable

PANES = (
    ("best", "Best"),
    ("scatter", "Predicted"),
    ("quality", "Quality"),
    ("speed", "Speed"),
    ("tasks", "Tasks"),
    ("trials", "Trials"),
    ("log", "Log"),
)
CHARTS = frozenset({"best", "scatter", "quality", "speed"})
TABLES = frozenset({"tasks", "trials", "log"})
REFRESH_SECS = 0.2
_PAGE = 100
_TRIALS_SECS = 1.0
"""The trial table is read again no more often than this."""


class LiveScreen(EngineScreen):
    """Follows a session until it is closed; what happens to the engine then is asked."""

    NAME = "live"
    HELP = (
        "Watches one run. The charts show one task: the one under the cursor in the task table, or the one "
        "that is being tuned. On a narrow terminal the digits choose one pane; on a wide one they enlarge a "
        "chart or choose the table. Enter on a trial opens its program, or its error; f filters by status."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "ast", "Best AST"),
        Binding("t", "axis", "Trials/time"),
        Binding("f", "filter", "Filter", show=False),
        *[
            Binding(str(number), f"pane('{pane}')", f"{label} pane", show=False)
            for number, (pane, label) in enumerate(PANES, 1)
        ],
    ]

    def __init__(self, session: Session, *, run_id: int | None = None) -> None:
        super().__init__(session, run_id=run_id)
        self._pane = "best"
        self._big = ""
        self._chosen: int | None = None
        self._filter = ""
        self._shown: Snapshot | None = None
        self._trials_at = -1
        self._title = ""
        self._stale: list[str] = []
        self._trials_read = 0.0

    def compose_body(self) -> ComposeResult:
        """Header, charts, the line of panes, tables."""
        yield RunHeader(id="run-header")
        with Container(id="charts"):
            yield BestChart(id="best")
            yield ScatterChart(id="scatter")
            yield QualityChart(id="quality")
            yield SpeedChart(id="speed")
        yield PaneBar(PANES, id="pane-bar")
        with Container(id="tables"):
            yield TaskTable(id="tasks")
            yield TrialTable(id="trials")
            yield LogPane(id="log")

    def on_mount(self) -> None:
        """Follow the session, and look at it a few times a second."""
        self.follower.start()
        self.arrange_panes()
        self.set_interval(REFRESH_SECS, self.refresh_view)

    @property
    def shown_task(self) -> TaskState | None:
        """The task that the charts show."""
        state = self.snapshot.state
        return state.task(self._chosen if self._chosen is not None else state.phase_task)

    @property
    def wide(self) -> bool:
        """Whether charts and tables are shown together."""
        return self.size.width >= 110 and self.size.height >= 30

    def refresh_view(self) -> None:
        """Show the latest snapshot in what is visible."""
        if not self.in_sight:
            return
        snapshot = self.snapshot
        self.show_header(snapshot)
        if snapshot is not self._shown:
            self._shown = snapshot
            self.mark_stale()
            self.tell_engine(snapshot)
        self.draw_next()

    def show_header(self, snapshot: Snapshot) -> None:
        """The header moves even while no event comes."""
        state = snapshot.state
        title = f" tuneassist · live · run {self.run_id or '…'} · {self.tune_app.services.db}"
        if title != self._title:
            self._title = title
            self.query_one("#title", Static).update(title, layout=False)
        idle = 0.0
        if self.engine_running and state.last_time and not snapshot.behind:
            idle = min(3600.0, max(0.0, self.tune_app.services.clock() - state.last_time))
        self.query_one(RunHeader).show(snapshot, self.shown_task, idle, self.replay_label())

    def mark_stale(self) -> None:
        """All panes want to be drawn again."""
        self._stale = [pane for pane, _ in PANES]

    def draw_next(self) -> None:
        """Draw one visible pane that wants it: a key never waits for more than one to be drawn."""
        while self._stale:
            pane = self._stale.pop(0)
            if self.visible_pane(pane):
                self.draw_pane(pane)
                return

    def draw_visible(self) -> None:
        """Draw all visible panes now."""
        while self._stale:
            self.draw_next()

    def draw_pane(self, pane: str) -> None:
        """Draw the latest snapshot in one pane."""
        state, task = self.snapshot.state, self.shown_task
        match pane:
            case "best":
                self.query_one(BestChart).show(task, state.elapsed_secs)
            case "scatter":
                self.query_one(ScatterChart).show(task)
            case "quality":
                self.query_one(QualityChart).show(task)
            case "speed":
                self.query_one(SpeedChart).show(state)
            case "tasks":
                self.query_one(TaskTable).show_state(state)
            case "log":
                self.query_one(LogPane).show(state.log)
            case "trials" if state.last_ordinal != self._trials_at:
                now = time.monotonic()
                if now - self._trials_read >= _TRIALS_SECS:
                    self._trials_at, self._trials_read = state.last_ordinal, now
                    self.load_trials()

    def visible_pane(self, pane: str) -> bool:
        """Whether the pane is on the screen."""
        return bool(self.query_one(f"#{pane}").region)

    def load_trials(self, offset: int = 0) -> None:
        """Read a page of trials from the store."""
        run_id = self.run_id
        table = self.query_one(TrialTable)
        if run_id is None:
            return
        limit = _PAGE if offset else max(_PAGE, min(table.row_count, 5 * _PAGE))
        reader, order, descending, status = (
            self.tune_app.services.reader,
            table.order,
            table.descending,
            self._filter,
        )

        def show(rows: list[TrialRow]) -> None:
            table.show_trials(rows, below=bool(offset))
            name = {"": "all trials"}.get(status, f"only {status}")
            table.border_title = f"Trials: {name} (f changes)"
            table.border_subtitle = "" if table.row_count else "no trial of this kind yet"

        self.in_thread(
            lambda: list(
                reader.trials(
                    run_id, status=status, order=order, descending=descending, limit=limit, offset=offset
                )
            ),
            show,
            group="trials",
        )

    def action_pane(self, pane: str) -> None:
        """Show a pane: alone where there is room for one; else enlarge the chart, or choose the table."""
        if self.wide and pane in CHARTS:
            self._big = "" if self._big == pane else pane
        else:
            self._pane = pane
        self.arrange_panes()
        if pane in TABLES or not self.wide:
            target = self.query_one(f"#{pane}")
            if target.focusable:
                target.focus()

    def arrange_panes(self) -> None:
        """Mark what is shown; the stylesheet does the rest."""
        table = self._pane if self._pane in TABLES else "tasks"
        alone = self._pane if not self.wide else ""
        for pane, _ in PANES:
            widget = self.query_one(f"#{pane}")
            chosen = pane == table if pane in TABLES else self._big in ("", pane)
            display(widget, pane == alone if alone else chosen)
        display(self.query_one("#charts"), not alone or alone in CHARTS)
        display(self.query_one("#tables"), not alone or alone in TABLES)
        self.set_class(bool(self._big) and self.wide, "-big")
        self.set_class(self.wide, "-both")
        names = frozenset(pane for pane, _ in PANES)
        self.query_one(PaneBar).show(alone or table, names)
        self.mark_stale()
        self.call_after_refresh(self.draw_visible)

    def on_resize(self) -> None:
        """Another size may show other panes."""
        self.arrange_panes()

    def on_screen_resume(self) -> None:
        """Catch up with what happened while another screen was on top."""
        if self.is_mounted:
            self._shown = None

    def on_pane_bar_chosen(self, message: PaneBar.Chosen) -> None:
        """A click on a pane's name."""
        self.action_pane(message.pane)

    @on(DataTable.RowHighlighted, "#tasks")
    def choose_task(self, event: DataTable.RowHighlighted) -> None:
        """The charts show the task under the cursor, once the user moved it."""
        key = self.query_one(TaskTable).current_key
        if key is not None and self.query_one(TaskTable).has_focus and len(self.snapshot.state.tasks) > 1:
            self._chosen = int(key)
            self.mark_stale()
            self.draw_visible()

    @on(DataTable.RowSelected, "#trials")
    def open_trial(self, event: DataTable.RowSelected) -> None:
        """Open the trial's program, or the whole of its error."""
        trial = self.query_one(TrialTable).current
        if trial is None:
            return
        if trial.error:
            title = f"Trial {trial.ordinal}: {trial.status.value}"
            self.app.push_screen(LongText(title, trial.error))
        else:
            self.tune_app.open_trial(trial.id)

    @on(Table.Sorted, "#trials")
    def sort_trials(self) -> None:
        """The store sorts."""
        self.load_trials()

    @on(Table.More, "#trials")
    def more_trials(self, message: Table.More) -> None:
        """The next page."""
        if message.offset >= _PAGE:
            self.load_trials(message.offset)

    @on(Table.Sorted, "#tasks")
    def sort_tasks(self) -> None:
        """The tasks are here."""
        self.query_one(TaskTable).show_state(self.snapshot.state)

    def action_axis(self) -> None:
        """Best latency over trials, or over time."""
        self.query_one(BestChart).turn_axis()
        self.draw_pane("best")

    def action_filter(self) -> None:
        """The next kind of trial."""
        self._filter = FILTERS[(FILTERS.index(self._filter) + 1) % len(FILTERS)]
        if self._pane != "trials":
            self.action_pane("trials")
        self.load_trials()

    def action_ast(self) -> None:
        """Open the program of the best trial of the task."""
        task = self.shown_task
        if task is None or task.best_trial is None or self.run_id is None:
            self.notify("No valid trial yet: there is no program to show.", severity="warning")
            return
        self.tune_app.open_trial_of(self.run_id, task.task_id, task.best_trial)


def display(widget: Widget, shown: bool) -> None:
    """Show or hide; setting what is so already would lay the screen out again."""
    if widget.display != shown:
        widget.display = shown
