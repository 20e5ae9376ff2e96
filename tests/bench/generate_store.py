"""Fill a store with made-up trials of real shape, to measure queries at a size that takes years to reach.

    python tests/bench/generate_store.py PATH [--trials 1000000] [--runs 5000] [--traces full]

The traces are MetaSchedule's own (tests/data/traces.json: a schedule of every fifth workload of the
catalogue, postprocessing included), with their tile sizes drawn anew. As the engine does, the store gets
them without the postprocessing, unless `--traces full` asks for it. Latencies follow a mixture of three
log-normals; 6 % of the trials fail. Everything comes from one seed.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneassist.records import (
    FAILURES,
    Machine,
    Round,
    RunSettings,
    RunStatus,
    TargetInfo,
    Trial,
    TrialStatus,
)
from tuneassist.storage.sqlite import SqliteStore, open_store

DATA = Path(__file__).parent.parent / "data"
VARIANTS = 40
ROUND_TRIALS = 16
STARTED = 1_750_000_000.0
ERROR = "RuntimeError: LLVM module verification failed: stack frame of 33554432 bytes exceeds the limit\n" * 4


@dataclass(frozen=True)
class Kind:
    """A workload to draw trials of."""

    id: int
    name: str
    flops: int
    traces: tuple[str, ...]


def generate(path: Path, *, trials: int, runs: int, full_traces: bool = False, seed: int = 0) -> None:
    """Write `trials` trials in `runs` runs; every hundredth run is ten times as long as the others."""
    draw = random.Random(seed)
    with open_store(path) as store:
        store.connection.execute("PRAGMA synchronous = OFF")
        kinds = _kinds(store, draw, full_traces)
        places = [
            (
                store.target_id(
                    TargetInfo("native", json.dumps({"kind": "llvm", "mcpu": cpu}), cores, note=cpu)
                ),
                store.machine_id(Machine(f"host{number}", f"Made-up CPU {number}", cores, ("avx2", "fma"))),
            )
            for number, (cpu, cores) in enumerate((("skylake", 8), ("znver4", 16), ("sapphirerapids", 2)))
        ]
        weights = [10 if number % 100 == 99 else 1 for number in range(runs)]
        left, weight_left = trials, sum(weights)
        for number, weight in enumerate(weights):
            share = left * weight // weight_left
            _run(store, draw, draw.choice(places), kinds, share, STARTED + 3600.0 * number)
            left, weight_left = left - share, weight_left - weight


def _kinds(store: SqliteStore, draw: random.Random, full_traces: bool) -> list[Kind]:
    kinds = []
    for entry in json.loads((DATA / "traces.json").read_text()):
        traces = tuple(_variant(entry["trace"], draw, full_traces) for _ in range(VARIANTS))
        workload = store.workload_id(
            hash=f"{draw.getrandbits(64):016x}", name=entry["name"], spec=f"{entry['op']}:{entry['name']}",
            op=entry["op"], flops=entry["flops"], mod_json=json.dumps({"made": "up" * 5000}),
        )  # fmt: skip
        kinds.append(Kind(workload, entry["name"], entry["flops"], traces))
    return kinds


def _variant(trace: Any, draw: random.Random, full: bool) -> str:
    instructions, decisions = trace
    if not full:
        instructions = instructions[: [name for name, *_ in instructions].index("EnterPostproc")]
    drawn = [
        [at, [draw.choice((1, 2, 4, 7, 8, 16)) for _ in made] if isinstance(made, list) else made]
        for at, made in decisions
    ]
    return json.dumps([instructions, drawn], separators=(",", ":"))


def _run(
    store: SqliteStore, draw: random.Random, place: tuple[int, int], kinds: list[Kind], trials: int,
    started: float,
) -> None:  # fmt: skip
    chosen = draw.sample(kinds, draw.choice((1, 1, 2, 4)))
    settings = RunSettings(
        workloads=tuple(kind.name for kind in chosen), trials=trials, seed=draw.randrange(99)
    )
    run = store.create_run(
        target_id=place[0], machine_id=place[1], settings=settings, pid=1, pid_started=1.0,
        events_path=f"run-{started}.jsonl",
    )  # fmt: skip
    tasks = [(store.add_task(run, kind.id, name=kind.name, weight=1), kind) for kind in chosen]
    for task, kind in tasks:
        store.set_task_baseline(task, untuned_secs=kind.flops / 2e9, pytorch_secs=kind.flops / 2e11)
    store.add_trials(_trials(draw, run, tasks, trials, started))
    for number in range(trials // ROUND_TRIALS):
        phases = {"search": 0.5, "build": 2.0, "measure": 3.0, "train": 0.5}
        task = tasks[number % len(tasks)][0]
        store.add_round(
            Round(run, task, number, ROUND_TRIALS, 15, draw.random(), 0.8, phases, 10**9, started)
        )
    store.end_run(run, draw.choice((RunStatus.DONE, RunStatus.DONE, RunStatus.INTERRUPTED)), result_json="{}")
    with store.connection:
        store.connection.execute(
            "UPDATE runs SET started_at = ?, ended_at = ? WHERE id = ?", (started, started + trials, run)
        )


def _trials(
    draw: random.Random, run: int, tasks: list[tuple[int, Kind]], trials: int, started: float
) -> Iterator[Trial]:
    for ordinal in range(1, trials + 1):
        task, kind = tasks[ordinal // ROUND_TRIALS % len(tasks)]
        failed = draw.random() < 0.06
        secs = max(kind.flops, 1e5) / 1e11 * draw.lognormvariate(draw.choice((0.0, 1.0, 2.5)), 0.4)
        yield Trial(
            run_id=run,
            task_id=task,
            ordinal=ordinal,
            round=ordinal // ROUND_TRIALS,
            status=draw.choice(FAILURES) if failed else TrialStatus.OK,
            trace_json=draw.choice(kind.traces),
            run_secs=None if failed else (secs * 0.98, secs, secs * 1.03),
            best_of=None if failed else secs,
            predicted_secs=secs * draw.lognormvariate(0.0, 0.5),
            score=draw.random(),
            error=ERROR if failed else None,
            build_secs=draw.random(),
            measured_at=started + ordinal,
            peak_rss_bytes=draw.randrange(10**8, 10**9),
            module_hash=f"{draw.getrandbits(64):016x}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Fill a new store with made-up trials of real shape.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--traces", choices=("full", "search"), default="search")
    given = parser.parse_args()
    generate(given.path, trials=given.trials, runs=given.runs, full_traces=given.traces == "full")


if __name__ == "__main__":
    main()
