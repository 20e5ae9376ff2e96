"""The app in a real terminal, over a real engine, by keys only."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest
from batch_tools import SMALL, command, database, rows, wait_for_no_process, wait_for_trials
from tmux import Tmux, needs_tmux

pytestmark = [pytest.mark.tvm, pytest.mark.terminal, needs_tmux, pytest.mark.timeout(600)]
TRIALS = 12


@pytest.fixture(autouse=True)
def known_machine(measured_machine: Path) -> None:
    """Start from a database that knows this machine, and settings for a short run."""
    database().parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(measured_machine, database())
    Path(os.environ["TUNEASSIST_CONFIG"]).write_text(f'trials = {TRIALS}\ncost_model = "random"\n')


def start_run(app: Tmux) -> None:
    """From the start screen to the live one."""
    app.wait_for("No run yet")
    app.press("n")
    app.wait_for("cores allowed")
    app.wait_for(" 0 marked")  # the list has come, and the focus with it
    app.press("/")
    app.wait(lambda: app.cursor_line == 1, "the search has not the focus")
    app.type(SMALL)
    app.wait_for("1 of ")
    app.press("C-r")
    app.wait_for("tuneassist · live")


def engine_pid() -> int:
    """The engine at work on the only run."""
    pid = rows("SELECT pid FROM runs")[0]["pid"]
    assert pid is not None
    return int(pid)


def ended(process: psutil.Process) -> bool:
    """Whether it has gone, or waits to be reaped."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.xfail(
    strict=False,
    reason="At times the app lingers after q, the terminal already restored; the cause is not known yet.",
)
def test_from_the_start_screen_to_the_program_though_the_engine_is_killed() -> None:
    with Tmux(command()) as app:
        start_run(app)
        wait_for_trials(3)
        killed = engine_pid()
        os.kill(killed, signal.SIGKILL)
        app.wait_for("engine died", "restarting")
        app.resize(20, 5)
        app.wait(lambda: "trials" in app.text() and len(app.text().splitlines()) <= 5, "no header at 20x5")
        app.resize(120, 36)
        app.wait(lambda: max(map(len, app.text().splitlines())) == 120, "not as large as before")
        shown = app.wait_for("✓ done", timeout_secs=240)
        assert f"{TRIALS}/{TRIALS} trials" in shown and "untuned" in shown and "PyTorch" in shown

        app.press("6")
        app.wait_for("Trials: all trials")
        app.press("a")
        shown = app.wait_for("for ", "loop ", timeout_secs=90)
        assert "Trial " in shown and "of run 1" in shown and "measured" in shown
        app.press("2")
        app.wait_for("Graph")
        app.press("n", "n", "6")
        app.wait_for("lines differ", timeout_secs=90)
        app.press("Escape")
        app.wait_for("tuneassist · live")
        app.press("Escape")
        app.wait_for("Recent runs")
        app.press("h")
        app.wait_for("✓ done")
        app.press("Escape", "q")
        app.wait(lambda: app.exit_code == 0, "the app goes on")
    ordinals = [row["ordinal"] for row in rows("SELECT ordinal FROM trials ORDER BY ordinal")]
    assert ordinals == list(range(1, TRIALS + 1))
    assert not psutil.pid_exists(killed)
    wait_for_no_process()


@pytest.mark.xfail(
    strict=False,
    reason="At times the app lingers after q, the terminal already restored; the cause is not known yet.",
)
def test_a_killed_app_leaves_a_run_that_is_attached_to_again() -> None:
    with Tmux(command()) as app:
        start_run(app)
        wait_for_trials(2)
        engine = engine_pid()
        killed = psutil.Process(app.pid)
        os.kill(killed.pid, signal.SIGKILL)
        app.wait(lambda: ended(killed), "the app lives")
    assert psutil.pid_exists(engine)
    with Tmux(command()) as app:  # the run that is going on opens by itself
        app.wait_for("tuneassist · live · run 1")
        shown = app.wait_for("✓ done", timeout_secs=240)
        assert f"{TRIALS}/{TRIALS} trials" in shown
        app.press("Escape", "q")
        app.wait(lambda: app.exit_code == 0, "the app goes on")
    assert [row["status"] for row in rows("SELECT status FROM runs")] == ["done"]
    wait_for_no_process()
