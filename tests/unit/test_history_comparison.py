"""Comparison of runs: ratios, their intervals, and how soon each got there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from store_rows import MACHINE, add_task, failed, ok, start_run

from tuneassist.errors import UsageError
from tuneassist.records import TrialStatus
from tuneassist.storage.comparison import compare, ratio_interval
from tuneassist.storage.memory import memory_store


def test_ratios_and_time_to_the_common_latency() -> None:
    with memory_store() as store:
        slow, fast = start_run(store), start_run(store)
        only = add_task(store, fast.run, "conv2d")
        store.add_trial(ok(slow, 1, 0.8))
        store.add_trial(ok(slow, 2, 0.4))
        store.add_trial(failed(fast, 1, TrialStatus.RUN_ERROR))
        store.add_trial(ok(fast, 2, 0.3))
        store.add_trial(ok(fast, 3, 0.2))
        store.add_trial(ok(replace(fast, task=only), 4, 9.0))
        store.connection.execute("UPDATE runs SET started_at = 990.0")
        found = compare(store.connection, [slow.run, fast.run], "db")
    (task,) = found.tasks
    base, other = task.runs
    assert base.ratio == 1.0
    assert other.ratio == pytest.approx(2.0)
    assert other.ratio_low is not None
    assert other.ratio_high is not None
    assert other.ratio_low < 2.0 < other.ratio_high
    assert other.common_secs == 0.4
    assert (base.trials_to_common, base.secs_to_common) == (2, 12.0)
    assert (other.trials_to_common, other.secs_to_common) == (2, 12.0)
    assert found.geomean_ratios[0] == 1.0
    assert found.geomean_ratios[1] == pytest.approx(2.0)
    assert found.same_place


def test_run_without_a_measurement_has_no_ratio() -> None:
    with memory_store() as store:
        one, none = start_run(store), start_run(store, machine=replace(MACHINE, hostname="lab7"))
        store.add_trial(ok(one, 1, 0.8))
        found = compare(store.connection, [none.run, one.run], "db")
    assert [row.ratio for row in found.tasks[0].runs] == [None, None]
    assert [row.trials_to_common for row in found.tasks[0].runs] == [None, None]
    assert found.geomean_ratios == (None, None)
    assert not found.same_place


def test_workload_that_the_first_run_lacks_is_compared_with_the_next() -> None:
    with memory_store() as store:
        places = [start_run(store, name) for name in ("matmul", "conv2d", "conv2d")]
        for place, secs in zip(places, (1.0, 4.0, 2.0), strict=True):
            store.add_trial(ok(place, 1, secs))
        found = compare(store.connection, [place.run for place in places], "db")
    assert [[row.ratio for row in task.runs] for task in found.tasks] == [[1.0, 2.0]]
    assert found.geomean_ratios == (None, None, None)


def test_unknown_run() -> None:
    with memory_store() as store, pytest.raises(UsageError, match="no run 7"):
        compare(store.connection, [start_run(store).run, 7], "db")


def test_interval_covers_the_true_ratio_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        base, other = np.exp(draw.normal(0.0, 0.05, 5)) * 2.0, np.exp(draw.normal(0.0, 0.02, 5))
        ratio = float(np.exp(np.mean(np.log(base)) - np.mean(np.log(other))))
        low, high = ratio_interval(base.tolist(), other.tolist(), ratio)
        assert low is not None
        assert high is not None
        covered += low < 2.0 < high
    assert 0.91 < covered / 400 < 0.985


def test_interval_needs_two_repeats_and_knows_equal_ones() -> None:
    assert ratio_interval([1.0], [1.0, 2.0], 1.0) == (None, None)
    assert ratio_interval([], [], 1.0) == (None, None)
    assert ratio_interval([2.0, 2.0], [1.0, 1.0], 2.0) == (2.0, 2.0)
