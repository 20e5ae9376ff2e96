"""Devices that die, come back, refuse or can't run the code; what a run and the commands make of them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fault_kernels
import pytest
from batch_tools import SMALL, command, result_of, rows, tune, wait_for_no_process
from farm_tools import KEY, Farm, farm_of

from tuneassist.errors import MachineError
from tuneassist.records import TrialStatus
from tuneassist.tuning.farm import FarmMeasurer
from tuneassist.tuning.measuring import Limits, Outcome, Protocol
from tuneassist.tuning.roster import Roster
from tuneassist.tuning.workers import Workers

pytestmark = pytest.mark.tvm

LIMITS = Limits(build_secs=60.0, run_secs=3.0, memory_bytes=2 << 30)
NO_SUCH_CPU = '{"kind": "llvm", "mcpu": "bdver2", "num-cores": 1}'
"""A CPU with FMA4, which no CPU made since 2018 has."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with fault_kernels.workers(tmp_path_factory.mktemp("zygote")) as workers:
        yield workers


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """A farm of two that no test kills."""
    with farm_of(2, tmp_path_factory.mktemp("pair")) as farm:
        yield farm


class Watched:
    """A measurer of a farm, with what it says."""

    def __init__(
        self, farm: Farm, workers: Workers, folder: Path, target: str = fault_kernels.TARGET
    ) -> None:
        self.said: list[str] = []
        self.waits: list[bool] = []
        self.outcomes: dict[int, Outcome] = {}
        roster = Roster(farm.address, KEY, lambda level, text: self.said.append(text))
        self._measurer = FarmMeasurer(
            workers, tuple(sorted(os.sched_getaffinity(0))), Protocol(min_repeat_secs=0.001), roster=roster,
            target=target, folder=folder, on_waiting=self.waits.append,
        )  # fmt: skip

    def run(self, *kinds: str) -> list[Outcome]:
        jobs = [fault_kernels.job(kind) for kind in kinds]
        assert self._measurer.run(jobs, LIMITS, best_secs=None, on_outcome=self._take)
        return [self.outcomes[index] for index in range(len(jobs))]

    def _take(self, index: int, outcome: Outcome) -> None:
        assert index not in self.outcomes, "counted twice"
        self.outcomes[index] = outcome


def test_devices_killed_at_random_moments_cost_no_trial(workers: Workers, tmp_path: Path) -> None:
    rng = random.Random(20190426)
    with farm_of(4, tmp_path) as farm:
        ports = list(farm.ports)
        watched = Watched(farm, workers, tmp_path)

        def murder() -> None:
            while not watched.outcomes:
                time.sleep(0.05)
            for port in rng.sample(ports, 3):
                time.sleep(rng.uniform(0.1, 0.6))
                farm.kill(port)
            for port in ports:
                if port not in farm.ports:
                    farm.start(port)

        murderer = threading.Thread(target=murder)
        murderer.start()
        outcomes = watched.run(*["sleepy"] * 40)
        murderer.join()
    assert [outcome.status for outcome in outcomes] == [TrialStatus.OK] * 40
    assert len({outcome.device for outcome in outcomes}) > 1


def test_a_run_waits_for_a_device_and_goes_on_when_one_returns(workers: Workers, tmp_path: Path) -> None:
    with farm_of(1, tmp_path) as farm:
        (port,) = farm.ports
        watched = Watched(farm, workers, tmp_path)

        def reboot() -> None:
            while not watched.outcomes:
                time.sleep(0.05)
            farm.kill(port)
            while True not in watched.waits:
                time.sleep(0.05)
            farm.start(port)

        rebooter = threading.Thread(target=reboot)
        rebooter.start()
        outcomes = watched.run(*["sleepy"] * 12)
        rebooter.join()
    assert [outcome.status for outcome in outcomes] == [TrialStatus.OK] * 12
    assert watched.waits == [True, False]


def test_an_illegal_instruction_ends_its_trial_and_the_second_in_a_row_the_run(
    pair: Farm, workers: Workers, tmp_path: Path
) -> None:
    watched = Watched(pair, workers, tmp_path)
    illegal, good = watched.run("illegal", "good")
    assert illegal.status is TrialStatus.RUN_ERROR and "SIGILL" in (illegal.error or "")
    assert good.status is TrialStatus.OK
    watched = Watched(pair, workers, tmp_path)
    with pytest.raises(MachineError, match="2 candidates in a row ended in an illegal instruction"):
        watched.run(*["illegal"] * 6)
    assert 2 <= len(watched.outcomes) < 6


def test_a_device_of_another_cpu_is_refused_before_any_trial(
    pair: Farm, workers: Workers, tmp_path: Path
) -> None:
    watched = Watched(pair, workers, tmp_path, NO_SUCH_CPU)
    with pytest.raises(MachineError, match=r"can run this target's kernels.*SIGILL"):
        watched.run("good")
    assert not watched.outcomes


def test_a_run_measures_on_all_devices_and_says_which(pair: Farm) -> None:
    target = f'rpc:{KEY}@{pair.address}/{{"kind": "llvm", "num-cores": 1}}'
    result = result_of(tune("--workload", SMALL, "--target", target, "--trials", "16", "--seed", "1"))
    assert result["status"] == "done"
    (task,) = result["tasks"]
    assert (task["trials"], task["valid"], task["correct"]) == (16, 16, True)
    assert task["pytorch_secs"] is None and task["baseline_secs"] > 0
    assert result["machine"]["hostname"] == f"{KEY}@{pair.address}"
    devices = {row["device"] for row in rows("SELECT device FROM trials")}
    assert devices == {f"127.0.0.1:{port}" for port in pair.ports}
    wait_for_no_process()


def test_devices_lists_each_with_its_reference_time(pair: Farm) -> None:
    done = subprocess.run(command("devices", str(pair.address), "--json"), capture_output=True, text=True)
    (key,) = json.loads(done.stdout)["keys"]
    assert (key["key"], key["total"], key["free"], key["waiting"]) == (KEY, 2, 2, 0)
    assert {device["device"] for device in key["devices"]} == {f"127.0.0.1:{port}" for port in pair.ports}
    for device in key["devices"]:
        assert device["error"] is None and device["correct"]
        assert device["reference_secs"] > 0 and device["noise"] >= 0 and device["round_trip_secs"] > 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("rpc:nosuch@{address}/llvm -num-cores 1", "no device with the key 'nosuch'"),
        ("rpc:nosuch@127.0.0.1:{device}/llvm -num-cores 1", "is no RPC tracker"),
        ("rpc:nosuch@{address}/vulkan", "was built without it"),
    ],
)
def test_a_target_that_can_not_be_measured_is_refused_at_once(pair: Farm, target: str, words: str) -> None:
    spec = target.format(address=pair.address, device=next(iter(pair.ports)))
    done = tune("--workload", SMALL, "--target", spec, "--trials", "8")
    assert done.returncode == MachineError.exit_code
    assert words in result_of(done)["error"]
