"""Resident memory of the engine over a long run. Prints one JSON object.

python tests/bench/bench_memory.py --trials 1000 > memory.json
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Tune a small workload for long, and read what each round noted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--workload", default="matmul:m=256,n=256,k=256")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "store.sqlite"
        tune = [sys.executable, "-m", "tuneassist", "--batch", "--json", "--quiet", "--db", str(db)]
        tune += ["--workload", arguments.workload, "--trials", str(arguments.trials)]
        subprocess.run(tune, check=True, stdout=subprocess.DEVNULL)
        connection = sqlite3.connect(db)
        rows = connection.execute("SELECT trials, rss_bytes FROM rounds ORDER BY id").fetchall()
        connection.close()
    total, points = 0, []
    for trials, rss in rows:
        total += trials
        points.append((total, rss))
    at_200 = next(rss for trials, rss in points if trials >= 200)
    last = points[-1][1]
    print(json.dumps({
        "bench": "memory", "workload": arguments.workload, "trials": total, "rss_bytes_at_200": at_200,
        "rss_bytes_at_end": last, "growth": last / at_200 - 1, "points": points[:: max(1, len(points) // 32)],
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
