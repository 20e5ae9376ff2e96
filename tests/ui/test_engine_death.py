"""What the app does when the engine dies, or its stream is cut, garbled or flooding."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from ui_fakes import FakeEngines, FakeReader, FakeSession, fake_services, run_row, screen_text, until
from ui_script import START, run_started, scripted_run, scripted_trial

from tuneassist.events import TrialEnded, encode
from tuneassist.records import RunSettings, RunStatus
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.follow import EngineState, Follower
from tuneassist.ui.screens.live import LiveScreen


async def watch(app: TuneAssistApp, pilot: Pilot[Any]) -> LiveScreen:
    app.start_run(RunSettings())
    await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert isinstance(app.screen, LiveScreen)
    return app.screen


def engines_of(app: TuneAssistApp) -> FakeEngines:
    engines = app.services.engines
    assert isinstance(engines, FakeEngines)
    return engines


async def test_an_engine_that_dies_is_started_again_on_the_same_run(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        screen = await watch(app, pilot)
        first = engines_of(app).last
        first.write(*scripted_run(trials=32, end=False))
        await until(pilot, lambda: screen.snapshot.state.trials == 32)
        first.lives = False
        await until(pilot, lambda: len(engines_of(app).sessions) == 2 and "engine died" in screen_text(app))
        assert first.calls == ["restart"]
        second = engines_of(app).last
        second.write(run_started(trials=48, resumed=True, done=32))
        rng = random.Random(1)
        second.write(
            *[TrialEnded(START + 90 + n, scripted_trial(rng, n, 3, 1, START + 90, 48)) for n in range(33, 49)]
        )
        await until(pilot, lambda: "48/48 trials" in screen_text(app))
        assert screen.snapshot.engine is EngineState.RUNNING


async def test_after_three_restarts_the_app_gives_up_and_says_so(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        screen = await watch(app, pilot)
        engines_of(app).last.write(*scripted_run(trials=32, end=False))
        await until(pilot, lambda: screen.snapshot.state.trials == 32)
        for session in range(4):
            await until(pilot, lambda: len(engines_of(app).sessions) == session + 1)  # noqa: B023
            engines_of(app).sessions[session].lives = False
        await until(pilot, lambda: "✗ engine died" in screen_text(app))
        assert len(engines_of(app).sessions) == 4
        await pilot.press("e")
        await until(pilot, lambda: "Segmentation fault" in screen_text(app))
        await pilot.press("escape", "r")
        await until(pilot, lambda: len(engines_of(app).started) == 2)
        assert engines_of(app).started[1][1] == 7


async def test_an_engine_that_was_told_to_stop_is_not_restarted(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        screen = await watch(app, pilot)
        session = engines_of(app).last
        session.write(*scripted_run(trials=32, end=False))
        await until(pilot, lambda: screen.snapshot.state.trials == 32)
        await pilot.press("x", "enter")
        session.lives = False
        await until(pilot, lambda: "? no engine" in screen_text(app))
        assert len(engines_of(app).sessions) == 1


async def test_looking_at_a_run_without_an_engine_starts_none(tmp_path: Path) -> None:
    events = tmp_path / "old.jsonl"
    events.write_text("".join(encode(event) + "\n" for event in scripted_run(trials=32, end=False)))
    reader = FakeReader([run_row(7, status=RunStatus.RUNNING, trials=32)], events_path=str(events))
    app = TuneAssistApp(fake_services(tmp_path, reader=reader), open_run=7)
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await until(pilot, lambda: "? no engine" in screen_text(app) and "32/32 trials" in screen_text(app))
        assert len(engines_of(app).sessions) == 1 and engines_of(app).started == []
        await pilot.press("c")
        assert "--resume 7" in app.clipboard


async def test_a_cut_and_garbled_stream_loses_only_what_was_garbled(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        screen = await watch(app, pilot)
        session = engines_of(app).last
        lines = [encode(event) for event in scripted_run(trials=32)]
        whole = "\n".join(
            [*lines[:20], "\udcff\udcfe\x00{", '{"event":"trial","time":"noon","trial":{}}', "[]", ""]
        )
        session.write_text(whole)
        session.write_text(
            '{"event":"phase","time":"x","phase":"search","task_id":null,"done":0,"total":0}\n'
        )
        rest = "\n".join(lines[20:]) + "\n"
        for start in range(0, len(rest), 700):  # lines arrive in pieces
            session.write_text(rest[start : start + 700])
            await pilot.pause(0.01)
        await until(pilot, lambda: screen.snapshot.state.ended)
        assert screen.snapshot.state.trials == 32
        assert screen.snapshot.skipped == 1
        session.lives = False
        await until(pilot, lambda: "✓ done" in screen_text(app))


async def test_a_flood_of_events_leaves_the_keys_working(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await watch(app, pilot)
        rng = random.Random(2)
        engines_of(app).last.write(
            run_started(trials=20_000),
            *[
                TrialEnded(START + n, scripted_trial(rng, n, n // 64, 1, START + n, 20_000))
                for n in range(1, 20_001)
            ],
        )
        await until(pilot, lambda: screen.snapshot.state.trials > 0)
        await pilot.press("7")
        await until(pilot, lambda: bool(screen.query_one("#log").region))
        await until(pilot, lambda: screen.snapshot.state.trials == 20_000, secs=60)
        assert "20000/20000 trials" in screen_text(app) or await shown(pilot, app, "20000/20000 trials")


async def shown(pilot: Pilot[Any], app: TuneAssistApp, text: str) -> bool:
    await until(pilot, lambda: text in screen_text(app))
    return True


async def test_an_engine_that_cant_be_restarted_is_an_error_on_the_screen(tmp_path: Path) -> None:
    class Stubborn(FakeSession):
        def restart(self) -> FakeSession:
            raise OSError("no space left on device")

    session = Stubborn(tmp_path / "events.jsonl", FakeEngines(tmp_path))
    follower = Follower(session, poll_secs=0.01)
    follower.start()
    session.write(run_started())
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: follower.latest.state.run_id == 7)
        session.lives = False
        await until(pilot, lambda: follower.latest.engine is EngineState.DIED)
    assert "no space left" in follower.latest.problem
    follower.close()
