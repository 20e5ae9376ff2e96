"""The program of a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from ui_fakes import FakeCommands, fake_services, screen_text, until
from ui_program import program

from tuneassist.errors import MachineError
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.trial import PANES, TrialScreen

ANSWERS = {
    "trial 1 --untuned": program(1, extent=99),
    "trial 1 ": program(1),
    "trial 3 ": program(3, extent=7),
}


def make_app(folder: Path, answers: dict[str, Any] | None = None) -> TuneAssistApp:
    return TuneAssistApp(
        fake_services(folder, commands=FakeCommands(ANSWERS if answers is None else answers))
    )


async def open_program(app: TuneAssistApp, pilot: Pilot[Any]) -> None:
    app.open_trial(1)
    await until(pilot, lambda: isinstance(app.screen, TrialScreen) and "conv2d_nchw" in screen_text(app))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "loop i2 in [0, 56) serial"),
        (2, "main"),
        (3, "extent"),
        (4, "def main"),
        (5, "sch.split"),
        (6, "Diff:"),
    ],
)
async def test_each_pane_by_its_digit(tmp_path: Path, number: int, words: str) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_program(app, pilot)
        await pilot.press(str(number))
        await until(pilot, lambda: words in screen_text(app))
        shown = [pane for pane, _ in PANES if app.screen.query_one(f"#{pane}").region]
        assert shown == [PANES[number - 1][0]]


async def test_the_tree_folds_and_shows_features(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await open_program(app, pilot)
        text = screen_text(app)
        assert "▇ block conv2d_nchw  +1.4" in text and "constant -6.25" in text
        await pilot.press("down", "left")
        await until(pilot, lambda: "conv2d_nchw" not in screen_text(app))
        await pilot.press("2")
        await pilot.pause(0.2)
        assert "conv2d" not in screen_text(app), "the graph is folded like the tree"
        await pilot.press("1", "right", "right", "right", "right", "down")
        await until(pilot, lambda: "contribution  +0.4" in screen_text(app))


async def test_the_graph_goes_from_node_to_node_zooms_and_pans(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await open_program(app, pilot)
        await pilot.press("2", "n", "n", "n", "n")
        await until(pilot, lambda: "contribution  +1.4" in screen_text(app))
        before = screen_text(app)
        await pilot.press("minus", "minus")
        await until(pilot, lambda: screen_text(app) != before)
        await pilot.press("plus", "down", "right", "0")
        await until(pilot, lambda: "●func main" in screen_text(app))
        column = before.splitlines()[4].index("●func main")
        await pilot.click("#graph", offset=(column + 2, 2))
        await until(pilot, lambda: "contribution" not in screen_text(app))


async def test_the_diff_is_against_the_untuned_program_until_told_otherwise(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await open_program(app, pilot)
        await pilot.press("6")
        await until(
            pilot, lambda: "Diff: untuned | this one" in screen_text(app) and "99" in screen_text(app)
        )
        assert "equal lines" in screen_text(app) and "2 lines differ" in screen_text(app)
        await pilot.press("o", "3", "enter")
        await until(pilot, lambda: "Diff: trial 3 | this one" in screen_text(app))
        await pilot.press("o", "x", "enter")
        await until(pilot, lambda: "is no trial number" in screen_text(app))


async def test_a_program_is_fetched_once(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        for _ in range(2):
            await open_program(app, pilot)
            await pilot.press("escape")
        assert app.services.commands.calls == [("trial", "1", "--json")]  # type: ignore[attr-defined]


async def test_the_script_is_copied(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_program(app, pilot)
        await pilot.press("c")
        assert app.clipboard.startswith("@T.prim_func")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (MachineError("`tuneassist trial 1` failed (exit 3).", remedy="TVM is missing."), "TVM is missing."),
        ("Traceback", "can't be read"),
        ({"nodes": [{"id": 1}]}, "can't be read"),
    ],
)
async def test_a_program_that_cant_be_had_says_why(tmp_path: Path, answer: Any, words: str) -> None:
    app = make_app(tmp_path, {"trial": answer})
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        app.open_trial(1)
        await until(pilot, lambda: words in screen_text(app))
        await pilot.press("1", "2", "3", "4", "5", "o", "c", "escape")
        await until(pilot, lambda: not isinstance(app.screen, TrialScreen))
