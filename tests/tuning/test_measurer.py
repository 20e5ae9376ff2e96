"""What holds wherever candidates are measured: on this machine, and on devices behind a tracker.

Candidates run in processes of their own: what goes wrong in one is that trial's status and nothing else.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fault_kernels
import psutil
import pytest
from farm_tools import KEY, Farm, farm_of

from tuneassist.records import TrialStatus
from tuneassist.tuning.farm import FarmMeasurer
from tuneassist.tuning.measurer import LocalMeasurer
from tuneassist.tuning.measuring import Job, Limits, Measurer, Outcome, Protocol
from tuneassist.tuning.roster import Roster
from tuneassist.tuning.workers import Workers

pytestmark = pytest.mark.tvm

LIMITS = Limits(build_secs=60.0, run_secs=3.0, memory_bytes=2 << 30)
MakeMeasurer = Callable[..., Measurer]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with fault_kernels.workers(tmp_path_factory.mktemp("zygote")) as workers:
        yield workers


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with farm_of(2, tmp_path_factory.mktemp("farm")) as farm:
        yield farm


@pytest.fixture(params=["local", "farm"])
def make_measurer(request: pytest.FixtureRequest, workers: Workers, tmp_path: Path) -> MakeMeasurer:
    protocol = Protocol(min_repeat_secs=0.001)
    if request.param == "local":
        return lambda cores, **hooks: LocalMeasurer(workers, cores, protocol, **hooks)
    farm: Farm = request.getfixturevalue("farm")

    def make(cores: tuple[int, ...], **hooks: Any) -> Measurer:
        roster = Roster(farm.address, KEY, lambda level, text: None)
        return FarmMeasurer(
            workers, cores, protocol, roster=roster, target=fault_kernels.TARGET, folder=tmp_path, **hooks
        )

    return make


@pytest.fixture
def measurer(make_measurer: MakeMeasurer) -> Measurer:
    return make_measurer(tuple(sorted(os.sched_getaffinity(0))))


def outcomes_of(measurer: Measurer, jobs: list[Job], limits: Limits = LIMITS) -> list[Outcome]:
    found: dict[int, Outcome] = {}

    def on_outcome(index: int, outcome: Outcome) -> None:
        assert index not in found, "counted twice"
        found[index] = outcome

    assert measurer.run(jobs, limits, best_secs=None, on_outcome=on_outcome)
    return [found[index] for index in range(len(jobs))]


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("segfault", TrialStatus.RUN_ERROR, "SIGSEGV"),
        ("abort", TrialStatus.RUN_ERROR, "SIGABRT"),
        ("hang", TrialStatus.RUN_TIMEOUT, ""),
        ("nan", TrialStatus.RUN_ERROR, "NaN"),
        ("hungry", TrialStatus.RUN_ERROR, "memory"),
        ("unbuildable", TrialStatus.BUILD_ERROR, "Error: "),
    ],
)
def test_a_failing_candidate_costs_only_itself(
    measurer: Measurer, kind: str, status: TrialStatus, words: str
) -> None:
    before, failed, after = outcomes_of(
        measurer, [fault_kernels.job("good"), fault_kernels.job(kind), fault_kernels.job("good")]
    )
    assert failed.status is status
    assert failed.error and words.lower() in failed.error.lower()
    assert failed.run_secs is None
    for good in (before, after):
        assert good.status is TrialStatus.OK and good.error is None
        assert good.run_secs is not None and len(good.run_secs) == 3 and min(good.run_secs) > 0
        assert good.median_secs == sorted(good.run_secs)[1]
        assert (good.device is None) is measurer.local


def test_a_build_that_takes_too_long_is_killed(measurer: Measurer) -> None:
    limits = Limits(build_secs=0.0, run_secs=3.0, memory_bytes=2 << 30)
    (outcome,) = outcomes_of(measurer, [fault_kernels.job("good")], limits)
    assert outcome.status is TrialStatus.BUILD_TIMEOUT


def test_a_clearly_slow_candidate_is_measured_shortly_and_marked(measurer: Measurer) -> None:
    found: list[Outcome] = []
    measurer.run(
        [fault_kernels.job("good")],
        LIMITS,
        best_secs=1e-12,
        on_outcome=lambda _, outcome: found.append(outcome),
    )
    assert found[0].status is TrialStatus.OK
    assert found[0].slow and found[0].run_secs is not None and len(found[0].run_secs) == 3


def test_the_checkpoint_ends_a_batch_between_trials(make_measurer: MakeMeasurer) -> None:
    done: list[int] = []
    measurer = make_measurer((0,), checkpoint=lambda: len(done) >= 2)
    finished = measurer.run(
        [fault_kernels.job("good")] * 8,
        LIMITS,
        best_secs=None,
        on_outcome=lambda index, _: done.append(index),
    )
    assert not finished
    # One at a time here; each device may be in the middle of one.
    assert len(done) == len(set(done)) and 2 <= len(done) <= (2 if measurer.local else 3)


def test_a_zygote_that_dies_is_replaced_and_no_job_is_lost(make_measurer: MakeMeasurer) -> None:
    killed: list[int] = []

    def kill_once() -> bool:
        if not killed:
            zygotes = [p for p in psutil.Process().children() if "tuneassist.tuning.zygote" in p.cmdline()]
            killed.append(zygotes[0].pid)
            os.kill(zygotes[0].pid, signal.SIGKILL)
        return False

    measurer = make_measurer((0,), checkpoint=kill_once)
    outcomes = outcomes_of(measurer, [fault_kernels.job("good")] * 4)
    assert killed
    assert [outcome.status for outcome in outcomes] == [TrialStatus.OK] * 4


def test_what_happens_before_measuring_happens_once_and_first(measurer: Measurer) -> None:
    seen: list[str] = []
    measurer.run(
        [fault_kernels.job("good")] * 3,
        LIMITS,
        best_secs=None,
        on_outcome=lambda index, _: seen.append("outcome"),
        before_measuring=lambda: seen.append("before"),
    )
    assert seen == ["before", "outcome", "outcome", "outcome"]


def test_an_open_job_is_measured_again_and_checked(measurer: Measurer, tmp_path: Path) -> None:
    reference = tmp_path / "reference.npy"
    (opened,) = measurer.open([fault_kernels.job("good")], LIMITS)
    assert not isinstance(opened, Outcome)
    assert opened.measure().status is TrialStatus.OK
    assert opened.measure(quick=True).status is TrialStatus.OK
    opened.check(reference, rtol=0.0, atol=0.0, save=True)
    opened.close()

    same, wrong = measurer.open([fault_kernels.job("good"), fault_kernels.job("nan")], LIMITS)
    assert not isinstance(same, Outcome) and not isinstance(wrong, Outcome)
    assert same.check(reference, rtol=1e-6, atol=0.0)["correct"]
    same.close()

    assert not wrong.check(reference, rtol=1e-6, atol=0.0)["correct"]
    wrong.close()


def test_no_process_is_left_behind(measurer: Measurer, workers: Workers) -> None:
    outcomes_of(measurer, [fault_kernels.job("hang"), fault_kernels.job("good")])
    zygote = next(p for p in psutil.Process().children() if "tuneassist.tuning.zygote" in p.cmdline())
    deadline = time.monotonic() + 10
    while zygote.children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert zygote.children() == []
