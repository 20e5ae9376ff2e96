"""Runs that ended, played again; runs whose events are gone, read from the store."""

from __future__ import annotations

from pathlib import Path

from ui_fakes import FakeEngines, FakeReader, fake_services, run_row, screen_text, until
from ui_script import START, run_started, scripted_run

from tuneassist.events import Event, RunEnded, RunStarted, TrialEnded, encode
from tuneassist.records import RunStatus
from tuneassist.ui.app import TuneAssistApp
from tuneassist.ui.replay import SPEEDS, ReplaySession
from tuneassist.ui.run_state import RunState, fold
from tuneassist.ui.stored import StoredSession


class Clock:
    """Seconds that pass when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def played(replay: ReplaySession, clock: Clock, secs: float) -> list[Event]:
    clock.now += secs
    return replay.poll()


def test_events_come_when_their_time_has_come(tmp_path: Path) -> None:
    session = FakeEngines(tmp_path).new_session()
    session.write(*scripted_run(trials=16))
    session.lives = False
    clock = Clock()
    replay = ReplaySession(session, speed=2.0, clock=clock)
    first = played(replay, clock, 0.0)
    assert [event.time for event in first] == [START] and replay.alive()
    later = played(replay, clock, 2.0)
    assert later and max(event.time for event in later) <= START + 4.0
    replay.pause()
    assert played(replay, clock, 100.0) == []
    replay.resume()
    replay.speed = SPEEDS[-1]
    rest = played(replay, clock, 0.001)
    while replay.alive():
        rest += played(replay, clock, 0.001)
    assert isinstance(rest[-1], RunEnded)
    assert len(first) + len(later) + len(rest) == len(list(scripted_run(trials=16)))


def test_the_days_between_two_engines_are_skipped(tmp_path: Path) -> None:
    session = FakeEngines(tmp_path).new_session()
    start = next(event for event in scripted_run() if isinstance(event, RunStarted))
    session.write(start, RunEnded(START + 400_000, "done", 0, None, ""))
    session.lives = False
    clock = Clock()
    replay = ReplaySession(session, speed=1.0, clock=clock)
    played(replay, clock, 0.0)
    played(replay, clock, 0.5)
    assert len(played(replay, clock, 6.0)) == 1


def test_a_run_without_events_is_made_again_from_the_store(tmp_path: Path) -> None:
    trials = [event.trial for event in scripted_run() if isinstance(event, TrialEnded)]
    reader = FakeReader([run_row(7)], trials)
    session = StoredSession(reader, reader.run(7), tmp_path / "tune.sqlite")
    state = RunState()
    while events := session.poll():
        for event in events:
            state = fold(state, event)
    live = RunState()
    for event in scripted_run():
        live = fold(live, event)
    assert state.status == "done" and state.trials == live.trials
    assert state.tasks[0].top == live.tasks[0].top
    assert state.tasks[0].points == live.tasks[0].points


async def test_a_replay_is_paused_and_sped_up(tmp_path: Path) -> None:
    events = tmp_path / "old.jsonl"
    events.write_text("".join(encode(event) + "\n" for event in scripted_run()))
    reader = FakeReader([run_row(7)], events_path=str(events))
    app = TuneAssistApp(fake_services(tmp_path, reader=reader))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await pilot.press("h")
        await until(pilot, lambda: "✓ done" in screen_text(app))
        await pilot.press("p")
        await until(pilot, lambda: "▶ replay 16×" in screen_text(app))
        await pilot.press("p")
        await until(pilot, lambda: "‖ replay 16×" in screen_text(app))
        await pilot.press("plus", "p")
        await until(pilot, lambda: "▶ replay 64×" in screen_text(app))
        await pilot.press("plus", "plus")
        await until(pilot, lambda: "▣ replay over" in screen_text(app))
        assert "128/128 trials" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "tuneassist · history" in screen_text(app))


async def test_a_run_that_goes_on_is_followed_not_replayed(tmp_path: Path) -> None:
    rows = [run_row(7, status=RunStatus.RUNNING, alive=True)]
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader(rows)))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        app.open_run(7, replay=True)
        await until(pilot, lambda: "● starting" in screen_text(app))


async def test_a_continued_run_shows_what_was_measured_before(tmp_path: Path) -> None:
    trials = [event.trial for event in scripted_run(trials=48) if isinstance(event, TrialEnded)]
    row = run_row(7, status=RunStatus.INTERRUPTED, trials=32)
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader([row], trials[:32])))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await until(pilot, lambda: "interrupted" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "32/128 trials" in screen_text(app) and "best" in screen_text(app))
        session = app.services.engines.last  # type: ignore[attr-defined]
        session.write(
            run_started(trials=48, resumed=True, done=32), *[TrialEnded(START + 500, t) for t in trials[32:]]
        )
        await until(pilot, lambda: "48/48 trials" in screen_text(app))


async def test_a_resumed_run_that_is_attached_to_shows_it_too(tmp_path: Path) -> None:
    trials = [event.trial for event in scripted_run(trials=48) if isinstance(event, TrialEnded)]
    lines = [
        run_started(trials=48, resumed=True, done=32),
        *[TrialEnded(START + 500, t) for t in trials[32:]],
    ]
    events = tmp_path / "second.jsonl"
    events.write_text("".join(encode(event) + "\n" for event in lines))
    rows = [run_row(7, status=RunStatus.RUNNING, alive=True)]
    reader = FakeReader(rows, trials, events_path=str(events))
    app = TuneAssistApp(fake_services(tmp_path, reader=reader))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await until(pilot, lambda: "48/48 trials" in screen_text(app))
        await pilot.press("6")
        assert app.screen.snapshot.state.counts.total == 48  # type: ignore[attr-defined]
