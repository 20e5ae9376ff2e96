"""The start screen: recent runs, and where it leads."""

from __future__ import annotations

from pathlib import Path

import pytest
from ui_fakes import ME, FakeEngines, FakeReader, fake_services, run_row, screen_text, until
from ui_script import scripted_run

from tuneassist.errors import StoreError
from tuneassist.records import RunStatus
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.live import LiveScreen
from tuneassist.ui.screens.new_run import NewRunScreen
from tuneassist.ui.screens.start import StartScreen


async def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader()))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "No run yet" in screen_text(app))
        await pilot.press("enter")
        assert isinstance(app.screen, NewRunScreen)


async def test_a_store_that_cant_be_read_says_why(tmp_path: Path) -> None:
    reader = FakeReader(
        fault=StoreError("The database is damaged.", remedy="Run `tuneassist history salvage`.")
    )
    app = TuneAssistApp(fake_services(tmp_path, reader=reader))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "history salvage" in screen_text(app))


async def test_runs_are_listed_and_those_to_continue_marked(tmp_path: Path) -> None:
    rows = [run_row(7), run_row(6, status=RunStatus.RUNNING, trials=40)]
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader(rows)))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await until(pilot, lambda: "lost ↻" in screen_text(app))
        assert "✓ done" in screen_text(app)


async def test_the_run_that_is_going_on_opens_by_itself(tmp_path: Path) -> None:
    engines = FakeEngines(tmp_path)
    rows = [run_row(8, status=RunStatus.RUNNING, alive=True, ended_at=None), run_row(7)]
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader(rows), engines=engines))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert engines.last.pid == ME
        engines.last.write(*scripted_run(trials=32, end=False))
        await until(pilot, lambda: "32/32 trials" in screen_text(app))
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        await pilot.pause(2.5)
        assert isinstance(app.screen, StartScreen), "it opens by itself only once"


async def test_opening_an_ended_run_starts_nothing(tmp_path: Path) -> None:
    services = fake_services(tmp_path)
    app = TuneAssistApp(services)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "resnet18.c2" in screen_text(app))
        await pilot.press("tab", "tab", "tab", "tab", "enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        await until(pilot, lambda: "✓ done" in screen_text(app))
        assert services.engines.started == [] and services.engines.sessions == []  # type: ignore[attr-defined]


async def test_continue_starts_an_engine_on_that_run(tmp_path: Path) -> None:
    rows = [run_row(6, status=RunStatus.INTERRUPTED, trials=40)]
    services = fake_services(tmp_path, reader=FakeReader(rows))
    app = TuneAssistApp(services)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "interrupted" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert services.engines.started[0][1] == 6  # type: ignore[attr-defined]


async def test_a_finished_run_is_not_continued(tmp_path: Path) -> None:
    services = fake_services(tmp_path)
    app = TuneAssistApp(services)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "✓ done" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "can't be continued" in screen_text(app))
        assert services.engines.started == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("key", "title"), [("n", "new run"), ("h", "history"), ("m", "models"), ("c", "doctor")]
)
async def test_keys_lead_to_screens_and_escape_back(tmp_path: Path, key: str, title: str) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: f"tuneassist · {title}" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))


async def test_the_mouse_works(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.click("#history")
        await until(pilot, lambda: "tuneassist · history" in screen_text(app))


async def test_a_run_that_is_not_there_is_an_error_not_a_crash(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path), open_run=99)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "There is no run 99." in screen_text(app))
