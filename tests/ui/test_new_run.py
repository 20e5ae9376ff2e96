"""The new-run form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static
from ui_fakes import FakeEngines, fake_services, screen_text, until

from tuneassist.records import COST_MODELS, RunSettings
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.live import LiveScreen


def started(app: TuneAssistApp) -> list[tuple[RunSettings, int | None]]:
    engines = app.services.engines
    assert isinstance(engines, FakeEngines)
    return engines.started


async def open_form(app: TuneAssistApp, pilot: Pilot[Any]) -> None:
    await pilot.press("n")
    await until(pilot, lambda: "resnet18.c5" in screen_text(app) and "2 cores allowed" in screen_text(app))


async def test_enter_enter_is_enough(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "resnet18.c2" in screen_text(app) and "--batch" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert started(app) == [(RunSettings(workloads=("resnet18.c2",)), None)]


async def test_several_workloads_are_marked(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await open_form(app, pilot)
        await pilot.press("space", "down", "down", "space")
        await until(pilot, lambda: "2 marked" in screen_text(app))
        command = str(app.screen.query_one("#command", Static).content)
        assert "--workload resnet18.c2 --workload bert-base.ffn1" in command
        await pilot.press("ctrl+r")
        await until(pilot, lambda: bool(started(app)))
        assert started(app)[0][0].workloads == ("resnet18.c2", "bert-base.ffn1")


async def test_the_search_filters_and_takes_a_spec(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_form(app, pilot)
        await pilot.press("slash", *"bert")
        await until(pilot, lambda: "1 of 3" in screen_text(app))
        await pilot.press(*["backspace"] * 4, *"matmul:m=64", "enter")
        await until(pilot, lambda: "--workload matmul:m=64" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: bool(started(app)))
        assert started(app)[0][0].workloads == ("matmul:m=64",)


async def test_a_spec_that_names_nothing_is_answered(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_form(app, pilot)
        await pilot.press("slash", *"resnet99", "enter")
        await until(pilot, lambda: "Did you mean resnet18.c2?" in screen_text(app))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "No workload is chosen." in screen_text(app))
        assert started(app) == []


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("trials", "0", "trials is '0'"), ("seed", "x", "seed is 'x'"),
     ("time_budget", "soon", "'soon' is no duration"),
     ("cost_model", "oracle", "'oracle'"), ("target", "vulcan", "can't be read")],
)  # fmt: skip
async def test_a_bad_field_is_named_as_typed_and_starts_nothing(
    tmp_path: Path, field: str, value: str, words: str
) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await open_form(app, pilot)
        app.screen.query_one(f"#{field}", Input).value = value
        await until(pilot, lambda: words in screen_text(app))
        await pilot.press("ctrl+r")
        await pilot.pause(0.2)
        assert started(app) == []


async def test_the_command_is_copied_and_models_cycle(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_form(app, pilot)
        await pilot.press(*["m"] * COST_MODELS.index("xgb"), "c")
        await until(pilot, lambda: app.clipboard != "")
        assert app.clipboard == (
            "tuneassist --batch --workload resnet18.c2 --trials 256 --cost-model xgb --db /data/tune.sqlite"
        )


async def test_settings_file_values_are_the_defaults(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path, defaults=RunSettings(trials=99, seed=5, cost_model="mlp")))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_form(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: bool(started(app)))
        settings = started(app)[0][0]
        assert (settings.trials, settings.seed, settings.cost_model) == (99, 5, "mlp")
