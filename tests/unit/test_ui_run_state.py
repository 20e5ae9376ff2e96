"""The run as a viewer knows it, folded from events."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tuneassist import events as ev
from tuneassist.records import Round, Trial, TrialStatus
from tuneassist.ui.run_state import LOG_LINES, RunState, fold
from tuneassist.ui.series import Thinned, tail

START = 1000.0


def started(trials: int = 100, *, done: int = 0) -> ev.RunStarted:
    task = ev.TaskStarted(1, "resnet18.c2", "conv2d:...", "conv2d", 2, 2_000_000, done)
    return ev.RunStarted(
        START, 3, "/db", {"kind": "llvm"}, "", {"cores": 2}, "gcn", 0, trials, None, 100.0, (task,)
    )


def trial(ordinal: int, secs: float | None = 1e-3, **changes: object) -> ev.TrialEnded:
    status = TrialStatus.OK if secs is not None else TrialStatus.RUN_ERROR
    record = Trial(
        3, 1, ordinal, 1 + ordinal // 10, status, "[]", (secs,) * 3 if secs else None, secs,
        secs * 1.5 if secs else None, error=None if secs else "signal 11",
    )  # fmt: skip
    return ev.TrialEnded(START + ordinal, replace(record, **changes))  # type: ignore[arg-type]


def state_after(*events: ev.Event) -> RunState:
    state = RunState()
    for event in events:
        state = fold(state, event)
    return state


def test_best_counts_and_speed_of_a_run() -> None:
    events = [
        started(),
        ev.BaselineMeasured(START, 1, "untuned", 8e-3),
        trial(1, 4e-3),
        trial(2, None),
        trial(3, 2e-3),
    ]
    state = state_after(*events, trial(4, 3e-3))
    task = state.tasks[0]
    assert (task.best_secs, task.best_trial) == (2e-3, 3)
    assert task.counts.ok == 3 and task.counts.by_failure() == (("run_error", 1),)
    assert task.speedup(task.untuned_secs) == pytest.approx(4.0)
    assert task.gflops == pytest.approx(1.0)
    assert state.trials == 4
    assert state.trials_per_minute == pytest.approx(60.0)
    assert state.eta_secs == pytest.approx(96.0)
    assert state.eta_after(3.0) == pytest.approx(192.0)


def test_a_time_budget_bounds_the_eta() -> None:
    events = [replace(started(), time_budget_secs=10.0), trial(1), trial(2), trial(3)]
    assert state_after(*events).eta_secs == pytest.approx(7.0)
    assert state_after(*events).eta_after(5.0) == pytest.approx(2.0)


def test_a_wrong_result_is_no_best() -> None:
    state = state_after(started(), trial(1, 2e-3, correct=False), trial(2, 3e-3))
    assert state.tasks[0].best_trial == 2


def test_a_confirmed_winner_that_is_wrong_loses_its_place() -> None:
    first = ev.TrialConfirmed(START + 9, 1, 1, 1.1e-3, False, 0.5, "differs at [0, 3]")
    second = ev.TrialConfirmed(START + 10, 1, 2, 2.2e-3, True, 1e-7)
    state = state_after(started(), trial(1, 1e-3), trial(2, 2e-3), first, second)
    assert (state.tasks[0].best_secs, state.tasks[0].best_trial) == (2.2e-3, 2)
    assert "wrong" in next(line for line in state.log if line.level == "error").text


def test_events_read_twice_count_once() -> None:
    record = Round(3, 1, 1, 2, 2, 0.5, 0.7, {"build": 2.0}, 100, START + 5)
    events = [
        ev.EngineStarted(START, 5, "0.1"),
        started(),
        trial(1),
        trial(2),
        ev.RoundEnded(START + 5, record),
    ]
    once = state_after(*events)
    assert state_after(*events, *events) == once


def test_a_resumed_run_counts_the_trials_of_before() -> None:
    state = state_after(started(100, done=40), trial(41), trial(42))
    assert state.trials == 42 and state.tasks[0].counts.ok == 2


def test_neither_pauses_nor_gaps_between_engines_are_work() -> None:
    events = [
        ev.PhaseChanged(START, "search"), ev.PhaseChanged(START + 10, "paused"),
        ev.PhaseChanged(START + 500, "search"), trial(20), ev.EngineStarted(START + 9000, 6, "0.1"),
        ev.PhaseChanged(START + 9001, "search"),
    ]  # fmt: skip
    state = state_after(*events)
    assert state.elapsed_secs == pytest.approx(11.0)
    assert dict(state.phase_secs())["search"] == pytest.approx(11.0)


def test_the_engines_own_sums_beat_the_timeline() -> None:
    record = Round(3, 1, 1, 2, 2, None, None, {"build": 2.0}, 100, START + 5)
    events = [ev.PhaseChanged(START, "build"), ev.RoundEnded(START + 50, record)]
    assert dict(state_after(*events).phase_secs()) == {"build": 2.0}


def test_an_unknown_task_is_shown_by_its_number() -> None:
    assert state_after(trial(1)).tasks[0].name == "task 1"


def test_memory_is_bounded() -> None:
    state = RunState()
    state = fold(state, started(50_000))
    sizes = []
    for ordinal in range(1, 20_001):
        state = fold(state, trial(ordinal, 1.0 / ordinal))
        if ordinal in (5_000, 20_000):
            sizes.append(_items(state))
    assert sizes[1] <= sizes[0] * 1.3
    assert state.tasks[0].counts.ok == 20_000
    assert len(state.log) == LOG_LINES
    assert sys.getsizeof(state.tasks[0].points.items) < 10_000


def _items(state: RunState) -> int:
    task = state.tasks[0]
    return sum(
        len(s) for s in (task.points.items, task.best.items, state.progress.items, state.log, state.recent)
    )


def test_garbled_values_raise_and_change_nothing() -> None:
    state = state_after(started(), trial(1))
    for event in (
        ev.TrialEnded(START, Trial(3, 1, "x", 1, TrialStatus.OK, "[]")),  # type: ignore[arg-type]
        ev.PhaseChanged("noon", "search"),  # type: ignore[arg-type]
        ev.RunStarted(START, 3, "", None, "", {}, "", 0, 1, None, None, ()),  # type: ignore[arg-type]
    ):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            fold(state, event)


@pytest.mark.parametrize("secs", [float("nan"), float("inf"), 0.0, -1.0, "1"])
def test_impossible_latencies_are_never_the_best(secs: object) -> None:
    state = state_after(started(), trial(1, 1e-3, best_of=secs))
    assert state.tasks[0].best_secs is None


def test_thinned_keeps_first_last_and_spread() -> None:
    series: Thinned[int] = Thinned(cap=10)
    for number in range(1000):
        series = series.add(number)
    kept = series.all()
    assert len(kept) <= 11 and kept[0] == 0 and kept[-1] == 999
    gaps = {b - a for a, b in itertools.pairwise(kept[:-1])}
    assert len(gaps) == 1


def test_tail_drops_the_oldest() -> None:
    assert tail((1, 2, 3), 4, 3) == (2, 3, 4)


def test_fold_is_pure_over_the_data_file(tmp_path: Path) -> None:
    events = [started(), trial(1), trial(2, None)]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(ev.encode(event) + "\n" for event in events))
    read = [ev.decode(line) for line in path.read_text().splitlines()]
    assert state_after(*[event for event in read if event is not None]) == state_after(*events)
