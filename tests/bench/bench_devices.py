"""Trials a minute with one device against four, on loopback: 1 tracker, kernels that sleep 0.2 s.

Run it on an idle machine: python tests/bench/bench_devices.py [--trials 24]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tuning"))

import fault_kernels
from farm_tools import KEY, Farm, farm_of

from tuneassist.records import TrialStatus
from tuneassist.tuning.farm import FarmMeasurer
from tuneassist.tuning.inputs import save_inputs
from tuneassist.tuning.measuring import Limits, Outcome, Protocol
from tuneassist.tuning.roster import Roster
from tuneassist.tuning.workers import Workers

_WANTED = 3.5


def rate(farm: Farm, workers: Workers, folder: Path, trials: int) -> float:
    """Trials a minute, from the first to the last: each device has been checked in before."""
    roster = Roster(farm.address, KEY, lambda level, text: None)
    measurer = FarmMeasurer(
        workers, tuple(sorted(os.sched_getaffinity(0))), Protocol(min_repeat_secs=0.001), roster=roster,
        target=fault_kernels.TARGET, folder=folder,
    )  # fmt: skip
    limits = Limits(build_secs=60.0, run_secs=10.0, memory_bytes=2 << 30)
    ended: list[float] = []

    def on_outcome(index: int, outcome: Outcome) -> None:
        assert outcome.status is TrialStatus.OK, outcome.error
        ended.append(time.monotonic())

    # The first batch checks the devices in.
    measurer.run(
        [fault_kernels.job("sleepy")] * len(farm.ports), limits, best_secs=None, on_outcome=on_outcome
    )
    started = time.monotonic()
    measurer.run([fault_kernels.job("sleepy")] * trials, limits, best_secs=None, on_outcome=on_outcome)
    return 60.0 * trials / (ended[-1] - started)


def main() -> int:
    """Print both rates and their ratio as JSON; exit code 1 where the ratio is too small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=24)
    trials: int = parser.parse_args().trials
    fault_kernels.SLEEP_SECS = 0.2
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_inputs(folder / "inputs.npz", fault_kernels.inputs())
        workers = Workers("llvm", tuple(sorted(os.sched_getaffinity(0))), folder / "log")
        workers.start()
        try:
            workers.wait_ready()
            workers.set_inputs(folder / "inputs.npz")
            for devices in (1, 4):
                with farm_of(devices, folder) as farm:
                    rates[devices] = rate(farm, workers, folder, trials)
        finally:
            workers.stop()
    ratio = rates[4] / rates[1]
    print(json.dumps({"trials_a_minute": rates, "ratio": round(ratio, 2), "wanted": _WANTED}))
    return 0 if ratio >= _WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
