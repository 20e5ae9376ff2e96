"""Which stored trials leave: those of a run, or of a workload on one machine and target."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from tuneassist.errors import NoMeasurementError, UsageError
from tuneassist.records import Machine, TargetInfo, Trial, WorkloadInfo
from tuneassist.storage import rows
from tuneassist.storage.filters import like, matches
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.targets.machine import this_machine
from tuneassist.workloads.spec import parse_workload


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """A row of `workloads`."""

    id: int
    hash: str
    name: str
    spec: str
    op: str
    flops: int
    mod_json: str


@dataclass(frozen=True, slots=True)
class Place:
    """A workload's trials on one machine and target, over all runs or within one."""

    workload: StoredWorkload
    machine_id: int
    machine: Machine
    target_id: int
    target: TargetInfo
    trials: int
    best_secs: float | None
    run_id: int | None = None

    @property
    def here(self) -> bool:
        """Whether it is this machine, whatever number of its cores was used."""
        mine = this_machine()
        return (self.machine.hostname, self.machine.cpu, self.machine.features) == (
            mine.hostname,
            mine.cpu,
            mine.features,
        )

    def __str__(self) -> str:
        best = "nothing valid" if self.best_secs is None else f"best {self.best_secs * 1e3:.4g} ms"
        return f"{in_words(self.machine)}, target {self.target.spec}: {self.trials} trials, {best}"


def in_words(machine: Machine) -> str:
    """A machine in a few words; one that a foreign database does not tell of has no cores."""
    if not machine.cores:
        return f"{machine.hostname} (an unknown machine)"
    return f"{machine.hostname} ({machine.cpu}, {machine.cores} cores)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked to export."""

    run_id: int | None = None
    workload: str = ""
    """A spec, a name or a hash; empty for every workload of the run."""
    machine: str = ""
    """Pattern of the host name or the CPU; empty for this machine, or the only one."""
    target: str = ""
    """Pattern of the target's spec or JSON."""


def find_workload(store: SqliteStore, text: str) -> StoredWorkload:
    """The stored workload of a spec, a name or a hash.

    Raises:
        UsageError: The text names no workload, or the store has never seen it.
    """
    conn = store.connection
    found = conn.execute(
        "SELECT * FROM workloads WHERE spec = :text OR name = :text OR hash = :text"
        " OR id IN (SELECT workload_id FROM tasks WHERE name = :text) ORDER BY id DESC LIMIT 1",
        {"text": text.strip()},
    ).fetchone()
    if found is None:
        info = parse_workload(text)
        found = conn.execute(
            "SELECT * FROM workloads WHERE spec = ? ORDER BY id DESC", (info.spec,)
        ).fetchone()
        found = found or _found_by_hash(conn, info)
    if found is None:
        known = [name for (name,) in conn.execute("SELECT name FROM workloads ORDER BY id DESC LIMIT 5")]
        raise UsageError(
            f"The database holds nothing of {text!r}.",
            remedy=f"Tune it first: tuneassist --batch --workload '{text}'."
            + (f" It holds {', '.join(known)}." if known else ""),
        )
    return _workload(found)


def places_of(
    store: SqliteStore,
    workload: StoredWorkload,
    *,
    run_id: int | None = None,
    machine: str = "",
    target: str = "",
) -> list[Place]:
    """Where a workload was measured: this machine first, then by best latency."""
    terms = ["tasks.workload_id = :workload", "(:run IS NULL OR runs.id = :run)"]
    if machine:
        terms.append(matches("machine", "machines.hostname", "machines.cpu"))
    if target:
        terms.append(matches("target", "targets.spec", "targets.json"))
    found = store.connection.execute(
        "SELECT runs.machine_id, runs.target_id, sum(tasks.trial_count) AS trials,"
        " min(tasks.best_secs) AS best_secs"
        " FROM tasks JOIN runs ON runs.id = tasks.run_id JOIN machines ON machines.id = runs.machine_id"
        f" JOIN targets ON targets.id = runs.target_id WHERE {' AND '.join(terms)}"
        " GROUP BY runs.machine_id, runs.target_id",
        {"workload": workload.id, "run": run_id, "machine": like(machine), "target": like(target)},
    ).fetchall()
    places = [
        Place(
            workload, row["machine_id"], store.machine(row["machine_id"]), row["target_id"],
            store.target(row["target_id"]), row["trials"], row["best_secs"], run_id,
        )
        for row in found
    ]  # fmt: skip
    return sorted(places, key=lambda p: (not p.here, p.best_secs is None, p.best_secs or 0.0, p.target_id))


def choose(store: SqliteStore, wanted: Wanted) -> list[Place]:
    """The places to export: one for each workload.

    Raises:
        UsageError: Nothing is asked for, nothing fits, or it was measured on other machines only.
    """
    if wanted.run_id is None:
        if not wanted.workload:
            raise UsageError(
                "Nothing is named to export.", remedy="Name a run, or a workload with --workload SPEC."
            )
        return [_choose_place(store, find_workload(store, wanted.workload), wanted)]
    store.run(wanted.run_id)  # UsageError if there is none
    workloads = run_workloads(store, wanted.run_id)
    if wanted.workload:
        one = find_workload(store, wanted.workload)
        workloads = [workload for workload in workloads if workload.id == one.id]
        if not workloads:
            raise UsageError(
                f"Run {wanted.run_id} did not tune {wanted.workload}.",
                remedy=f"`tuneassist history show {wanted.run_id}` lists its tasks.",
            )
    return [places_of(store, workload, run_id=wanted.run_id)[0] for workload in workloads]


def run_workloads(store: SqliteStore, run_id: int) -> list[StoredWorkload]:
    """The workloads of a run's tasks, in their order."""
    found = store.connection.execute(
        "SELECT * FROM workloads WHERE id IN (SELECT workload_id FROM tasks WHERE run_id = ?)"
        " ORDER BY (SELECT min(id) FROM tasks WHERE run_id = ? AND workload_id = workloads.id)",
        (run_id, run_id),
    )
    return [_workload(row) for row in found.fetchall()]


def usable_trials(store: SqliteStore, place: Place, *, limit: int = -1) -> Iterator[Trial]:
    """Ok trials that are not known to be wrong, fastest first; -1 for all of them."""
    found = store.connection.execute(
        f"{rows.SELECT_TRIAL} JOIN tasks ON tasks.id = trials.task_id JOIN runs ON runs.id = tasks.run_id"
        " WHERE trials.status = 'ok' AND trials.correct IS NOT 0 AND tasks.workload_id = :workload"
        " AND runs.machine_id = :machine AND runs.target_id = :target AND (:run IS NULL OR runs.id = :run)"
        " ORDER BY trials.best_of, trials.id LIMIT :limit",
        {"workload": place.workload.id, "machine": place.machine_id, "target": place.target_id,
         "run": place.run_id, "limit": limit},
    )  # fmt: skip
    return (rows.trial_from(row) for row in found)


def best_trial(store: SqliteStore, place: Place) -> Trial:
    """The fastest usable trial.

    Raises:
        NoMeasurementError: There is none.
    """
    for trial in usable_trials(store, place, limit=1):
        return trial
    raise NoMeasurementError(
        f"No trial of {place.workload.name} gave a valid measurement on {place.machine.hostname}.",
        remedy=f"Tune it again: tuneassist --batch --workload '{place.workload.spec}'.",
    )


def _found_by_hash(conn: sqlite3.Connection, info: WorkloadInfo) -> sqlite3.Row | None:
    """A workload that was imported without its spec: the module that the spec builds has its hash."""
    if conn.execute("SELECT 1 FROM workloads WHERE spec LIKE 'stored:%' LIMIT 1").fetchone() is None:
        return None
    # Only here is TVM needed.
    from tuneassist.workloads.build import build_prim_func, workload_hash

    key = workload_hash(build_prim_func(info))
    row: sqlite3.Row | None = conn.execute("SELECT * FROM workloads WHERE hash = ?", (key,)).fetchone()
    return row


def _choose_place(store: SqliteStore, workload: StoredWorkload, wanted: Wanted) -> Place:
    places = places_of(store, workload, machine=wanted.machine, target=wanted.target)
    here = [place for place in places if place.here]
    if not places:
        everywhere = places_of(store, workload)
        raise UsageError(
            f"Nothing of {workload.name} fits --machine {wanted.machine!r} and --target {wanted.target!r}.",
            remedy="It was measured on " + "; ".join(map(str, everywhere)) + ".",
        )
    if wanted.machine or len({place.machine_id for place in places}) == 1:
        return places[0]
    if not here:
        raise UsageError(
            f"{workload.name} was measured on several machines, none of them this one.",
            remedy="Choose with --machine PATTERN: " + "; ".join(map(str, places)) + ".",
        )
    return here[0]


def _workload(row: sqlite3.Row) -> StoredWorkload:
    return StoredWorkload(
        row["id"], row["hash"], row["name"], row["spec"], row["op"], row["flops"], row["mod_json"]
    )


def workload_by_id(store: SqliteStore, workload_id: int) -> StoredWorkload:
    """The workload of an id that a task refers to."""
    return _workload(
        store.connection.execute("SELECT * FROM workloads WHERE id = ?", (workload_id,)).fetchone()
    )
