"""Errors that a user sees: what failed, the value seen, and what to do next."""

from __future__ import annotations

from typing import ClassVar


class TuneAssistError(Exception):
    """Base of every error that is shown without a traceback.

    Args:
        message: What failed, with the value seen.
        remedy: What the user can do next; may be empty.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message


class UsageError(TuneAssistError):
    """The input names nothing we know, or its value can't be used."""

    exit_code = 2


class MachineError(TuneAssistError):
    """This machine, the device or this TVM can't do what was asked."""

    exit_code = 3


class NoMeasurementError(TuneAssistError):
    """The run ended and not one trial was valid."""

    exit_code = 4


class StoreError(TuneAssistError):
    """The database can't be opened, read or written."""

    exit_code = 5


class RunInterruptedError(TuneAssistError):
    """The user stopped the run; what was measured is kept."""

    exit_code = 130


EXIT_DONE = 0
BY_EXIT_CODE: dict[int, type[TuneAssistError]] = {
    error.exit_code: error
    for error in (UsageError, MachineError, NoMeasurementError, StoreError, RunInterruptedError)
}
"""The error class of each exit code, for a viewer that repeats what its engine reported."""
