"""Measured schedules of many workloads as samples that cost models train on.

A data set is a tuneassist database, or one compressed with xz (the shipped one). Graphs are rebuilt from
its traces, in parallel, and cached: that takes some minutes for ten thousand schedules.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from tuneassist.cost_model.hardware import HARDWARE_FACT
from tuneassist.errors import UsageError
from tuneassist.records import TrialStatus
from tuneassist.research import cache
from tuneassist.research.rebuild import GRAPHS, Rebuilt, Work, rebuild
from tuneassist.storage.connection import connect
from tuneassist.storage.faults import store_faults

LEAST_VALID = 20
"""Workloads with fewer valid trials teach and judge nothing."""
_CHUNK = 64
"""Traces that a process rebuilds at a time."""

Progress = Callable[[int, int], None]
"""Told how many samples of how many were rebuilt."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadSamples:
    """The trials of one workload on one machine and target.

    Attributes:
        name: Of the workload.
        op: Its operator kind.
        key: Tells workloads (and machines) apart.
        seen: n of what a model sees: an `AstGraph`, or `Rows` for the baselines.
        secs: (n,) median seconds; nan for a failed trial.
        source: (n,) `random`, `stratified`, `search`, ...
        machine: Name of the machine that measured.
        ids: (n,) of the trials, where they come from a store.
    """

    name: str
    op: str
    key: str
    seen: tuple[Any, ...]
    secs: npt.NDArray[np.float64]
    source: tuple[str, ...]
    machine: str
    ids: tuple[int, ...] = ()

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """(n,) whether the trial succeeded."""
        return np.isfinite(self.secs)

    @property
    def family(self) -> str:
        """Operator family, for leaving whole families out: depthwise and grouped count apart."""
        return self.op

    def take(self, chosen: npt.ArrayLike) -> WorkloadSamples:
        """Those at these positions, in that order."""
        index = np.asarray(chosen, dtype=np.int64)
        return replace(
            self,
            seen=tuple(self.seen[i] for i in index),
            secs=self.secs[index],
            source=tuple(self.source[i] for i in index),
            ids=tuple(self.ids[i] for i in index) if self.ids else (),
        )

    def measured(self) -> WorkloadSamples:
        """The valid ones."""
        return self.take(np.flatnonzero(self.valid))


@dataclass(frozen=True, slots=True)
class DataSet:
    """Samples and what identifies them."""

    path: str
    sha256: str
    workloads: tuple[WorkloadSamples, ...]
    skipped: dict[str, int]
    """Valid trials of each workload that has too few of them."""
    unusable: int
    """Trials whose trace no longer applies."""
    unknown: dict[str, int]
    """AST node classes that this version does not know, and how often each was seen."""

    @property
    def samples(self) -> int:
        """All trials."""
        return sum(len(workload.secs) for workload in self.workloads)


def load_dataset(
    path: str | Path, *, what: str = GRAPHS, processes: int = 2, progress: Progress = lambda done, of: None
) -> DataSet:
    """Read a data set and rebuild what models see of its schedules.

    Args:
        path: A tuneassist database, or one compressed with xz.
        what: `GRAPHS`, or a baseline kind whose rows are wanted.
        processes: That rebuild side by side.
        progress: Told how far that is.

    Raises:
        UsageError: There is no such file, it is no data set, or no workload has `LEAST_VALID` valid trials.
        StoreError: The database is damaged.
    """
    source = Path(path)
    if not source.is_file():
        raise UsageError(
            f"There is no data set {path}.", remedy="Name a tuneassist database, or one with xz."
        )
    database, sha256 = unpacked(source)
    with store_faults(str(path)):
        works = _works(database, what)
    kept_at = _cache_folder() / f"{sha256[:16]}-{what}-{cache.VERSION}.npz"
    rebuilt = cache.read(kept_at)
    if rebuilt is None:
        rebuilt = _rebuild(works, processes, progress)
        cache.write(kept_at, rebuilt)
    return _joined(str(path), sha256, works, rebuilt)


def _joined(path: str, sha256: str, works: Sequence[Work], rebuilt: Sequence[Rebuilt]) -> DataSet:
    workloads, skipped, unusable = [], {}, 0
    unknown: dict[str, int] = {}
    for work, made in zip(works, rebuilt, strict=True):
        usable = [i for i, seen in enumerate(made.seen) if seen is not None]
        unusable += len(made.seen) - len(usable)
        for name, count in made.unknown.items():
            unknown[name] = unknown.get(name, 0) + count
        samples = WorkloadSamples(
            work.name, work.op, work.key, tuple(made.seen[i] for i in usable),
            np.array([work.secs[i] for i in usable], dtype=np.float64),
            tuple(work.sources[i] for i in usable), work.machine, tuple(work.ids[i] for i in usable),
        )  # fmt: skip
        valid = int(samples.valid.sum())
        if valid < LEAST_VALID or np.ptp(samples.secs[samples.valid]) == 0:
            skipped[work.name] = valid
        else:
            workloads.append(samples)
    if not workloads:
        raise UsageError(
            f"No workload of {path} has {LEAST_VALID} valid trials of different times.",
            remedy="Measure more: tuneassist dataset collect.",
        )
    return DataSet(path, sha256, tuple(workloads), skipped, unusable, unknown)


def _rebuild(works: Sequence[Work], processes: int, progress: Progress) -> list[Rebuilt]:
    parts = [(number, part) for number, work in enumerate(works) for part in work.split(_CHUNK)]
    total, done = sum(len(work.traces) for work in works), 0
    made: list[list[Rebuilt]] = [[] for _ in works]
    # Spawned: a fork would inherit TVM's and torch's threads half alive.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for (number, part), result in zip(parts, pool.map(rebuild, [p for _, p in parts]), strict=True):
            made[number].append(result)
            done += len(part.traces)
            progress(done, total)
    return [Rebuilt.joined(pieces) for pieces in made]


def _works(database: Path, what: str) -> list[Work]:
    conn = connect(database, readonly=True)
    conn.row_factory = sqlite3.Row
    try:
        groups = conn.execute(
            "SELECT DISTINCT workloads.id, workloads.name, workloads.op, workloads.hash, workloads.mod_json,"
            " runs.target_id, runs.machine_id, targets.json AS target, machines.hostname AS machine,"
            " (SELECT value_json FROM machine_facts WHERE machine_id = runs.machine_id AND name = ?)"
            " AS hardware"
            " FROM tasks JOIN workloads ON workloads.id = tasks.workload_id"
            " JOIN runs ON runs.id = tasks.run_id JOIN targets ON targets.id = runs.target_id"
            " JOIN machines ON machines.id = runs.machine_id"
            " WHERE tasks.trial_count > 0 ORDER BY workloads.id, runs.target_id, runs.machine_id",
            (HARDWARE_FACT,),
        ).fetchall()
        return [_work(conn, group, what) for group in groups]
    finally:
        conn.close()


def _work(conn: sqlite3.Connection, group: sqlite3.Row, what: str) -> Work:
    trials = conn.execute(
        "SELECT trials.id, trials.status, trials.best_of, trials.trace_json, trials.source FROM trials"
        " JOIN tasks ON tasks.id = trials.task_id JOIN runs ON runs.id = trials.run_id"
        " WHERE tasks.workload_id = ? AND runs.target_id = ? AND runs.machine_id = ?"
        " AND trials.status != 'duplicate' ORDER BY trials.id",
        (group["id"], group["target_id"], group["machine_id"]),
    ).fetchall()
    return Work(
        what=what, name=group["name"], op=group["op"], machine=group["machine"],
        key=f"{group['hash']}/{group['target_id']}/{group['machine_id']}",
        mod_json=group["mod_json"], target_json=group["target"], hardware_json=group["hardware"],
        traces=tuple(row["trace_json"] for row in trials),
        secs=tuple(
            row["best_of"] if row["status"] == TrialStatus.OK and row["best_of"] else float("nan")
            for row in trials
        ),
        sources=tuple(row["source"] for row in trials),
        ids=tuple(row["id"] for row in trials),
    )  # fmt: skip


def unpacked(source: Path) -> tuple[Path, str]:
    """The database of a data set, and the hash of the file; a compressed one is unpacked into the cache.

    Raises:
        UsageError: The compressed file is damaged.
    """
    sha256 = _digest(source)
    if source.suffix != ".xz":
        return source, sha256
    target = _cache_folder() / f"{sha256[:16]}.sqlite"
    if not target.is_file():
        partial = target.with_suffix(".partial")
        try:
            with lzma.open(source) as packed, partial.open("wb") as whole:
                shutil.copyfileobj(packed, whole)
        except (lzma.LZMAError, EOFError) as error:
            partial.unlink(missing_ok=True)
            raise UsageError(
                f"{source} is damaged or cut short: {error}", remedy="Get the file anew."
            ) from error
        partial.replace(target)
    return target, sha256


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cache_folder() -> Path:
    folder = Path(platformdirs.user_cache_dir("tuneassist"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
