"""Valid trials a minute of tuneassist against stock MetaSchedule, start-up included.

Each repeat runs both on each workload, one after the other, so that a change of the machine's speed meets
both. Prints one JSON object; run it with nothing else on the machine.

    python tests/bench/bench_throughput.py --repeats 3 > throughput.json
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WORKLOADS = ("resnet18.c2", "resnet18.c5", "matmul:m=512,n=512,k=512")
HERE = Path(__file__).parent


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--workload", action="append", help=f"instead of {', '.join(WORKLOADS)}")
    arguments = parser.parse_args()
    workloads = arguments.workload or list(WORKLOADS)
    with tempfile.TemporaryDirectory() as folder:
        target = _target(Path(folder))
        rounds = {
            workload: [_pair(workload, arguments.trials, seed, target, Path(folder)) for seed in
                       range(1, arguments.repeats + 1)]
            for workload in workloads
        }  # fmt: skip
    summary = {workload: _summary(pairs) for workload, pairs in rounds.items()}
    ratios = [entry["ratio_median"] for entry in summary.values()]
    machine = {"cpu": _cpu(), "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    print(json.dumps({
        "bench": "throughput",
        "machine": machine,
        "target": json.loads(target),
        "trials": arguments.trials,
        "repeats": arguments.repeats,
        "geometric_mean_ratio": math.exp(statistics.fmean(map(math.log, ratios))),
        "lowest_ratio": min(ratios),
        "workloads": summary,
    }, indent=1))  # fmt: skip


def _target(folder: Path) -> str:
    """The target that tuneassist resolves `native` to, which stock is then given too.

    Done beforehand and kept in the store, since it happens once per machine.
    """
    result = _tuneassist("matmul:m=64,n=64,k=64", 8, 1, folder / "store.sqlite")
    target = {key: value for key, value in result["target"].items() if key not in ("spec", "note")}
    return json.dumps(target)


def _pair(workload: str, trials: int, seed: int, target: str, folder: Path) -> dict[str, Any]:
    started = time.monotonic()
    stock = _json_of([
        sys.executable, str(HERE / "stock_metaschedule.py"), workload, "--trials", str(trials),
        "--seed", str(seed), "--target", target,
    ])  # fmt: skip
    stock_wall = time.monotonic() - started
    started = time.monotonic()
    ours = _tuneassist(workload, trials, seed, folder / "store.sqlite")
    ours_wall = time.monotonic() - started
    (task,) = ours["tasks"]
    return {
        "stock": {
            "valid": stock["valid"],
            "wall_secs": round(stock_wall, 2),
            "first_secs": stock["first_secs"],
            "best_secs": stock["best_secs"],
        },
        "tuneassist": {
            "valid": task["valid"],
            "wall_secs": round(ours_wall, 2),
            "first_secs": ours["first_measurement_secs"],
            "best_secs": task["best_secs"],
            "spearman": task["spearman"],
            "phase_secs": ours["phase_secs"],
        },
        "ratio": (task["valid"] / ours_wall) / (stock["valid"] / stock_wall),
    }


def _tuneassist(workload: str, trials: int, seed: int, db: Path) -> dict[str, Any]:
    return _json_of([
        sys.executable, "-m", "tuneassist", "--batch", "--json", "--quiet", "--workload", workload,
        "--trials", str(trials), "--seed", str(seed), "--no-history", "--db", str(db),
    ])  # fmt: skip


def _json_of(command: list[str]) -> dict[str, Any]:
    # TVM would otherwise run kernels on one thread where it can't tell the cores: give stock both.
    environment = {**os.environ, "TVM_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if finished.returncode:
        sys.exit(f"{' '.join(command)}\nended with {finished.returncode}: {finished.stderr[-2000:]}")
    # Stock logs on stdout too: its result is the last line. Ours is the only thing there.
    text = finished.stdout if finished.stdout.startswith("{\n") else finished.stdout.strip().splitlines()[-1]
    value: dict[str, Any] = json.loads(text)
    return value


def _summary(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    ratios = [pair["ratio"] for pair in pairs]
    return {
        "ratio_median": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "best_secs_ratio_median": statistics.median(
            pair["stock"]["best_secs"] / pair["tuneassist"]["best_secs"] for pair in pairs
        ),
        "pairs": pairs,
    }


def _cpu() -> str:
    text = Path("/proc/cpuinfo").read_text()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
