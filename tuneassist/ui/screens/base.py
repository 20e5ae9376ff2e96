"""What all screens share: title line, footer, back and help keys, work in threads with its errors shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.widgets import Static
from textual.worker import get_current_worker

from tuneassist.errors import TuneAssistError
from tuneassist.ui.widgets.key_bar import KeyBar
from tuneassist.ui.widgets.table import Table

if TYPE_CHECKING:
    from tuneassist.ui.app import TuneAssistApp

T = TypeVar("T")


class BaseScreen(Screen[None]):
    """A full screen of the app."""

    NAME: ClassVar[str] = ""
    HELP: ClassVar[str] = ""
    """What the screen is for, shown above its keys by `?`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("question_mark", "app.keys", "Help", key_display="?"),
    ]

    @property
    def tune_app(self) -> TuneAssistApp:
        """The app, with its services."""
        app: TuneAssistApp = self.app  # type: ignore[assignment]
        return app

    @property
    def in_sight(self) -> bool:
        """Whether nothing but dialogs is above. (`is_current` also holds for a screen that is covered.)"""
        stack = self.app.screen_stack
        return self in stack and all(isinstance(s, ModalScreen) for s in stack[stack.index(self) + 1 :])

    def compose(self) -> ComposeResult:
        """Title line, body, footer."""
        yield Static(self.title_line(), id="title", markup=False)
        yield from self.compose_body()
        yield KeyBar(id="keys")

    def compose_body(self) -> ComposeResult:
        """The screen's own widgets."""
        yield from ()

    def title_line(self) -> str:
        """What the top line says."""
        return f" tuneassist · {self.NAME}"

    async def action_back(self) -> None:
        """Go to the screen below; the first one asks to quit."""
        if len(self.app.screen_stack) > 2:
            self.dismiss()
        else:
            await self.app.run_action("quit")

    def on_table_copied(self, message: Table.Copied) -> None:
        """Say that it was copied."""
        self.notify(message.text.replace("\t", "  ")[:200], title="Copied", timeout=2, markup=False)

    def in_thread(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        *,
        group: str,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Do `work` in a thread, then call `then` here with its result; a newer call of the group wins.

        Args:
            failed: Called here with what `work` raised; by default the error becomes a notification.
        """

        def run() -> None:
            worker = get_current_worker()
            try:
                result = work()
            except (TuneAssistError, OSError) as error:
                if not worker.is_cancelled:
                    self.app.call_from_thread(failed or self.tune_app.show_error, error)
                return
            if not worker.is_cancelled:
                self.app.call_from_thread(self._when_mounted, then, result)

        self.run_worker(run, group=group, exclusive=True, thread=True, exit_on_error=True)

    def _when_mounted(self, then: Callable[[T], None], result: T) -> None:
        if self.is_mounted and self.is_attached:
            then(result)
