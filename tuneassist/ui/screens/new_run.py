"""The form for a new run. Its defaults make Enter enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Grid, Horizontal, Vertical
from textual.widgets import Button, DataTable, Input, Label, Static

from tuneassist.errors import TuneAssistError, UsageError
from tuneassist.records import COST_MODELS, RunSettings, WorkloadInfo
from tuneassist.ui.run_form import RunForm, command_line, estimate, trials_per_minute
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.services import KnownBest
from tuneassist.ui.widgets.table import Table
from tuneassist.ui.widgets.workload_table import WorkloadTable

_FIELDS = ("target", "trials", "time_budget", "cost_model", "seed")
_LABELS = {
    "target": "Target",
    "trials": "Trials",
    "time_budget": "Time budget",
    "cost_model": "Cost model",
    "seed": "Seed",
}
_HINTS = {
    "target": "native, a TVM tag, JSON, rpc:KEY@HOST:PORT/TARGET",
    "trials": "over all workloads",
    "time_budget": "none, or 90s, 10m, 2h",
    "cost_model": "gnn, gcn, xgb, random, or a file",
    "seed": "0",
}


class NewRunScreen(BaseScreen):
    """Workloads on one side, settings on the other, the equivalent command below."""

    NAME = "new run"
    HELP = (
        "Enter starts with the workloads marked by space, or the one under the cursor. The search also takes "
        "an operator with parameters (matmul:m=512,n=512,k=512), a file (kernels.py:func, mod.json), "
        "or a whole model (model:resnet18). m goes through the cost models, c copies the command."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "start", "Start", priority=True),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("space", "mark", "Mark"),
        Binding("m", "next_model", "Cost model"),
        Binding("c", "copy_command", "Copy command"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._catalogue: list[WorkloadInfo] = []
        self._typed: WorkloadInfo | None = None
        self._known: Mapping[str, KnownBest] = {}
        self._marked: list[str] = []
        self._rate: float | None = None
        self._target_fault: TuneAssistError | None = None

    def compose_body(self) -> ComposeResult:
        """List, form, command."""
        defaults = self.tune_app.services.defaults
        values = {
            "target": defaults.target,
            "trials": str(defaults.trials),
            "time_budget": "",
            "cost_model": defaults.cost_model,
            "seed": str(defaults.seed),
        }
        with Container(id="new-run"):
            with Vertical(id="workloads"):
                yield Input(placeholder="search, or an operator, file or model", compact=True, id="search")
                yield WorkloadTable(id="workload-table")
            with Vertical(id="settings"):
                with Grid(id="form"):
                    for name in _FIELDS:
                        yield Label(_LABELS[name])
                        yield Input(values[name], placeholder=_HINTS[name], compact=True, id=name)
                yield Static(id="target-line", markup=False)
                yield Static(id="estimate", markup=False)
                yield Static(id="command", markup=False)
                with Horizontal(classes="buttons"):
                    yield Button("Start", id="start", variant="primary", compact=True)
                    yield Button("Copy command", id="copy", compact=True)

    def on_mount(self) -> None:
        """Load the catalogue and what the store knows."""
        self.query_one("#settings").border_title = "Settings"
        self.query_one(WorkloadTable).border_title = "Workloads"
        self.query_one(WorkloadTable).loading = True
        services = self.tune_app.services

        def load() -> tuple[Sequence[WorkloadInfo], Mapping[str, KnownBest], float | None]:
            try:
                known, rate = services.reader.known_best(), trials_per_minute(services.reader.runs(limit=50))
            except TuneAssistError:  # the start screen shows what is wrong with the store
                known, rate = {}, None
            return services.catalogue.workloads(), known, rate

        self.in_thread(load, self.show_catalogue, group="catalogue", failed=self.catalogue_failed)
        self.check_target()

    def show_catalogue(
        self, found: tuple[Sequence[WorkloadInfo], Mapping[str, KnownBest], float | None]
    ) -> None:
        """Fill the list."""
        catalogue, self._known, self._rate = found
        self._catalogue = list(catalogue)
        table = self.query_one(WorkloadTable)
        table.loading = False
        if not self.query_one("#search", Input).value:  # someone who types already is left alone
            table.focus()
        self.show_workloads()

    def catalogue_failed(self, error: Exception) -> None:
        """The list is not there; specs can still be typed."""
        self.query_one(WorkloadTable).loading = False
        self.tune_app.show_error(error)

    def show_workloads(self) -> None:
        """Show what matches the search."""
        wanted = self.query_one("#search", Input).value.strip().lower()
        words = wanted.split()
        found = [
            info
            for info in self._catalogue
            if all(word in f"{info.name} {info.op} {info.network}".lower() for word in words)
        ]
        if self._typed is not None and self._typed.name not in [info.name for info in found]:
            found.insert(0, self._typed)
        table = self.query_one(WorkloadTable)
        table.show_workloads(found, self._known, self._marked)
        table.border_subtitle = f"{len(found)} of {len(self._catalogue)} · {len(self._marked)} marked"
        self.show_summary()

    def chosen(self) -> tuple[str, ...]:
        """The marked workloads, else the one under the cursor."""
        if self._marked:
            return tuple(self._marked)
        key = self.query_one(WorkloadTable).current_key
        return (key,) if key else ()

    def form(self) -> RunForm:
        """The fields as typed."""
        target, trials, budget, model, seed = (self.query_one(f"#{name}", Input).value for name in _FIELDS)
        return RunForm(self.chosen(), target, trials, budget, model, seed)

    def show_summary(self) -> None:
        """Estimate and command of the form as it stands, or what is wrong with it."""
        services = self.tune_app.services
        error = self.app.theme_variables.get("error", "")
        try:
            settings = self.form().settings(services.defaults)
        except UsageError as fault:
            self.query_one("#estimate", Static).update(Text(f"✗ {fault.message} {fault.remedy}", style=error))
            self.query_one("#command", Static).update("")
            return
        self.query_one("#estimate", Static).update(f"Takes {estimate(settings, self._rate)}.")
        self.query_one("#command", Static).update(
            Text(f"$ {command_line(settings, services.db)}", style="dim")
        )

    @on(Input.Changed, "#search")
    def search_changed(self, event: Input.Changed) -> None:
        """Filter as typed; what reads as a spec joins the list."""
        self._typed = None
        spec = event.value.strip()
        self.show_workloads()
        if spec and spec not in [info.name for info in self._catalogue]:
            catalogue = self.tune_app.services.catalogue

            def parse() -> WorkloadInfo | None:
                try:
                    return replace(catalogue.parse_workload(spec), name=spec)
                except UsageError:
                    return None

            self.in_thread(parse, self.show_typed, group="spec")

    def show_typed(self, info: WorkloadInfo | None) -> None:
        """Put the typed spec on top of the list."""
        self._typed = info
        if info is not None:
            self.show_workloads()

    @on(Input.Submitted, "#search")
    def search_done(self) -> None:
        """On to the list; a spec that names nothing says so."""
        table, spec = self.query_one(WorkloadTable), self.query_one("#search", Input).value.strip()
        if table.row_count:
            table.focus()
            return
        catalogue = self.tune_app.services.catalogue
        self.in_thread(
            lambda: replace(catalogue.parse_workload(spec), name=spec), self.show_typed, group="spec"
        )

    @on(Input.Changed, "#target")
    def check_target(self) -> None:
        """Check the target as typed."""
        spec = self.query_one("#target", Input).value.strip() or "native"
        catalogue = self.tune_app.services.catalogue
        self.in_thread(
            lambda: catalogue.describe_target(spec),
            self.show_target,
            group="target",
            failed=self.target_failed,
        )
        self.show_summary()

    def show_target(self, words: str) -> None:
        """The target can be used."""
        self._target_fault = None
        self.query_one("#target-line", Static).update(Text(f"✓ {words}"))

    def target_failed(self, fault: Exception) -> None:
        """The target can't be used."""
        self._target_fault = fault if isinstance(fault, TuneAssistError) else UsageError(str(fault))
        style = self.app.theme_variables.get("error", "")
        self.query_one("#target-line", Static).update(Text(f"✗ {self._target_fault.message}", style=style))

    @on(Input.Changed)
    def field_changed(self) -> None:
        """Estimate and command follow what is typed."""
        self.show_summary()

    @on(DataTable.RowHighlighted, "#workload-table")
    def cursor_moved(self) -> None:
        """The command names the workload under the cursor."""
        self.show_summary()

    @on(Table.Sorted, "#workload-table")
    def sorted_anew(self) -> None:
        """Another order."""
        self.show_workloads()

    @on(Input.Submitted, "#target, #trials, #time_budget, #cost_model, #seed")
    @on(DataTable.RowSelected, "#workload-table")
    def submitted(self) -> None:
        """Enter starts."""
        self.action_start()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Start, or copy."""
        if event.button.id == "start":
            self.action_start()
        else:
            self.action_copy_command()

    def action_start(self) -> None:
        """Start the run."""
        settings = self._settings()
        if settings is not None:
            self.dismiss()
            self.tune_app.start_run(settings)

    def action_search(self) -> None:
        """Type a search."""
        self.query_one("#search").focus()

    def action_mark(self) -> None:
        """Mark the workload under the cursor, or take the mark away."""
        key = self.query_one(WorkloadTable).current_key
        if key is not None:
            if key in self._marked:
                self._marked.remove(key)
            else:
                self._marked.append(key)
            self.show_workloads()

    def action_next_model(self) -> None:
        """The next cost model."""
        field = self.query_one("#cost_model", Input)
        at = COST_MODELS.index(field.value) if field.value in COST_MODELS else -1
        field.value = COST_MODELS[(at + 1) % len(COST_MODELS)]

    def action_copy_command(self) -> None:
        """Copy the equivalent command."""
        settings = self._settings()
        if settings is not None:
            self.tune_app.copy(command_line(settings, self.tune_app.services.db))

    def _settings(self) -> RunSettings | None:
        """The form's settings, or None after saying what is wrong."""
        try:
            settings = self.form().settings(self.tune_app.services.defaults)
        except UsageError as fault:
            self.tune_app.show_error(fault)
            return None
        if self._target_fault is not None:
            self.tune_app.show_error(self._target_fault)
            return None
        return settings
