"""A table that loads page by page, sorts through its owner and keeps its cursor while rows change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable

from tuneassist.ui.format import plain


class Column(NamedTuple):
    """One column; `key` names a field of the row records where the owner can sort by it, else is empty."""

    label: str
    key: str = ""
    right: bool = False
    width: int | None = None


class Row(NamedTuple):
    """One row: a key that stays the same while the row does, and its cells.

    The style of a `Text` may be a role of the theme, such as `success`.
    """

    key: str
    cells: tuple[str | Text, ...]


class Table(DataTable[Text]):
    """A `DataTable` of rows, with copying, sorting and more rows on demand."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy_row", "Copy row", show=False),
        Binding("s", "sort_next", "Sort by next column", show=False),
        Binding("S", "sort_flip", "Flip sort order", show=False),
        Binding("home", "scroll_top", "First row", show=False),
        Binding("end", "scroll_bottom", "Last row", show=False),
    ]

    @dataclass
    class Sorted(Message):
        """The user wants another order."""

        table: Table
        order: str
        descending: bool

        @property
        def control(self) -> Table:
            """The table, for `@on` selectors."""
            return self.table

    @dataclass
    class More(Message):
        """The cursor reached the last row: show more, if there are more."""

        table: Table
        offset: int

        @property
        def control(self) -> Table:
            """The table, for `@on` selectors."""
            return self.table

    @dataclass
    class Copied(Message):
        """A row's text was copied."""

        text: str

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        order: str = "",
        descending: bool = True,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False)
        self._columns = tuple(columns)
        self._rows: list[Row] = []
        self._asked_at = -1
        self.order = order
        self.descending = descending

    def on_mount(self) -> None:
        """Add the columns."""
        self._add_columns()
        self.app.theme_changed_signal.subscribe(self, lambda _: self.rebuild())

    @property
    def current_key(self) -> str | None:
        """Key of the row under the cursor."""
        return self._rows[self.cursor_row].key if 0 <= self.cursor_row < len(self._rows) else None

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows; the cursor stays on its row where that is still there."""
        new = list(rows)
        if new == self._rows:
            return
        old, self._rows = self._rows, new
        self._asked_at = -1
        if [row.key for row in old] == [row.key for row in new]:
            self._update_cells(old, new)
            return
        before = old[self.cursor_row].key if 0 <= self.cursor_row < len(old) else None
        at_top = self.cursor_row == 0
        scroll = self.scroll_y
        with self.app.batch_update():
            self.clear()
            for row in new:
                self.add_row(*self._cells(row), key=row.key)
            index = next((i for i, row in enumerate(new) if row.key == before), 0)
            if at_top or not new:
                return
            self.move_cursor(row=index, scroll=False)
            self.scroll_to(y=scroll, animate=False)

    def append(self, rows: Sequence[Row]) -> None:
        """Show these rows below the others."""
        known = {row.key for row in self._rows}
        for row in rows:
            if row.key not in known:
                self._rows.append(row)
                self.add_row(*self._cells(row), key=row.key)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Ask for more rows at the last one, once."""
        last = len(self._rows)
        if last and event.cursor_row >= last - 1 and self._asked_at != last:
            self._asked_at = last
            self.post_message(self.More(self, last))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the clicked column; a second click turns the order round."""
        column = self._columns[event.column_index]
        if column.key:
            self._sort(column.key, not self.descending if column.key == self.order else self.descending)

    def action_sort_next(self) -> None:
        """Sort by the next sortable column."""
        keys = [column.key for column in self._columns if column.key]
        if keys:
            index = keys.index(self.order) if self.order in keys else -1
            self._sort(keys[(index + 1) % len(keys)], self.descending)

    def action_sort_flip(self) -> None:
        """Turn the order round."""
        if self.order:
            self._sort(self.order, not self.descending)

    def action_copy_row(self) -> None:
        """Copy the row under the cursor, its cells separated by tabs."""
        if 0 <= self.cursor_row < len(self._rows):
            cells = (str(cell) for cell in self._rows[self.cursor_row].cells)
            text = "\t".join(cells)
            self.app.copy_to_clipboard(text)
            self.post_message(self.Copied(text))

    def _sort(self, order: str, descending: bool) -> None:
        self.order, self.descending = order, descending
        self.rebuild()
        self.post_message(self.Sorted(self, order, descending))

    def rebuild(self) -> None:
        """Make columns and rows again: a DataTable can neither rename a column nor colour a cell anew."""
        rows, self._rows = self._rows, []
        at = self.cursor_row
        with self.app.batch_update():
            self.clear(columns=True)
            self._add_columns()
            self.show(rows)
            self.move_cursor(row=at)

    def _add_columns(self) -> None:
        for column in self._columns:
            self.add_column(self._label(column), width=column.width, key=column.label)

    def _label(self, column: Column) -> Text:
        mark = (" ▼" if self.descending else " ▲") if column.key and column.key == self.order else ""
        return Text(column.label + mark, justify="right" if column.right else "left")

    def _cells(self, row: Row) -> list[Text]:
        return [self._cell(column, cell) for column, cell in zip(self._columns, row.cells, strict=True)]

    def _cell(self, column: Column, cell: str | Text) -> Text:
        text = cell.copy() if isinstance(cell, Text) else Text(plain(cell))
        text.style = self.app.theme_variables.get(str(text.style), text.style)
        text.justify = "right" if column.right else "left"
        text.no_wrap = True
        text.overflow = "ellipsis"
        return text

    def _update_cells(self, old: list[Row], new: list[Row]) -> None:
        for before, after in zip(old, new, strict=True):
            for column, was, now in zip(self._columns, before.cells, after.cells, strict=True):
                if was != now:
                    self.update_cell(after.key, column.label, self._cell(column, now), update_width=True)
