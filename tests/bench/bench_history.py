"""Time the queries of history on a large store, and its size a trial.

    python tests/bench/bench_history.py [PATH] [--trials 1000000] [--runs 5000] [--traces full]

Generates the store at PATH unless it exists (a temporary one without PATH). Each query runs on a new
connection; `first_secs` is its first time, `median_secs` that of nine more. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generate_store import generate

from tuneassist.storage import queries
from tuneassist.storage.comparison import compare
from tuneassist.storage.filters import RunFilter
from tuneassist.storage.reading import reading
from tuneassist.storage.run_detail import best_curves, run_detail

REPEATS = 9


def bench(path: Path) -> dict[str, Any]:
    """Time each query; seconds."""
    name = str(path)
    with reading(path) as conn:
        trials, runs = conn.execute("SELECT (SELECT count(*) FROM trials), count(*) FROM runs").fetchone()
        found = conn.execute("SELECT run_id FROM tasks ORDER BY trial_count DESC LIMIT 2").fetchall()
        long, second = (row[0] for row in found)
        trace_bytes = conn.execute("SELECT avg(length(trace_json)) FROM trials WHERE id < 20000").fetchone()[
            0
        ]
    cases: dict[str, Callable[[sqlite3.Connection], object]] = {
        "list": lambda conn: (queries.runs(conn, limit=50), queries.count_runs(conn)),
        "list_all": lambda conn: queries.runs(conn),
        "list_filtered": lambda conn: queries.runs(
            conn, RunFilter(workload="*conv2*", states=("done",)), limit=50
        ),
        "list_by_best": lambda conn: queries.runs(conn, order="best_secs", limit=50),
        "show": lambda conn: (run_detail(conn, runs // 2, name), best_curves(conn, runs // 2)),
        "show_longest": lambda conn: (run_detail(conn, long, name), best_curves(conn, long)),
        "best": lambda conn: queries.best(conn),
        "best_filtered": lambda conn: queries.best(conn, workload="resnet18", machine="host1"),
        "trials_page": lambda conn: queries.trials(conn, long, order="best_of", limit=50),
        "compare": lambda conn: compare(conn, [1, runs // 2, runs - 1], name),
        "compare_longest": lambda conn: compare(conn, [long, second], name),
    }
    size = path.stat().st_size
    return {
        "trials": trials,
        "runs": runs,
        "file_bytes": size,
        "bytes_per_trial": size / trials,
        "mean_trace_bytes": trace_bytes,
        "queries": {case: _time(path, query) for case, query in cases.items()},
    }


def _time(path: Path, query: Callable[[sqlite3.Connection], object]) -> dict[str, float]:
    secs = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        with reading(path) as conn:
            query(conn)
        secs.append(time.perf_counter() - started)
    return {"first_secs": secs[0], "median_secs": statistics.median(secs[1:]), "max_secs": max(secs[1:])}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the queries of history on a large store.")
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--traces", choices=("full", "search"), default="search")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path: Path = given.path or Path(folder) / "bench.sqlite"
        started = time.perf_counter()
        if not path.exists():
            generate(path, trials=given.trials, runs=given.runs, full_traces=given.traces == "full")
        generated = time.perf_counter() - started
        print(json.dumps({**bench(path), "generate_secs": generated}, indent=2))


if __name__ == "__main__":
    main()
