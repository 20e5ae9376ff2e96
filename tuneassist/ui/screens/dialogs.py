"""Small modal screens: a question, a line of text, a long text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static


class Question(ModalScreen[str]):
    """Asks before something is lost; returns the chosen answer, empty when the user thinks better of it.

    Args:
        text: The question, and what is at stake.
        answers: (value, label) of each answer; the first one has the focus, a last "Cancel" is added.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer('')", "Cancel"),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(self, text: str, answers: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._text = text
        self._answers = tuple(answers)

    def compose(self) -> ComposeResult:
        """Text over a row of buttons."""
        with Vertical(classes="dialog"):
            yield Static(self._text, markup=False)
            with Horizontal(classes="buttons"):
                for value, label in self._answers:
                    yield Button(label, id=f"answer-{value}", compact=True)
                yield Button("Cancel", id="answer-", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Return the answer."""
        self.dismiss((event.button.id or "answer-").removeprefix("answer-"))

    def action_answer(self, value: str) -> None:
        """Return this answer."""
        self.dismiss(value)


class Prompt(ModalScreen[str | None]):
    """Asks for one line of text; returns None when cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel")]

    def __init__(self, text: str, value: str = "") -> None:
        super().__init__()
        self._text = text
        self._value = value

    def compose(self) -> ComposeResult:
        """Text over an input."""
        with Vertical(classes="dialog"):
            yield Static(self._text, markup=False)
            yield Input(self._value, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return the text."""
        self.dismiss(event.value)

    def action_cancel(self) -> None:
        """Return nothing."""
        self.dismiss(None)


class LongText(ModalScreen[None]):
    """Shows a text of any length, such as an error with its detail."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Scrolling text in a frame."""
        with VerticalScroll(classes="dialog long") as frame:
            frame.border_title = self._title
            frame.border_subtitle = "y copy · esc close"
            yield Static(self._text, markup=False)

    def action_close(self) -> None:
        """Close it."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the text."""
        self.app.copy_to_clipboard(self._text)
        self.notify("Copied.", timeout=2)
