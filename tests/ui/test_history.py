"""History: filter, sort, mark, compare, note, delete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from ui_fakes import FakeCommands, FakeReader, fake_services, run_row, screen_text, until
from ui_script import START, scripted_run

from tuneassist.errors import StoreError
from tuneassist.events import TrialEnded
from tuneassist.records import RunStatus
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.screens.live import LiveScreen
from tuneassist.ui.widgets.run_table import RunTable

ROWS = [
    run_row(7),
    run_row(8, task_names="matmul:m=512", best_secs=2.1e-3, started_at=START + 9, note="with layout"),
    run_row(9, status=RunStatus.INTERRUPTED, trials=12),
    run_row(10, status=RunStatus.FAILED, trials=0, best_secs=None, task_names="softmax"),
]


def make_app(folder: Path, **changes: Any) -> TuneAssistApp:
    trials = [event.trial for event in scripted_run() if isinstance(event, TrialEnded)]
    values = {"reader": FakeReader(list(ROWS), trials), "commands": FakeCommands({"history": ""}), **changes}
    return TuneAssistApp(fake_services(folder, **values), open_run=None)


async def open_history(app: TuneAssistApp, pilot: Pilot[Any]) -> RunTable:
    await until(pilot, lambda: "Recent runs" in screen_text(app))
    app.open_history()
    await until(pilot, lambda: bool(app.screen.query("#filter")))
    table = app.screen.query_one(RunTable)
    await until(pilot, lambda: table.row_count > 0)
    return table


def order(table: RunTable) -> list[str]:
    return [str(row.value) for row in table.rows]


async def test_the_filter_works_as_typed(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        table = await open_history(app, pilot)
        await pilot.press("slash", *"layout")
        await until(pilot, lambda: order(table) == ["8"])
        await pilot.press(*"zzz")
        await until(pilot, lambda: "No run matches" in screen_text(app))
        await pilot.press(*["backspace"] * 9, "enter")
        await until(pilot, lambda: table.row_count == 4 and table.has_focus)


async def test_columns_sort_by_key_and_by_click(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        table = await open_history(app, pilot)
        assert order(table) == ["10", "9", "8", "7"]
        await pilot.press("S")
        await until(pilot, lambda: order(table) == ["7", "8", "9", "10"])
        column = screen_text(app).splitlines()[3].index("Started")
        await pilot.click("#runs", offset=(column, 1))
        await until(pilot, lambda: table.order == "started_at" and "Started ▲" in screen_text(app))


async def test_two_marked_runs_are_compared(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        table = await open_history(app, pilot)
        await pilot.press("c")
        await until(pilot, lambda: "Mark two or more runs" in screen_text(app))
        await pilot.press("down", "down", "space", "down", "space")
        await until(pilot, lambda: "marked: 8, 7" in screen_text(app))
        assert order(table) == ["10", "9", "8", "7"]
        await pilot.press("c")
        await until(pilot, lambda: "● run 8 1.61 ms" in screen_text(app) and "1.00×" in screen_text(app))
        await pilot.press("t")
        await until(pilot, lambda: "over time" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "tuneassist · history" in screen_text(app))


async def test_a_note_is_written_by_the_command(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_history(app, pilot)
        await pilot.press("down", "down", "n", "end", *"er", "enter")
        await until(pilot, lambda: "has its note" in screen_text(app))
        assert app.services.commands.calls == [("history", "note", "8", "--", "with layouter")]  # type: ignore[attr-defined]


async def test_delete_asks_and_spares_a_run_at_work(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_history(app, pilot)
        calls = app.services.commands.calls  # type: ignore[attr-defined]
        reader = app.services.reader
        assert isinstance(reader, FakeReader)
        reader.run_rows[2] = run_row(9, status=RunStatus.RUNNING, alive=True, ended_at=None)
        await pilot.press("S", "S")
        await until(pilot, lambda: "● running" in screen_text(app))
        await pilot.press("down", "x")
        await until(pilot, lambda: "Stop it first" in screen_text(app))
        await pilot.press("down", "x", "escape")
        assert calls == []
        await pilot.press("x", "enter")
        await until(pilot, lambda: calls == [("history", "delete", "8", "--yes")])


async def test_a_command_that_fails_is_shown(tmp_path: Path) -> None:
    fault = StoreError("`tuneassist history` failed (exit 5).", remedy="The disk is full.")
    app = make_app(tmp_path, commands=FakeCommands({"history": fault}))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_history(app, pilot)
        await pilot.press("x", "enter")
        await until(pilot, lambda: "The disk is full." in screen_text(app))


@pytest.mark.parametrize("key", ["enter", "p"])
async def test_opening_and_replaying_start_nothing(tmp_path: Path, key: str) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_history(app, pilot)
        await pilot.press("down", "down", "down", key)
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert app.services.engines.started == []  # type: ignore[attr-defined]


async def test_thousands_of_runs_come_page_by_page(tmp_path: Path) -> None:
    app = make_app(tmp_path, reader=FakeReader([run_row(n) for n in range(1, 1001)]))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        table = await open_history(app, pilot)
        assert table.row_count == 100 and "more below" in screen_text(app)
        await pilot.press("end")
        await until(pilot, lambda: table.row_count == 200)


async def test_the_export_command_is_copied(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await open_history(app, pilot)
        await pilot.press("e")
        assert app.clipboard == "tuneassist history trials 10 --csv --db /data/tune.sqlite"
