"""Stock MetaSchedule on one workload of the catalogue: what tuneassist is measured against.

Defaults of `tune_tir` with XGB. The one repair is the import of the tensor intrinsics, in this process and
in the builder's workers: without it every build times out once torch is installed. Prints one JSON object.

    python tests/bench/stock_metaschedule.py resnet18.c2 --trials 128 --repeat 3
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from typing import Any

STARTED = time.time()


def load_intrinsics_in_worker() -> None:
    """What each of the builder's processes does first."""
    from tuneassist.tvm_api import load_tensor_intrinsics

    load_tensor_intrinsics("llvm")


def main() -> None:
    """Tune as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--target", required=True, help="TVM's target as JSON")
    arguments = parser.parse_args()

    from tuneassist.tvm_api import Target, derived_object, load_tensor_intrinsics, ms
    from tuneassist.workloads.build import build_prim_func
    from tuneassist.workloads.spec import parse_workload

    load_tensor_intrinsics("llvm")
    logging.disable(logging.INFO)
    curve: list[tuple[float, float]] = []
    counts = {"trials": 0, "valid": 0}

    @derived_object
    class Watch(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
        def apply(self, scheduler: Any, task: int, candidates: Any, builds: Any, runs: Any) -> None:
            counts["trials"] += len(builds)
            for result in runs:
                if result.error_msg is None and result.run_secs:
                    counts["valid"] += 1
                    secs = sorted(float(value) for value in result.run_secs)
                    best = min(secs[len(secs) // 2], curve[-1][1] if curve else float("inf"))
                    curve.append((round(time.time() - STARTED, 2), best))

    with tempfile.TemporaryDirectory() as folder:
        ms.tune_tir(
            mod=build_prim_func(parse_workload(arguments.workload)),
            target=Target(json.loads(arguments.target)),
            work_dir=folder,
            seed=arguments.seed,
            max_trials_global=arguments.trials,
            cost_model="xgb",
            builder=ms.builder.LocalBuilder(
                initializer=load_intrinsics_in_worker, max_workers=arguments.cores, timeout_sec=60
            ),
            runner=ms.runner.LocalRunner(
                evaluator_config=ms.runner.EvaluatorConfig(
                    number=1, repeat=arguments.repeat, min_repeat_ms=100
                )
            ),
            measure_callbacks=[*ms.measure_callback.MeasureCallback.create("default"), Watch()],
        )
    best = curve[-1][1] if curve else None
    first = curve[0][0] if curve else None
    wall = round(time.time() - STARTED, 2)
    print(json.dumps({**counts, "best_secs": best, "first_secs": first, "wall_secs": wall, "curve": curve}))


if __name__ == "__main__":
    main()
