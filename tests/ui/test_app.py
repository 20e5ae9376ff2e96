"""What holds on every screen: help, palette, themes, sizes, screenshots, no loud imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from ui_fakes import FakeCommands, FakeReader, fake_services, run_row, screen_text, until
from ui_program import program
from ui_script import scripted_run

from tuneassist.errors import UsageError
from tuneassist.events import TrialEnded
from tuneassist.records import RunSettings
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.screens.help import key_list

SCREENS = ("start", "new_run", "history", "models", "doctor", "compare", "trial", "live")


def make_app(folder: Path, **changes: Any) -> TuneAssistApp:
    trials = [event.trial for event in scripted_run() if isinstance(event, TrialEnded)]
    answers = {"trial": program(1), "doctor": {"checks": [{"id": "tvm", "status": "ok", "seen": "fine"}]}}
    values = {
        "reader": FakeReader([run_row(7), run_row(8)], trials), "commands": FakeCommands(answers), **changes,
    }  # fmt: skip
    return TuneAssistApp(fake_services(folder, **values))


async def go_to(app: TuneAssistApp, pilot: Pilot[Any], name: str) -> None:
    """Open a screen and let its data come."""
    await until(pilot, lambda: "Recent runs" in screen_text(app))
    if name == "live":
        app.start_run(RunSettings())
        await until(pilot, lambda: "tuneassist · live" in screen_text(app))
        app.services.engines.last.write(*scripted_run(end=False))  # type: ignore[attr-defined]
        await until(pilot, lambda: "128/128" in screen_text(app))
    elif name == "trial":
        app.open_trial(1)
        await until(pilot, lambda: "conv2d_nchw" in screen_text(app))
    elif name == "compare":
        app.open_compare((7, 8))
        await until(pilot, lambda: "● run 7" in screen_text(app))
    elif name != "start":
        getattr(app, f"open_{name}")()
        await until(pilot, lambda: f"tuneassist · {name.replace('_', ' ')}" in screen_text(app))
    await pilot.pause(0.3)


@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_explains_itself_and_offers_every_action(tmp_path: Path, name: str) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(100, 70), notifications=True) as pilot:
        await go_to(app, pilot, name)
        keys = dict(key_list(app.screen))
        descriptions = set(keys.values())
        offered = {command.title.replace("\\", "") for command in app.get_system_commands(app.screen)}
        assert descriptions - offered <= {"Commands", "Focus Next", "Focus Previous", "Copy selected text"}
        assert {"New run", "History", "Models", "Doctor", "Copy database path"} <= offered
        await app.run_action("keys")
        await until(pilot, lambda: "Save screen as SVG" in screen_text(app))
        below = app.screen_stack[-2]
        assert isinstance(below, BaseScreen)
        assert below.HELP.split(".")[0][:40] in screen_text(app)
        await pilot.press("escape")


@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_survives_a_tiny_terminal_and_both_themes(tmp_path: Path, name: str) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await go_to(app, pilot, name)
        before = screen_text(app)
        for width, height in ((20, 5), (1, 1), (40, 12), (200, 60), (80, 24)):
            await pilot.resize_terminal(width, height)
            await pilot.pause(0.1)
        await pilot.pause(0.2)
        assert screen_text(app).splitlines()[:2] == before.splitlines()[:2]
        await pilot.press("ctrl+t")
        await pilot.pause(0.1)
        assert app.theme == "tuneassist-light"


async def test_the_palette_runs_an_action(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await go_to(app, pilot, "start")
        await pilot.press("ctrl+p", *"histo")
        await until(pilot, lambda: "Key h" in screen_text(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "tuneassist · history" in screen_text(app))


async def test_a_screenshot_is_saved_and_its_path_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await go_to(app, pilot, "start")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Screen saved" in screen_text(app))
    saved = Path(app.clipboard)
    assert saved.parent == tmp_path and saved.read_text().startswith("<svg")


async def test_names_with_markup_and_control_characters_are_shown_as_they_are(tmp_path: Path) -> None:
    odd = "[bold]x[/bold] \x1b[31m$(rm) [@click=quit]"
    app = make_app(tmp_path, reader=FakeReader([run_row(7, task_names=odd, note=odd, target=odd)]))
    async with app.run_test(size=(200, 40), notifications=True) as pilot:
        await go_to(app, pilot, "history")
        assert "[bold]x[/bold] \\x1b[31m$(rm) [@click=quit]" in screen_text(app)
        app.show_error(UsageError(odd, remedy=odd))
        await until(pilot, lambda: "[@click=quit]" in screen_text(app).splitlines()[-3])


async def test_no_color_and_16_colours_are_still_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(tmp_path)
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await go_to(app, pilot, "live")
        text = screen_text(app)
        assert "✗ 3 build error" in text and "● train" in text


def test_the_app_imports_neither_tvm_nor_torch_and_charts_only_when_live() -> None:
    code = (
        "import sys, tuneassist.ui.app, tuneassist.ui.screens.start, tuneassist.ui.adapters\n"
        "loud = {'tvm', 'torch', 'torch_geometric', 'xgboost', 'numpy', 'scipy'}\n"
        "print(sorted(loud & set(sys.modules)))\n"
        "import tuneassist.ui.screens.live, tuneassist.ui.screens.trial, tuneassist.ui.screens.new_run\n"
        "print(sorted({'tvm', 'torch', 'torch_geometric', 'xgboost', 'scipy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
