"""How soon the app paints: first screen, keys while a run is live, large stores; memory over a long replay.

    python tests/bench/bench_ui.py [--trials 1000000] [--store PATH] [--keys 120] > ui.json

The app runs in a pseudo-terminal, as a user's does. A key counts from the moment it is typed to the moment at
which words that only its effect shows have been written. Meanwhile a live run of 2,000 trials (and of as many
as the large store's longest) gets several more a second through a real events file. `cpu_per_key` is the CPU
time of the app's process: on a busy machine the wall times are upper bounds. The store with many trials is
made where it is absent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from generate_store import generate
from terminal import Terminal

sys.path.append(str(Path(__file__).parent.parent / "ui"))

from ui_script import scripted_run

from tuneassist.events import PhaseChanged, RunStarted, TrialEnded, encode

SIZES = ((80, 24), (160, 48))
TRIALS_A_SECOND = 8.0
LIVE_TRIALS = 2000
KEYS = {
    (80, 24): (
        ("2", "Predicted ↑"), ("3", "Model quality by round"), ("4", "Trials a minute, and"),
        ("5", "Weight"), ("6", "Trials: all trials"), ("7", "run_timeout: the kernel"),
        ("1", "Best latency over trials"), ("t", "Best latency over time"), ("t", "Best latency over trials"),
    ),
    (160, 48): (
        ("1", "Best latency over trials"), ("2", "Predicted ↑"), ("3", "Model quality by round"),
        ("4", "Trials a minute, and"), ("4", "Predicted ↑"), ("6", "Trials: all trials"),
        ("7", "run_timeout: the kernel"), ("5", "Weight"), ("t", "Best latency over time"),
        ("t", "Best latency over trials"),
    ),
}  # fmt: skip
"""Keys in turn, and words that are on the screen after each but not before."""


class LiveRun(threading.Thread):
    """This process stands in for the engine of a run: it appends events until it is closed."""

    def __init__(self, events_path: Path, run_id: int, trials: int) -> None:
        super().__init__(daemon=True)
        self._path = events_path
        self._run_id = run_id
        self._events = scripted_run(trials=trials + 1_000_000, end=False)
        self._closed = threading.Event()
        with events_path.open("w", encoding="utf-8") as file:
            for event in self._events:
                file.write(self._line(event))
                if isinstance(event, TrialEnded) and event.trial.ordinal >= trials:
                    return

    def _line(self, event: Any) -> str:
        line = json.loads(encode(event))
        if isinstance(event, RunStarted):
            line |= {"run_id": self._run_id, "trials": 100_000}
        return json.dumps(line) + "\n"

    def run(self) -> None:
        with self._path.open("a", encoding="utf-8", buffering=1) as file:
            for event in self._events:
                file.write(self._line(event))
                if isinstance(event, TrialEnded | PhaseChanged) and self._closed.wait(1 / TRIALS_A_SECOND):
                    return

    def close(self) -> None:
        self._closed.set()
        self.join()


@contextlib.contextmanager
def live_run(store: Path, folder: Path, trials: int) -> Iterator[int]:
    """A run of the store comes to life: this process is its engine."""
    connection = sqlite3.connect(store)
    run_id = connection.execute("SELECT run_id FROM tasks ORDER BY trial_count DESC LIMIT 1").fetchone()[0]
    path = folder / f"live-{store.stem}.jsonl"
    live = LiveRun(path, run_id, trials)
    with connection:
        connection.execute(
            "UPDATE runs SET status = 'running', pid = ?, pid_started = ?, events_path = ? WHERE id = ?",
            (os.getpid(), psutil.Process().create_time(), str(path), run_id),
        )
    live.start()
    try:
        yield run_id
    finally:
        live.close()
        with connection:
            connection.execute(
                "UPDATE runs SET status = 'done', pid = NULL, events_path = NULL WHERE id = ?", (run_id,)
            )
        connection.close()


def app(store: Path, size: tuple[int, int]) -> Terminal:
    """The app on this store."""
    return Terminal([sys.executable, "-m", "tuneassist", "--db", str(store)], size)


def bench_first_paint(store: Path) -> dict[str, Any]:
    """From the start of the process to its first line, and to the list of runs."""
    first, listed = [], []
    for _ in range(5):
        with app(store, SIZES[0]) as terminal:
            first.append(terminal.wait_for("tuneassist") - terminal.started)
            listed.append(terminal.wait_for("Recent runs") - terminal.started)
    return {"first_line": spread(first), "runs_listed": spread(listed)}


def bench_keys(store: Path, size: tuple[int, int], count: int) -> dict[str, Any]:
    """Keys on the live screen, in turn."""
    walls, cpus = [], []
    by_key: dict[str, list[float]] = {}
    with app(store, size) as terminal:
        terminal.wait_for("/100000 trials")
        terminal.drain(3.0)
        before, at = terminal.cpu_secs(), time.perf_counter()
        terminal.drain(5.0)
        idle = (terminal.cpu_secs() - before) / (time.perf_counter() - at)
        for number in range(count):
            key, words = KEYS[size][number % len(KEYS[size])]
            before = terminal.cpu_secs()
            typed = terminal.send(key)
            wall = terminal.wait_for(words) - typed
            if number >= len(KEYS[size]):  # the first round imports and compiles
                walls.append(wall)
                cpus.append(terminal.cpu_secs() - before)
                by_key.setdefault(f"{key} {words}", []).append(wall)
            terminal.drain(0.11 + 0.017 * (number % 13))
    worst = {key: max(secs) for key, secs in by_key.items()}
    return {
        "key_to_paint": spread(walls), "worst_by_key": worst, "cpu_per_key": spread(cpus),
        "cpu_share_between_keys": idle,
    }  # fmt: skip


def bench_large_store(store: Path) -> dict[str, Any]:
    """History, and the screen of the longest run, by keys."""
    connection = sqlite3.connect(store)
    run_id, trials = connection.execute(
        "SELECT run_id, sum(trial_count) AS n FROM tasks GROUP BY run_id ORDER BY n DESC LIMIT 1"
    ).fetchone()
    with connection:
        connection.execute("UPDATE runs SET note = 'longest' WHERE id = ?", (run_id,))
    connection.close()
    history, screen, whole = [], [], []
    for _ in range(3):
        with app(store, SIZES[1]) as terminal:
            terminal.wait_for("Recent runs")
            terminal.drain(1.0)
            typed = terminal.send("h")
            history.append(terminal.wait_for("more below") - typed)
            choose_longest(terminal)
            typed = terminal.send("\r")
            screen.append(terminal.wait_for("GFLOPS") - typed)
            whole.append(terminal.wait_for(f"{trials}/{trials} trials") - typed)
    return {"run_trials": trials, "history": spread(history), "run_screen": spread(screen),
            "run_whole": spread(whole)}  # fmt: skip


def choose_longest(terminal: Terminal) -> None:
    """In history, put the cursor on the run whose note says so."""
    terminal.drain(0.3)
    terminal.send("/")
    terminal.drain(0.3)  # keys that come with this one would go to the table
    terminal.send("longest")
    terminal.wait_for("1 runs")
    terminal.send("\r")
    terminal.drain(0.3)


def bench_memory(store: Path) -> dict[str, Any]:
    """Resident memory while the longest run is replayed, as fast as it goes, until it is over."""
    points: list[tuple[float, int]] = []
    with app(store, SIZES[1]) as terminal:
        terminal.wait_for("Recent runs")
        terminal.send("h")
        terminal.wait_for("more below")
        choose_longest(terminal)
        terminal.send("p")
        terminal.wait_for("replay 16")
        for _ in range(3):
            terminal.send("+")
        started = time.perf_counter()
        while not terminal.shows("replay over") and len(points) < 120:
            terminal.drain(1.0)
            points.append((time.perf_counter() - started, terminal.rss_bytes()))
    tenth = points[len(points) // 10][1]
    return {"rss_bytes_after_a_tenth": tenth, "rss_bytes_at_end": points[-1][1],
            "growth": points[-1][1] / tenth - 1, "points": points}  # fmt: skip


def spread(secs: list[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum; seconds."""
    ordered = sorted(secs)
    return {
        "median_secs": statistics.median(ordered),
        "p95_secs": ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))],
        "max_secs": ordered[-1],
        "count": len(ordered),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how soon the app paints.")
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path, help="the large store; made where it is absent")
    parser.add_argument("--keys", type=int, default=120)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.sqlite", given.store or folder / "large.sqlite"
        generate(small, trials=LIVE_TRIALS, runs=1)
        if not large.exists():
            generate(large, trials=given.trials, runs=max(1, given.trials // 200))
        found: dict[str, Any] = {"bench": "ui", "first_paint": bench_first_paint(small)}
        for store, label in ((small, "live_2000"), (large, "live_in_large_store")):
            with live_run(store, folder, LIVE_TRIALS):
                found[label] = {f"{size[0]}x{size[1]}": bench_keys(store, size, given.keys) for size in SIZES}
        found["large_store"] = bench_large_store(large)
        found["replay_memory"] = bench_memory(large)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
