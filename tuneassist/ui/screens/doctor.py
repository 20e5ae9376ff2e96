"""Checks of this machine, by `tuneassist doctor --json` in a process of its own."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import LoadingIndicator, Static

from tuneassist.errors import TuneAssistError
from tuneassist.ui import format as fmt
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.widgets.table import Column, Row, Table

_TIMEOUT_SECS = 300.0
_SIGNS = {"ok": ("✓", "success"), "warning": ("!", "warning"), "error": ("✗", "error")}


class DoctorScreen(BaseScreen):
    """One line a check; the whole of what was seen, and what to do, below."""

    NAME = "doctor"
    HELP = "Checks this machine, TVM and the store. It compiles and runs a kernel, so it takes some seconds."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "again", "Check again")]

    def __init__(self) -> None:
        super().__init__()
        self._checks: list[dict[str, str]] = []

    def compose_body(self) -> ComposeResult:
        """Table over detail."""
        yield Static(classes="empty", markup=False)
        yield LoadingIndicator()
        with Container(id="doctor"):
            yield Table([Column("Check", width=26), Column("State", width=10), Column("Seen")], id="checks")
            yield VerticalScroll(Static(markup=False), id="advice")

    def on_mount(self) -> None:
        """Check."""
        self.query_one("#advice").border_title = "What to do"
        self.action_again()

    def action_again(self) -> None:
        """Run all checks."""
        self._show(loading=True)
        commands = self.tune_app.services.commands
        self.in_thread(
            lambda: read_checks(
                commands.run("doctor", "--json", timeout_secs=_TIMEOUT_SECS, ok_codes=(0, 3, 5))
            ),
            self.show_checks,
            group="doctor",
            failed=self.show_fault,
        )

    def show_checks(self, checks: list[dict[str, str]]) -> None:
        """Fill the table, worst first."""
        self._checks = sorted(checks, key=lambda c: ("error", "warning", "ok").index(c["status"]))
        self._show(loading=False)
        self.query_one(Table).show([self._row(str(n), check) for n, check in enumerate(self._checks)])
        self.query_one(Table).focus()

    def show_fault(self, error: Exception) -> None:
        """It could not be run."""
        self._show(loading=False, fault=str(error))

    def on_data_table_row_highlighted(self) -> None:
        """The check's detail."""
        key = self.query_one(Table).current_key
        if key is not None:
            check = self._checks[int(key)]
            text = f"{check['seen']}\n\n{check['advice'] or 'Nothing to do.'}"
            self.query_one("#advice Static", Static).update(text)

    def _show(self, *, loading: bool, fault: str = "") -> None:
        self.query_one(LoadingIndicator).display = loading
        self.query_one("#doctor").display = not loading and not fault
        empty = self.query_one(".empty", Static)
        empty.display = bool(fault)
        empty.update(f"{fault}\n\nr checks again.")

    def _row(self, key: str, check: dict[str, str]) -> Row:
        sign, role = _SIGNS[check["status"]]
        state = Text(f"{sign} {check['status']}", style=role)
        return Row(key, (check["id"], state, fmt.plain(check["seen"])))


def read_checks(text: str) -> list[dict[str, str]]:
    """The checks that the command printed: id, status, what was seen, what to do.

    Raises:
        TuneAssistError: It printed something else.
    """
    try:
        checks: list[dict[str, Any]] = json.loads(text)["checks"]
        return [
            {
                "id": str(check["id"]),
                "status": check["status"] if check["status"] in _SIGNS else "warning",
                "seen": str(check.get("seen") or ""),
                "advice": str(check.get("remedy") or check.get("advice") or check.get("what_to_do") or ""),
            }
            for check in checks
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TuneAssistError(
            f"The doctor's answer can't be read: {error!r}.", remedy="Run `tuneassist doctor` in a shell."
        ) from error
