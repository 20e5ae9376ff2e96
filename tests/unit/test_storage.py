"""The contract of `storage/base.py`, over every form of the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from store_rows import MACHINE, TARGET, add_task, failed, ok, start_run

from tuneassist.errors import StoreError, UsageError
from tuneassist.records import Round, RunSettings, RunStatus, TrialStatus
from tuneassist.storage.base import Store
from tuneassist.storage.memory import memory_store
from tuneassist.storage.sqlite import SqliteStore, open_store


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store(tmp_path / "t.sqlite") if request.param == "sqlite" else memory_store()
    with store:
        yield store


def test_every_form_is_a_store(store: SqliteStore) -> None:
    typed: Store = store
    assert typed.path


def test_equal_rows_share_an_id(store: SqliteStore) -> None:
    assert store.machine_id(MACHINE) == store.machine_id(MACHINE)
    assert store.machine_id(MACHINE) != store.machine_id(replace(MACHINE, cores=2))
    assert store.target_id(TARGET) == store.target_id(replace(TARGET, spec="written otherwise"))
    first = store.workload_id(hash="h", name="a", spec="s", op="o", flops=1, mod_json="{}")
    assert first == store.workload_id(hash="h", name="b", spec="t", op="p", flops=2, mod_json="[]")
    assert store.machine(store.machine_id(MACHINE)) == MACHINE
    assert store.target(store.target_id(TARGET)) == TARGET


def test_run_comes_back_as_created(store: SqliteStore) -> None:
    settings = RunSettings(workloads=("a", "b"), trials=7, seed=3, cores=(0, 2), time_budget_secs=1.5)
    place = start_run(store, settings=settings, pid=5, pid_started=6.5)
    run = store.run(place.run)
    assert (run.status, run.pid, run.pid_started, run.ended_at) == (RunStatus.RUNNING, 5, 6.5, None)
    assert (run.trials_requested, run.seed, run.events_path) == (7, 3, "events.jsonl")
    assert store.settings(place.run) == settings


def test_settings_of_a_newer_release_are_read_without_what_is_new(store: SqliteStore) -> None:
    place = start_run(store)
    text = '{"trials": 9, "from_the_future": [1]}'
    store.connection.execute("UPDATE runs SET config_json = ?", (text,))
    assert store.settings(place.run) == RunSettings(trials=9)


def test_settings_that_are_none_are_an_error(store: SqliteStore) -> None:
    place = start_run(store)
    store.connection.execute("UPDATE runs SET config_json = '[1]'")
    with pytest.raises(StoreError, match="settings"):
        store.settings(place.run)


def test_ended_run_has_result_and_no_engine(store: SqliteStore) -> None:
    place = start_run(store)
    store.set_run_status(place.run, RunStatus.PAUSED)
    assert store.run(place.run).status is RunStatus.PAUSED
    store.end_run(place.run, RunStatus.DONE, result_json='{"a":1}')
    run = store.run(place.run)
    assert (run.status, run.pid, run.result_json) == (RunStatus.DONE, None, '{"a":1}')
    assert run.ended_at is not None
    assert run.ended_at >= run.started_at


def test_unknown_run_names_the_nearest(store: SqliteStore) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        store.run(1)
    ids = [start_run(store).run for _ in range(5)]
    with pytest.raises(UsageError) as caught:
        store.run(99)
    assert caught.value.remedy.startswith(f"Nearest: {ids[2]}, {ids[3]}, {ids[4]}")


def test_run_of_a_live_engine_can_not_be_claimed(store: SqliteStore) -> None:
    me = psutil.Process(os.getpid())
    place = start_run(store, pid=me.pid, pid_started=me.create_time())
    with pytest.raises(StoreError, match=f"process {me.pid}"):
        store.claim_run(place.run, pid=1, pid_started=1.0, events_path="other")
    assert store.run(place.run).pid == me.pid
    store.claim_run(place.run, pid=me.pid, pid_started=me.create_time(), events_path="again")
    assert store.run(place.run).events_path == "again"


def test_run_of_a_dead_engine_is_claimed(store: SqliteStore) -> None:
    me = psutil.Process(os.getpid())
    # Our own id with another start time: the id was given again.
    place = start_run(store, pid=me.pid, pid_started=me.create_time() - 3600)
    store.end_run(place.run, RunStatus.INTERRUPTED, result_json="{}")
    store.claim_run(place.run, pid=me.pid, pid_started=me.create_time(), events_path="mine")
    run = store.run(place.run)
    assert (run.status, run.events_path, run.ended_at, run.result_json) == (
        RunStatus.RUNNING, "mine", None, None,
    )  # fmt: skip


def test_tasks_carry_their_workload_and_baselines(store: SqliteStore) -> None:
    place = start_run(store, "matmul")
    second = add_task(store, place.run, "conv2d", weight=3)
    store.set_task_baseline(place.task, untuned_secs=0.5)
    store.set_task_baseline(place.task, pytorch_secs=0.25)
    store.set_task_error(second, "dynamic shape")
    first, other = store.tasks(place.run)
    assert (first.name, first.workload_hash, first.flops) == ("matmul", "hash of matmul", 1000)
    assert (first.untuned_secs, first.pytorch_secs, first.error) == (0.5, 0.25, None)
    assert (other.id, other.weight, other.error) == (second, 3, "dynamic shape")


def test_trials_come_back_whole_and_in_order(store: SqliteStore) -> None:
    place = start_run(store)
    whole = ok(
        place, 2, 0.5, predicted_secs=0.4, score=1.5, build_secs=0.1, source="random", slow=True,
        correct=True, peak_rss_bytes=123, module_hash="abc", round=4,
    )  # fmt: skip
    broken = failed(place, 1, TrialStatus.BUILD_TIMEOUT, "took\ntoo long")
    ids = [store.add_trial(whole), store.add_trial(broken)]
    assert store.trials(place.run) == [replace(broken, id=ids[1]), replace(whole, id=ids[0])]
    assert store.last_ordinal(place.run) == 2


def test_trials_by_task_and_after_an_ordinal(store: SqliteStore) -> None:
    place = start_run(store)
    other = replace(place, task=add_task(store, place.run, "conv2d"))
    assert store.last_ordinal(place.run) == 0
    assert store.add_trials(ok(place if n % 2 else other, n, 1.0) for n in range(1, 7)) == 6
    assert [t.ordinal for t in store.trials(place.run, after_ordinal=4)] == [5, 6]
    assert [t.ordinal for t in store.trials(place.run, task_id=other.task, after_ordinal=2)] == [4, 6]


def test_an_ordinal_is_given_once(store: SqliteStore) -> None:
    place = start_run(store)
    store.add_trial(ok(place, 1, 1.0))
    with pytest.raises(StoreError, match="refuses a row"):
        store.add_trial(ok(place, 1, 0.5))
    with pytest.raises(StoreError, match="refuses a row"):
        store.add_trials([ok(place, 2, 0.5), ok(place, 2, 0.5)])
    assert [t.best_of for t in store.trials(place.run)] == [1.0]


def test_long_error_text_loses_its_middle(store: SqliteStore) -> None:
    place = start_run(store)
    store.add_trial(failed(place, 1, TrialStatus.BUILD_ERROR, "first line\n" + "x" * 50_000 + "\nlast line"))
    error = store.trials(place.run)[0].error
    assert error is not None
    assert len(error) < 5000
    assert error.startswith("first line")
    assert error.endswith("last line")


def test_top_trials_are_fast_valid_and_of_this_place(store: SqliteStore) -> None:
    place = start_run(store)
    again = start_run(store)
    elsewhere = start_run(store, machine=replace(MACHINE, hostname="other"))
    store.add_trial(ok(elsewhere, 1, 0.001))
    store.add_trial(failed(place, 1, TrialStatus.RUN_ERROR))
    wrong = store.add_trial(ok(place, 2, 0.01))
    store.set_correct(wrong, False)
    for ordinal, secs in ((3, 0.5), (4, 0.2), (5, 0.4)):
        store.add_trial(ok(place, ordinal, secs))
    store.add_trial(ok(again, 1, 0.3))

    def top(limit: int, run_id: int | None = None) -> list[float | None]:
        found = store.top_trials(
            "hash of matmul", target_id=place.target, machine_id=place.machine, limit=limit, run_id=run_id
        )
        return [trial.best_of for trial in found]

    assert top(3) == [0.2, 0.3, 0.4]
    assert top(10) == [0.2, 0.3, 0.4, 0.5]
    assert top(10, run_id=again.run) == [0.3]
    assert store.top_trials("nothing", target_id=place.target, machine_id=place.machine, limit=9) == []


def test_measured_trials_newest_run_first_failures_included(store: SqliteStore) -> None:
    old, new = start_run(store), start_run(store)
    for ordinal in (1, 2, 3):
        store.add_trial(ok(old, ordinal, 1.0))
    store.add_trial(ok(new, 1, 1.0))
    store.add_trial(failed(new, 2, TrialStatus.DUPLICATE))
    store.add_trial(ok(start_run(store, "conv2d"), 1, 1.0))

    def order(limit: int | None) -> list[tuple[int, int]]:
        found = store.measured_trials(
            "hash of matmul", target_id=old.target, machine_id=old.machine, limit=limit
        )
        return [(trial.run_id, trial.ordinal) for trial in found]

    everything = [(new.run, 1), (new.run, 2), (old.run, 1), (old.run, 2), (old.run, 3)]
    assert order(None) == everything
    assert [order(limit) for limit in range(6)] == [everything[:limit] for limit in range(6)]


def test_measuring_again_changes_the_ranking(store: SqliteStore) -> None:
    place = start_run(store)
    lucky, steady = store.add_trial(ok(place, 1, 0.1)), store.add_trial(ok(place, 2, 0.2))
    store.update_measurement(lucky, run_secs=(0.3, 0.3, 0.4), best_of=0.3)
    first, second = store.top_trials(
        "hash of matmul", target_id=place.target, machine_id=place.machine, limit=2
    )
    assert (first.id, second.id, second.run_secs) == (steady, lucky, (0.3, 0.3, 0.4))


def test_rounds_in_order_and_written_again_after_a_kill(store: SqliteStore) -> None:
    place = start_run(store)
    rounds = [Round(place.run, place.task, n, 8, 6, 0.5, None, {"build": 1.5}, 99, 10.0) for n in (1, 2)]
    for record in reversed(rounds):
        store.add_round(record)
    assert store.rounds(place.run) == rounds
    store.add_round(replace(rounds[1], trials=9))
    assert [r.trials for r in store.rounds(place.run)] == [8, 9]


def test_facts_about_a_machine(store: SqliteStore) -> None:
    machine = store.machine_id(MACHINE)
    assert store.machine_fact(machine, "peak_gflops") is None
    store.set_machine_fact(machine, "peak_gflops", {"4": 123.5})
    store.set_machine_fact(machine, "peak_gflops", {"4": 130.0})
    assert store.machine_fact(machine, "peak_gflops") == {"4": 130.0}
