"""Graph extraction and prediction against stock MetaSchedule's XGB, on the same candidates in one run.

    python tests/bench/bench_extract.py [--workload resnet18.c2] [--candidates 512] [--repeats 5]

Stock is what `tune_tir` uses: `PerStoreFeature` (C++, two threads) and `XGBModel`, trained here on 128
made-up times so that it predicts by its trees. Ours is extraction in one batch and prediction by each
kind. Prints one JSON object: wall and CPU seconds (medians and all repeats) and the ratios ours / stock.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuneassist.cost_model.graph import AstGraph, extract_batch
from tuneassist.tvm_api import Target, load_tensor_intrinsics, ms

TRAINING = 128
"""XGB predicts at random until it has seen 100 samples."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="resnet18.c2")
    parser.add_argument("--candidates", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--kinds", default="gcn,mlp,tree,ensemble")
    args = parser.parse_args()
    logging.disable(logging.INFO)
    load_tensor_intrinsics("llvm")
    context, candidates = draw(args.workload, args.candidates, args.cores)
    secs = np.exp(np.random.default_rng(0).normal(-6.0, 1.0, TRAINING))
    result: dict[str, Any] = {
        "workload": args.workload,
        "candidates": len(candidates),
        "repeats": args.repeats,
    }
    result["stock"] = stock = measure_stock(context, candidates, secs, args.repeats)
    mods = [candidate.sch.mod for candidate in candidates]
    result["extract"] = extracting = timed(lambda: extract_batch(mods, args.cores), args.repeats)
    graphs = extract_batch(mods, args.cores)
    result["extract_ms_each"] = 1e3 * extracting["median"] / len(mods)
    result["nodes_each"] = statistics.mean(graph.num_nodes for graph in graphs)
    result["kinds"] = {
        kind: measure_kind(kind, graphs, secs, args.repeats, extracting, stock["total"])
        for kind in args.kinds.split(",")
    }
    print(json.dumps(result, indent=2))
    return 0


def draw(workload: str, count: int, cores: int) -> tuple[Any, list[Any]]:
    """Random schedules of a catalogue workload, and the context in which they were made."""
    from tuneassist.workloads.build import build_prim_func
    from tuneassist.workloads.spec import parse_workload

    target = Target({"kind": "llvm", "mcpu": "x86-64-v4", "num-cores": cores})
    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=count, genetic_num_iters=0, init_min_unmeasured=min(50, count)
    )
    context = ms.TuneContext(
        build_prim_func(parse_workload(workload)), target=target, space_generator="post-order-apply",
        search_strategy=strategy, rand_state=1, num_threads=cores,
    )  # fmt: skip
    spaces = context.generate_design_space()
    context.pre_tuning(100_000, count, spaces, ms.database.MemoryDatabase(), ms.cost_model.RandomModel())
    return context, list(context.generate_measure_candidates() or ())


def measure_stock(context: Any, candidates: Sequence[Any], secs: np.ndarray, repeats: int) -> dict[str, Any]:
    """Seconds of stock feature extraction and of extraction with prediction."""
    extractor = ms.feature_extractor.PerStoreFeature()
    model = ms.cost_model.XGBModel(extractor=extractor)
    results = [ms.runner.RunnerResult([float(value)], None) for value in secs]
    model.update(context, list(candidates[:TRAINING]), results[: len(candidates)])
    return {
        "extract": timed(lambda: extractor.extract_from(context, list(candidates)), repeats),
        "total": timed(lambda: model.predict(context, list(candidates)), repeats),
    }


def measure_kind(
    kind: str,
    graphs: list[AstGraph],
    secs: np.ndarray,
    repeats: int,
    extracting: dict[str, Any],
    stock: dict[str, Any],
) -> dict[str, Any]:
    """Seconds of prediction and of one update of one of our models."""
    from tuneassist.cost_model.learned import LearnedCostModel
    from tuneassist.cost_model.registry import create_cost_model
    from tuneassist.cost_model.stack import StackedRanker

    model = create_cost_model(kind, seed=0, threads=2)
    seen = min(TRAINING, len(graphs))
    start = time.perf_counter()
    model.update("bench", graphs[:seen], secs[:seen], budget_secs=1.0)
    update_secs = time.perf_counter() - start
    # Nothing can be learned from made-up times, and a group of weight 0 would not be asked.
    assert isinstance(model, LearnedCostModel) and isinstance(model.ranker, StackedRanker)
    model.ranker.weights[:] = 1.0
    predicting = timed(lambda: model.predict("bench", graphs), repeats)
    ratio, cpu_ratio = ((extracting[k] + predicting[k]) / stock[k] for k in ("median", "cpu"))
    return {"predict": predicting, "update_secs": update_secs, "ratio": ratio, "cpu_ratio": cpu_ratio}


def timed(work: Callable[[], object], repeats: int) -> dict[str, Any]:
    """Wall and CPU seconds of some repeats after one that warms up."""
    work()
    wall, cpu = [], []
    for _ in range(repeats):
        started, cpu_started = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - cpu_started)
    return {"median": statistics.median(wall), "all": wall, "cpu": statistics.median(cpu), "all_cpu": cpu}


if __name__ == "__main__":
    sys.exit(main())
