"""Import of a MetaSchedule JSON database: workloads and records, failures as failures.

No trace is replayed: a record is taken as it stands, and a trace that no longer applies is passed over
where it is used. Each workload is loaded by TVM once, which finds its hash.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tuneassist.errors import UsageError
from tuneassist.exchange.incoming import (
    FailedKnown,
    Known,
    machine_row,
    one_transaction,
    trial_key,
    with_origin,
)
from tuneassist.exchange.metaschedule import RECORDS, WORKLOADS, RecordLine, read_record, read_workload
from tuneassist.exchange.sidecar import Sidecar, read_sidecar
from tuneassist.records import Machine, RunSettings, RunStatus, TargetInfo, Trial, TrialStatus
from tuneassist.storage import rows
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.targets.catalogue import canonical_json, make_target
from tuneassist.tvm_api import estimate_tir_flops, tvm
from tuneassist.workloads.build import workload_hash

COST_MODEL = "imported"
"""`runs.cost_model` of records whose search is not known."""
_FAILED = "MetaSchedule recorded that this candidate failed; why is not in its database."


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that is not imported."""

    file: str
    line: int
    """1-based."""
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


@dataclass(slots=True)
class Imported:
    """What an import did."""

    records: int = 0
    """Well-formed records found."""
    added: int = 0
    failed: int = 0
    """Of those added, how many are failures."""
    known: int = 0
    """Records that the store had already."""
    runs: list[int] = field(default_factory=list)
    workloads: int = 0
    machine: str = ""
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class _Task:
    id: int
    run_id: int
    known: Known
    failed: FailedKnown


@dataclass(frozen=True, slots=True)
class _Workload:
    id: int
    name: str


def database_files(path: Path) -> tuple[Path, Path] | None:
    """The workload and record files that a path names (a folder, or one of the two), or None."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir() or path.name in (WORKLOADS, RECORDS):
        return folder / WORKLOADS, folder / RECORDS
    return None


def import_database(store: SqliteStore, path: Path, *, machine: str = "", strict: bool = False) -> Imported:
    """Import the database into the store, all or (on an error) nothing.

    Args:
        store: Where to.
        path: Its folder, or one of its two files.
        machine: Name of the machine that measured; empty if not known. Records of an unknown machine get
            one of their own, so that they are never taken for this machine's.
        strict: Refuse the whole database because of one malformed line, instead of leaving the line out.

    Raises:
        UsageError: It is no database, holds no usable record, or (`strict`) has a malformed line.
    """
    files = database_files(path)
    if files is None or not all(file.is_file() for file in files):
        raise UsageError(
            f"{path} is no MetaSchedule database.",
            remedy=f"Name a folder that holds {WORKLOADS} and {RECORDS}.",
        )
    with one_transaction(store):
        return _Import(store, *files, machine, strict).run()


class _Import:
    def __init__(
        self, store: SqliteStore, workloads: Path, records: Path, machine: str, strict: bool
    ) -> None:
        self._store = store
        self._conn = store.connection
        self._records = records
        self._strict = strict
        self._done = Imported()
        self._sidecar: Sidecar | None = read_sidecar(records.parent)
        self._lines = list(_lines(workloads))
        self._fingerprint = _fingerprint(workloads, records)
        self._machine = self._machine_of(machine)
        self._machine_id: int | None = None
        self._measured_at = records.stat().st_mtime
        self._targets: dict[str, int | str] = {}
        self._workloads: dict[int, _Workload | str] = {}
        self._tasks: dict[tuple[int, int], _Task] = {}
        self._ordinals: dict[int, int] = {}

    def run(self) -> Imported:
        for number, text in _lines(self._records):
            try:
                record = read_record(text)
                task = self._task(record)
            except ValueError as error:
                self._problem(self._records, number, str(error))
                continue
            self._done.records += 1
            self._add(task, record)
        if not self._done.records:
            first = f" First of all, {self._done.problems[0]}." if self._done.problems else ""
            raise UsageError(
                f"{self._records.parent} holds no usable record.{first}",
                remedy="Import a database that MetaSchedule of this TVM wrote.",
            )
        self._done.workloads = len({workload_id for _, workload_id in self._tasks})
        self._finish()
        return self._done

    def _add(self, task: _Task, record: RecordLine) -> None:
        secs = record.run_secs
        key = trial_key(record.trace_json, secs)
        if key in task.known if secs else not task.failed.add(record.trace_json):
            self._done.known += 1
            return
        if task.run_id not in self._ordinals:
            self._ordinals[task.run_id] = self._store.last_ordinal(task.run_id)
        self._ordinals[task.run_id] += 1
        trial = Trial(
            run_id=task.run_id, task_id=task.id, ordinal=self._ordinals[task.run_id], round=1,
            status=TrialStatus.OK if secs else TrialStatus.RUN_ERROR, trace_json=record.trace_json,
            run_secs=secs, best_of=statistics.median(secs) if secs else None, error=None if secs else _FAILED,
            measured_at=self._measured_at, source="import",
        )  # fmt: skip
        row_id = self._conn.execute(rows.INSERT_TRIAL, rows.trial_values(trial)).lastrowid
        assert row_id is not None
        if secs:
            task.known.add(key, row_id, len(secs))
        self._done.added += 1
        self._done.failed += not secs

    def _task(self, record: RecordLine) -> _Task:
        """The task of a record. Raises `ValueError` if its workload or target can't be used."""
        target_id = self._target(record.target_json)
        workload = self._workload(record.workload)
        key = (target_id, workload.id)
        if key not in self._tasks:
            run_id = self._run(target_id)
            found = self._conn.execute(
                "SELECT id FROM tasks WHERE run_id = ? AND workload_id = ?", (run_id, workload.id)
            ).fetchone()
            task_id = (
                found[0] if found else self._store.add_task(run_id, workload.id, name=workload.name, weight=1)
            )
            known = Known(self._conn, workload.id, target_id)
            failed = FailedKnown(self._conn, task_id, by_time=False)
            self._tasks[key] = _Task(task_id, run_id, known, failed)
        return self._tasks[key]

    def _target(self, text: str) -> int:
        if text not in self._targets:
            try:
                self._targets[text] = self._store.target_id(_target_info(json.loads(text)))
            except UsageError as error:
                self._targets[text] = error.message
        found = self._targets[text]
        if isinstance(found, str):
            raise ValueError(found)
        return found

    def _workload(self, index: int) -> _Workload:
        if index not in self._workloads:
            self._workloads[index] = self._load_workload(index)
        found = self._workloads[index]
        if isinstance(found, str):
            raise ValueError(found)
        return found

    def _load_workload(self, index: int) -> _Workload | str:
        if index >= len(self._lines):
            return f"it names workload {index}, and there are {len(self._lines)}"
        number, text = self._lines[index]
        try:
            line = read_workload(text)
            module = tvm.ir.load_json(line.mod_json)
            key = workload_hash(module)
            module["main"]  # what tuning works on
        except Exception as error:  # whatever TVM makes of a module that another TVM wrote
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            self._problem(self._records.parent / WORKLOADS, number, reason)
            return f"its workload {index} can't be read"
        told = self._sidecar.workloads.get(key) if self._sidecar else None
        name = told.name if told else f"imported-{key[:8]}"
        workload_id = self._store.workload_id(
            hash=key,
            name=name,
            spec=told.spec if told else f"stored:{key}",
            op=told.op if told else "module",
            flops=told.flops if told else _flops(module),
            mod_json=line.mod_json,
        )
        row = self._conn.execute("SELECT name FROM workloads WHERE id = ?", (workload_id,)).fetchone()
        return _Workload(workload_id, row["name"])

    def _run(self, target_id: int) -> int:
        """The run that holds this database's records for a target; a second import finds it again."""
        if self._machine_id is None:
            self._machine_id = machine_row(self._conn, self._machine)
        found = self._conn.execute(
            "SELECT id FROM runs WHERE machine_id = ? AND target_id = ? AND cost_model = ?"
            " AND json_extract(config_json, '$.imported.fingerprint') = ?",
            (self._machine_id, target_id, COST_MODEL, self._fingerprint),
        ).fetchone()
        if found:
            return int(found[0])
        settings = rows.settings_json(RunSettings(cost_model=COST_MODEL, trials=0))
        origin = {
            "format": "metaschedule",
            "path": str(self._records.parent),
            "fingerprint": self._fingerprint,
            "imported_at": time.time(),
        }
        run_id = self._conn.execute(
            "INSERT INTO runs (target_id, machine_id, cost_model, seed, trials_requested, status, started_at,"
            " ended_at, config_json, note) VALUES (?, ?, ?, 0, 0, ?, ?, ?, ?, ?)",
            (target_id, self._machine_id, COST_MODEL, RunStatus.DONE.value, self._measured_at,
             self._measured_at, with_origin(settings, origin),
             f"imported from {self._records.parent.name}"),
        ).lastrowid  # fmt: skip
        assert run_id is not None
        return run_id

    def _finish(self) -> None:
        """Drop the runs that turned out to hold nothing new, and count the trials of the others."""
        for run_id in sorted({task.run_id for task in self._tasks.values()}):
            count = self._store.last_ordinal(run_id)
            if count:
                self._conn.execute("UPDATE runs SET trials_requested = ? WHERE id = ?", (count, run_id))
                self._done.runs.append(run_id)
            else:
                self._conn.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def _machine_of(self, named: str) -> Machine:
        if named:
            machine = Machine(named, "unknown", 0)
        elif self._sidecar and self._sidecar.machine:
            machine = self._sidecar.machine
        else:
            machine = Machine(f"unknown-{self._fingerprint[:8]}", "unknown", 0)
        self._done.machine = machine.hostname
        return machine

    def _problem(self, file: Path, line: int, reason: str) -> None:
        problem = Problem(file.name, line, reason)
        if self._strict:
            raise UsageError(
                f"Malformed: {problem}.", remedy="Mend or remove that line, or leave --strict out."
            )
        self._done.problems.append(problem)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """1-based number and content of each line that is not empty."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line.strip()


def _fingerprint(workloads: Path, records: Path) -> str:
    """Identifies a database from its first lines, which stay as they are while it grows."""
    digest = hashlib.sha256()
    for path in (workloads, records):
        for _, line in _lines(path):
            digest.update(line)
            break
    return digest.hexdigest()


def _flops(module: Any) -> int:
    try:
        return int(estimate_tir_flops(module))
    except Exception:  # TVM has no estimate for every intrinsic
        return 0


def _target_info(config: dict[str, Any]) -> TargetInfo:
    """Raises `UsageError` if TVM refuses it."""
    target = make_target(config)
    cores = config.get("num-cores")
    return TargetInfo(
        json.dumps(config), canonical_json(target), cores if isinstance(cores, int) else 0,
        str(target.kind.name), "imported",
    )  # fmt: skip


def as_dict(done: Imported, *, problems: int = 100) -> dict[str, Any]:
    """The outcome as JSON shows it, with at most so many problems."""
    return {
        **asdict(done),
        "skipped": len(done.problems),
        "problems": [str(p) for p in done.problems[:problems]],
    }
