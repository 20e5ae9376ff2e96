"""Cost models: the checkpoints that are there, and how good they were found to be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table as RichTable
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import DataTable, Static

from tuneassist.errors import TuneAssistError
from tuneassist.storage.models import ModelRow, packaged_models
from tuneassist.ui import format as fmt
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("Kind"),
    Column("Made"),
    Column("From"),
    Column("Trained on", width=32),
    Column("SHA-256", width=12),
    Column("Path"),
)
_EMPTY = (
    "No checkpoint yet: neither the store nor the installation holds one.\n"
    "Runs then start with an untrained model, which learns from what it measures."
)


class ModelsScreen(BaseScreen):
    """Checkpoints in the store and those that came with the installation."""

    NAME = "models"
    HELP = (
        "Checkpoints of cost models, with the figures of their evaluation. Enter opens the file: what it "
        "holds, and whether this version can use it. y copies a row, c its path."
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy_path", "Copy path")]

    def __init__(self) -> None:
        super().__init__()
        self._models: tuple[ModelRow, ...] = ()
        self._opened: dict[str, dict[str, Any]] = {}
        """What `tuneassist model info` said, by path."""

    def compose_body(self) -> ComposeResult:
        """Table over the chosen model's figures."""
        yield Static("Reading the store …", classes="empty", markup=False)
        with Container(id="models"):
            yield Table(_COLUMNS, id="model-table")
            yield VerticalScroll(Static(markup=False), id="metrics")

    def on_mount(self) -> None:
        """Read them."""
        self.query_one("#models").display = False
        self.query_one("#metrics").border_title = "Figures"
        reader = self.tune_app.services.reader

        def read() -> list[tuple[str, ModelRow]]:
            return [
                *(("database", model) for model in reader.models()),
                *(("installation", model) for model in packaged_models()),
            ]

        self.in_thread(read, self.show_models, group="models")

    def show_models(self, models: Sequence[tuple[str, ModelRow]]) -> None:
        """Fill the table with models and where each is known from."""
        self._models = tuple(model for _, model in models)
        empty = self.query_one(".empty", Static)
        empty.update(_EMPTY)
        empty.display = not models
        self.query_one("#models").display = bool(models)
        self.query_one(Table).show(
            [Row(str(number), _cells(origin, model)) for number, (origin, model) in enumerate(models)]
        )
        if models:
            self.query_one(Table).focus()

    @property
    def current(self) -> ModelRow | None:
        """The model under the cursor."""
        key = self.query_one(Table).current_key
        return self._models[int(key)] if key is not None else None

    def on_data_table_row_highlighted(self) -> None:
        """Show the figures of the model under the cursor, or what its file was found to hold."""
        model = self.current
        if model is not None:
            shown = self._opened.get(model.path) or model.metrics
            self.query_one("#metrics Static", Static).update(metrics_table(shown))
            self.query_one("#metrics").border_subtitle = (
                "" if model.path in self._opened else "enter opens it"
            )

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the file, in a process that may load it."""
        model = self.current
        if model is None:
            return
        commands, frame = self.tune_app.services.commands, self.query_one("#metrics")
        frame.border_subtitle = "opening …"

        def show(about: dict[str, Any]) -> None:
            self._opened[model.path] = about
            self.on_data_table_row_highlighted()

        def failed(error: Exception) -> None:
            frame.border_subtitle = "can't be opened"
            self.tune_app.show_error(error)

        self.in_thread(
            lambda: read_about(commands.run("model", "info", model.path, "--json", ok_codes=(0, 2))),
            show,
            group="info",
            failed=failed,
        )

    def action_copy_path(self) -> None:
        """Copy the checkpoint's path."""
        if self.current is not None:
            self.tune_app.copy(self.current.path)


def _cells(origin: str, model: ModelRow) -> tuple[str, ...]:
    there = model.path if Path(model.path).is_file() else f"{model.path} (gone)"
    return (
        model.kind or fmt.NONE, fmt.moment(model.created_at), origin, model.trained_on, model.sha256[:12],
        there,
    )  # fmt: skip


def read_about(text: str) -> dict[str, Any]:
    """What `tuneassist model info --json` printed.

    Raises:
        TuneAssistError: It says why the file can't be read, or printed something else.
    """
    try:
        about: dict[str, Any] = dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise TuneAssistError(
            f"What the command printed can't be read: {error!r}.",
            remedy="Run `tuneassist model info` in a shell.",
        ) from error
    if "error" in about:
        raise TuneAssistError(str(about["error"]), remedy=str(about.get("remedy") or ""))
    return about


def metrics_table(metrics: Any) -> RichTable | str:
    """Figures by dotted name."""
    table = RichTable.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    stack: list[tuple[str, Any]] = list(dict(metrics).items())[::-1]
    rows = 0
    while stack and rows < 500:
        name, value = stack.pop()
        if isinstance(value, dict):
            stack.extend((f"{name}.{key}", inner) for key, inner in reversed(value.items()))
        elif isinstance(value, int | float | str | bool) or value is None:
            table.add_row(
                fmt.plain(name), f"{value:.4g}" if isinstance(value, float) else fmt.plain(str(value))
            )
            rows += 1
    return table if rows else "No figures are stored with this model."
