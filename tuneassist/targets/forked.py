"""Functions run in a forked process, so that a crash or a hang in one of them is a report, not ours.

Fork only from a process that has never run a kernel: TVM's thread pool does not survive a fork.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from tuneassist.processes import die_with_parent

_FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


class ForkedError(Exception):
    """The forked process crashed, hung or raised; the text says which."""


class Forked:
    """A forked process that answers questions, killed on exit of the block.

    Args:
        serve: Called in the child with its end of a pipe. What it raises becomes a `ForkedError` here.
        args: More arguments for `serve`.
    """

    def __init__(self, serve: Callable[..., None], *args: Any) -> None:
        if _FORK is None:
            raise ForkedError("This system has no fork.")
        self._pipe, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_guarded, args=(serve, theirs, *args), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Ask something; a process that is gone shows when its answer is awaited."""
        with contextlib.suppress(OSError):
            self._pipe.send(message)

    def answer(self, timeout_secs: float) -> Any:
        """Wait for the next answer.

        Raises:
            ForkedError: It did not come in time, the process died, or `serve` raised.
        """
        try:
            if not self._pipe.poll(timeout_secs):
                raise ForkedError(f"no answer within {timeout_secs:.0f} s")
            ok, value = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5.0)
            raise ForkedError(_ending(self._process.exitcode)) from None
        if not ok:
            raise ForkedError(value)
        return value


def call(function: Callable[..., Any], *args: Any, timeout_secs: float) -> Any:
    """Return what the function returns when run in a forked process (a picklable value).

    Raises:
        ForkedError: It raised, crashed, or took longer than `timeout_secs`.
    """
    with Forked(_answer_once, function, *args) as forked:
        return forked.answer(timeout_secs)


def reply(pipe: Connection, value: Any) -> None:
    """Send an answer from the child."""
    pipe.send((True, value))


def _answer_once(pipe: Connection, function: Callable[..., Any], *args: Any) -> None:
    reply(pipe, function(*args))


def _guarded(serve: Callable[..., None], pipe: Connection, *args: Any) -> None:
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        serve(pipe, *args)
    except EOFError:
        return
    except Exception as error:
        text = str(error).strip()
        with contextlib.suppress(OSError):
            pipe.send((False, f"{type(error).__name__}: {text[-500:]}" if text else type(error).__name__))


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "its process closed the pipe without an answer"
    if exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        meaning = {"SIGILL": " (an instruction that this CPU lacks)", "SIGSEGV": " (a crash in native code)"}
        return f"its process died of {name}{meaning.get(name, '')}"
    return f"its process ended with exit code {exit_code}"
