"""Cost models: the checkpoints that are there, and how good they were found to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.table import Table as RichTable
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from tuneassist.storage.models import ModelRow, packaged_models
from tuneassist.ui import format as fmt
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("Kind"),
    Column("Made"),
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
    HELP = "Checkpoints of cost models, with the figures of their evaluation. y copies a row, c its path."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy_path", "Copy path")]

    def __init__(self) -> None:
        super().__init__()
        self._models: tuple[ModelRow, ...] = ()

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
        self.in_thread(lambda: [*reader.models(), *packaged_models()], self.show_models, group="models")

    def show_models(self, models: Sequence[ModelRow]) -> None:
        """Fill the table."""
        self._models = tuple(models)
        empty = self.query_one(".empty", Static)
        empty.update(_EMPTY)
        empty.display = not models
        self.query_one("#models").display = bool(models)
        self.query_one(Table).show(
            [
                Row(
                    str(number),
                    (m.kind or fmt.NONE, fmt.moment(m.created_at), m.trained_on, m.sha256[:12], m.path),
                )
                for number, m in enumerate(models)
            ]
        )
        if models:
            self.query_one(Table).focus()

    def on_data_table_row_highlighted(self) -> None:
        """Show the figures of the model under the cursor."""
        key = self.query_one(Table).current_key
        if key is not None:
            self.query_one("#metrics Static", Static).update(metrics_table(self._models[int(key)].metrics))

    def action_copy_path(self) -> None:
        """Copy the checkpoint's path."""
        key = self.query_one(Table).current_key
        if key is not None:
            self.tune_app.copy(self._models[int(key)].path)


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
