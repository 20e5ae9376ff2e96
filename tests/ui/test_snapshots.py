"""What the screens look like. Few, of fixed sizes, with a clock that stands still."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import textual
from textual.pilot import Pilot
from ui_fakes import FakeCommands, FakeReader, fake_services, run_row, screen_text, until
from ui_program import program
from ui_script import START, scripted_run

from tuneassist.events import TrialEnded
from tuneassist.records import RunSettings, RunStatus
from tuneassist.storage.models import ModelRow
from tuneassist.ui.app import TuneAssistApp

pytestmark = pytest.mark.skipif(textual.__version__ != "8.2.8", reason="drawn by Textual 8.2.8")

SMALL, LARGE = (80, 24), (160, 48)
CHECKS = {"checks": [{"id": "noise", "status": "warning", "seen": "12 % spread",
                      "remedy": "Close other programs."},
                     {"id": "tvm", "status": "ok", "seen": "0.27.0.post1"}]}  # fmt: skip
ROWS = [
    run_row(9, status=RunStatus.INTERRUPTED, trials=40, note="first try"),
    run_row(
        8,
        status=RunStatus.FAILED,
        trials=0,
        best_secs=None,
        task_names="bert-base.ffn1, bert-base.qkv, softmax",
    ),
    run_row(7, started_at=START - 86_400.0, ended_at=START - 86_000.0),
]
Steps = Callable[[TuneAssistApp, Pilot[Any]], Awaitable[None]]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuneAssistApp:
    monkeypatch.setattr("tuneassist.ui.screens.start.__version__", "1.0")
    monkeypatch.setattr("tuneassist.storage.models.assets_path", lambda: tmp_path / "absent")
    trials = [event.trial for event in scripted_run() if isinstance(event, TrialEnded)]
    model = ModelRow("gcn", "/data/gcn.pt", "f" * 64, "measured set, 12 workloads", START, {"pairwise": 0.81})
    answers = {"trial 1 --untuned": program(1, extent=99), "trial": program(1), "doctor": CHECKS}
    reader = FakeReader(list(ROWS), trials, [model])
    return TuneAssistApp(fake_services(tmp_path, reader=reader, commands=FakeCommands(answers)))


def steps(*keys: str, wait: str = "", live: int = 0, trial: bool = False) -> Steps:
    """Go somewhere, press keys, wait for words."""

    async def go(app: TuneAssistApp, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "interrupted" in screen_text(app))
        if live:
            app.start_run(RunSettings())
            await until(pilot, lambda: "tuneassist · live" in screen_text(app))
            app.services.engines.last.write(*scripted_run(tasks=live, end=False))  # type: ignore[attr-defined]
            await until(pilot, lambda: "128/128" in screen_text(app))
        if trial:
            app.open_trial(1)
            await until(pilot, lambda: "conv2d_nchw" in screen_text(app))
        await pilot.press(*keys)
        await until(pilot, lambda: wait in screen_text(app))
        await settled(app, pilot)

    return go


async def settled(app: TuneAssistApp, pilot: Pilot[Any]) -> None:
    """Let the app draw until nothing has changed for a while, however slow the machine is."""
    before, same = "", 0
    while same < 6:
        await pilot.pause(0.25)
        now = screen_text(app)
        same = same + 1 if now == before else 0
        before = now


@pytest.mark.parametrize(
    ("size", "go"),
    [
        pytest.param(SMALL, steps(), id="start"),
        pytest.param(SMALL, steps("n", wait="2 cores allowed"), id="new-run"),
        pytest.param(LARGE, steps("n", wait="2 cores allowed"), id="new-run-wide"),
        pytest.param(SMALL, steps(live=1), id="live-best"),
        pytest.param(SMALL, steps("2", live=1, wait="rank ρ"), id="live-predicted"),
        pytest.param(SMALL, steps("6", live=1, wait="all trials"), id="live-trials"),
        pytest.param(LARGE, steps(live=2), id="live-wide"),
        pytest.param(LARGE, steps("ctrl+t", "6", live=1, wait="all trials"), id="live-wide-light"),
        pytest.param(SMALL, steps("x", live=1, wait="Stop this run?"), id="live-question"),
        pytest.param(SMALL, steps(trial=True), id="program"),
        pytest.param(LARGE, steps("2", "n", "n", "n", "n", trial=True), id="program-graph-wide"),
        pytest.param(LARGE, steps("6", trial=True, wait="lines differ"), id="program-diff-wide"),
        pytest.param(SMALL, steps("h", wait="3 runs"), id="history"),
        pytest.param(LARGE, steps("h", "space", "down", "down", "c", wait="● run 9"), id="compare-wide"),
        pytest.param(SMALL, steps("c", wait="Close other programs."), id="doctor"),
        pytest.param(SMALL, steps("m", wait="0.81"), id="models"),
        pytest.param(SMALL, steps("question_mark", wait="esc closes"), id="help"),
    ],
)
def test_it_looks_as_it_did(app: TuneAssistApp, size: tuple[int, int], go: Steps, snap_compare: Any) -> None:
    assert snap_compare(app, terminal_size=size, run_before=lambda pilot: go(app, pilot))
