"""Several processes on one file: kills, two writers, a reader beside a writer."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from store_rows import ok, start_run

from tuneassist.storage.sqlite import open_store

HERE = Path(__file__).parent
WRITE = """
import sys
from store_rows import ok, start_run
from tuneassist.storage.sqlite import open_store
store = open_store(sys.argv[1])
place = start_run(store, sys.argv[2])
for ordinal in range(1, int(sys.argv[3]) + 1):
    store.add_trial(ok(place, ordinal, 1.0 / ordinal, trace_json="x" * 2000))
    print(place.run, ordinal, flush=True)
"""


def writer(path: Path, workload: str, trials: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path), workload, str(trials)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent.parent}"},
    )  # fmt: skip


def test_kill_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with writer(path, "matmul", 100_000) as process:
        assert process.stdout is not None
        for _ in range(200):
            process.stdout.readline()
        process.kill()
        rest = process.stdout.read().splitlines()
    reported = int(rest[-1].split()[1]) if rest and len(rest[-1].split()) == 2 else 200 + len(rest) - 1
    with open_store(path) as store:
        trials = store.trials(1)
        assert [trial.ordinal for trial in trials] == list(range(1, len(trials) + 1))
        assert len(trials) >= max(reported, 200)
        task = store.connection.execute("SELECT trial_count, ok_count, best_secs FROM tasks").fetchone()
        assert tuple(task) == (len(trials), len(trials), min(t.best_of or 9.0 for t in trials))
        assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_two_writers_of_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with writer(path, "a", 300) as first, writer(path, "b", 300) as second:
        for process in (first, second):
            process.communicate(timeout=60)
            assert process.returncode == 0
    with open_store(path, readonly=True) as store:
        for run in (1, 2):
            assert [trial.ordinal for trial in store.trials(run)] == list(range(1, 301))
        assert {store.tasks(run)[0].name for run in (1, 2)} == {"a", "b"}


def test_reader_sees_whole_trials_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with writer(path, "matmul", 400) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen = []
        with open_store(path, readonly=True) as store:
            while process.poll() is None:
                count, last = store.connection.execute(
                    "SELECT count(*), max(ordinal) FROM trials WHERE run_id = 1"
                ).fetchone()
                assert count == last
                seen.append(count)
                process.stdout.readline()
        assert seen == sorted(seen)
        assert len(set(seen)) > 5


def test_reader_of_a_file_on_a_read_only_medium(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        store.add_trial(ok(start_run(store), 1, 1.0))
    # Stands for the medium: SQLite can't make its side files where folders have their names.
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).mkdir()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as conn:
        try:
            conn.execute("SELECT * FROM trials").fetchall()
            usual = True
        except sqlite3.OperationalError:
            usual = False
    assert not usual
    with open_store(path, readonly=True) as store:
        assert store.last_ordinal(1) == 1
