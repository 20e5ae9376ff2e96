"""The live screen over a fake engine that writes a real events file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from ui_fakes import FakeSession, fake_services, screen_text, until
from ui_script import scripted_run

from tuneassist.events import PhaseChanged
from tuneassist.records import RunSettings
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.live import PANES, LiveScreen
from tuneassist.ui.widgets.trial_table import TrialTable

TITLES = {
    "best": "Best latency",
    "scatter": "Predicted ↑",
    "quality": "Model quality",
    "speed": "time by phase",
}


def make_app(folder: Path, **changes: Any) -> TuneAssistApp:
    return TuneAssistApp(fake_services(folder, **changes))


async def open_live(
    app: TuneAssistApp, pilot: Pilot[Any], *, tasks: int = 1, end: bool = False
) -> FakeSession:
    """Start a run and let its events come."""
    app.start_run(RunSettings())
    await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    session: FakeSession = app.services.engines.last  # type: ignore[attr-defined]
    session.write(*scripted_run(tasks=tasks, end=end))
    if end:
        session.lives = False
    await until(pilot, lambda: "128/128" in screen_text(app))
    return session


async def test_the_header_says_how_the_run_goes(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_live(app, pilot)
        text = screen_text(app)
        for words in ("resnet18.c2", "llvm znver5", "128/128 trials", "best 1.61 ms", "GFLOPS", "% of peak",
                      "26.1× untuned", "0.68× PyTorch", "3 build error", "/min"):  # fmt: skip
            assert words in text


@pytest.mark.parametrize("number", range(1, len(PANES) + 1))
async def test_a_narrow_terminal_shows_one_pane_by_its_digit(tmp_path: Path, number: int) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.press(str(number))
        await pilot.pause(0.2)
        shown = [pane for pane, _ in PANES if app.screen.query_one(f"#{pane}").region]
        assert shown == [PANES[number - 1][0]]


async def test_a_wide_terminal_shows_charts_and_tables_together(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.pause(0.3)
        text = screen_text(app)
        for title in TITLES.values():
            assert title in text
        await pilot.press("2")
        await pilot.pause(0.2)
        assert TITLES["scatter"] in screen_text(app) and TITLES["quality"] not in screen_text(app)
        await pilot.press("2", "7")
        await until(
            pilot, lambda: TITLES["quality"] in screen_text(app) and "is the best so far" in screen_text(app)
        )


async def test_a_click_on_a_panes_name_shows_it(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.click("#pane-bar", offset=(25, 0))
        await until(pilot, lambda: TITLES["quality"] in screen_text(app))


async def test_best_latency_over_time(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.press("t")
        await until(pilot, lambda: "Best latency over time" in screen_text(app))


async def test_trials_are_filtered_sorted_and_open(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.press("6")
        table = app.screen.query_one(TrialTable)
        await until(pilot, lambda: table.row_count == 100)
        await pilot.press("f", "f")
        await until(pilot, lambda: table.row_count == 12)
        await pilot.press("enter")
        await until(pilot, lambda: "the kernel ran longer than 4 s" in screen_text(app))
        await pilot.press("escape")
        await pilot.press("s")
        queries = app.services.reader.queries  # type: ignore[attr-defined]
        await until(pilot, lambda: "trials failed status True 0" in queries)
        await pilot.press("S")
        await until(pilot, lambda: "trials failed status False 0" in queries)
        await pilot.press("y")
        await until(pilot, lambda: "Copied" in screen_text(app))
        assert "build_error" in app.clipboard


async def test_the_trial_table_loads_more_at_its_end(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.press("6")
        table = app.screen.query_one(TrialTable)
        await until(pilot, lambda: table.row_count == 100)
        await pilot.press("end")
        await until(pilot, lambda: table.row_count == 128)


async def test_the_charts_follow_the_task_under_the_cursor(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await open_live(app, pilot, tasks=2)
        await pilot.press("5", "down")
        await until(pilot, lambda: "matmul:m=512,n=512,k=512 (1 of 2 tasks)" in screen_text(app))
        await pilot.press("up")
        await until(pilot, lambda: "resnet18.c2 (1 of 2 tasks)" in screen_text(app))


async def test_pause_and_resume_reach_the_engine(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        session = await open_live(app, pilot)
        await pilot.press("p")
        session.write(PhaseChanged(1_760_000_200.0, "paused"))
        await until(pilot, lambda: "‖ paused" in screen_text(app))
        await pilot.press("p")
        assert session.calls == ["pause", "resume"]


async def test_stop_asks_first_and_asks_again_for_at_once(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        session = await open_live(app, pilot)
        await pilot.press("x", "escape")
        assert session.calls == []
        await pilot.press("x", "enter")
        await until(pilot, lambda: session.calls == ["stop"])
        await pilot.press("x")
        await until(pilot, lambda: "at once" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: session.calls == ["stop", "stop"])


@pytest.mark.parametrize(("answer", "calls"), [(["enter"], []), (["tab", "enter"], ["stop"])])
async def test_leaving_a_running_engine_asks(tmp_path: Path, answer: list[str], calls: list[str]) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        session = await open_live(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "Leave it running" in screen_text(app))
        await pilot.press(*answer)
        await until(pilot, lambda: not any(isinstance(s, LiveScreen) for s in app.screen_stack))
        assert session.calls == calls


async def test_quitting_over_a_running_engine_asks(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        session = await open_live(app, pilot)
        await pilot.press("q", "escape")
        assert app.is_running
        await pilot.press("q")
        await until(pilot, lambda: "Stop it" in screen_text(app))
        await pilot.press("tab", "enter")
        await pilot.pause(0.2)
        assert session.calls == ["stop"]
    assert app.return_value == 0


async def test_a_run_that_ended_is_left_without_a_question(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_live(app, pilot, end=True)
        await until(pilot, lambda: "✓ done" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, LiveScreen))


async def test_the_command_and_the_errors_are_at_hand(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_live(app, pilot)
        await pilot.press("c")
        assert app.clipboard == "tuneassist --batch --attach 7 --db /data/tune.sqlite"
        await pilot.press("e")
        await until(pilot, lambda: "LLVM code generation took more than" in screen_text(app))
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)
