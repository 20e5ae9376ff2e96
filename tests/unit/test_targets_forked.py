"""Functions in a forked process: what goes wrong there is a report here."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tuneassist.targets.forked import Forked, ForkedError, call, reply


def die(number: int) -> None:
    faulthandler.disable()
    os.kill(os.getpid(), number)


def fail() -> None:
    raise ValueError("seven is no number of lanes")


def echo(pipe: Connection) -> None:
    while True:
        reply(pipe, pipe.recv())


def test_the_value_comes_back_from_another_process() -> None:
    assert call(os.getpid, timeout_secs=10) != os.getpid()
    assert call(divmod, 7, 2, timeout_secs=10) == (3, 1)


def test_an_exception_comes_back_as_text() -> None:
    with pytest.raises(ForkedError, match="ValueError: seven is no number of lanes"):
        call(fail, timeout_secs=10)


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGILL, "SIGILL.*lacks"), (signal.SIGKILL, "SIGKILL")],
)
def test_death_by_signal_is_named(number: int, said: str) -> None:
    with pytest.raises(ForkedError, match=said):
        call(die, number, timeout_secs=10)


def test_a_crash_leaves_no_core_file() -> None:
    assert call(resource.getrlimit, resource.RLIMIT_CORE, timeout_secs=10) == (0, 0)


def test_an_exit_without_an_answer() -> None:
    with pytest.raises(ForkedError, match="exit code 3"):
        call(os._exit, 3, timeout_secs=10)


def test_a_hang_ends_with_the_limit_and_leaves_no_process() -> None:
    with Forked(lambda pipe: time.sleep(600)) as forked:
        pid = forked.pid
        with pytest.raises(ForkedError, match="no answer within"):
            forked.answer(0.1)
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_conversation_goes_on_until_the_block_ends() -> None:
    with Forked(echo) as one, Forked(echo) as two:
        for forked, word in ((one, "a"), (two, "b"), (one, "c")):
            forked.send(word)
            assert forked.answer(10) == word


def test_asking_a_dead_process_is_answered_by_its_end() -> None:
    with Forked(lambda pipe: die(signal.SIGABRT)) as forked:
        time.sleep(0.2)
        forked.send("anyone there")
        with pytest.raises(ForkedError, match="SIGABRT"):
            forked.answer(10)
