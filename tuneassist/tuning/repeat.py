"""Measures stored trials again: those that were disturbed, and a sample that tells the noise."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuneassist.errors import UsageError
from tuneassist.records import TrialStatus
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tuning.database import Replayer
from tuneassist.tuning.inputs import INPUT_SEED, save_inputs
from tuneassist.tuning.measurer import LocalMeasurer
from tuneassist.tuning.measuring import Job, Outcome, Protocol, limits_for
from tuneassist.tuning.workers import Workers
from tuneassist.tvm_api import Target, load_tensor_intrinsics, module_to_text, tvm
from tuneassist.workloads.reference import make_inputs
from tuneassist.workloads.spec import parse_workload

_CHUNK = 48
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Repeated:
    """One trial that was measured again."""

    trial_id: int
    workload: str
    disturbed: bool
    """Chosen since its repeats disagreed; else drawn at random, and left as it was."""
    before_secs: float
    after_secs: float


@dataclass(frozen=True, slots=True)
class _Stored:
    id: int
    trace_json: str
    run_secs: tuple[float, ...]
    best_of: float
    disturbed: bool


def repeat_trials(
    store: SqliteStore, *, spread: float, sample: float, seed: int,
    doubtful: frozenset[int] = frozenset(),
    told: Callable[[str, int, int], None] = lambda workload, done, of: None,
) -> Iterator[Repeated]:  # fmt: skip
    """Measure again the ok trials whose repeats disagree, and a sample of the others.

    A disturbed trial takes over the new repeats if they are faster: a disturbance makes a kernel look
    slow, never fast. Whatever the sample gives is only
    told: it says how well an undisturbed measurement is reproduced.

    Args:
        store: Where they are; this machine must have measured them.
        spread: Median over fastest repeat from which on a trial counts as disturbed.
        sample: Share of the others that is measured again.
        seed: Draws the sample.
        doubtful: Ids of trials that count as disturbed, too.
        told: Told of each chunk that begins.

    Raises:
        UsageError: Nothing in the store can be measured again.
    """
    groups = store.connection.execute(
        "SELECT tasks.id, tasks.run_id, workloads.name, workloads.spec, workloads.mod_json, targets.json"
        " FROM tasks JOIN workloads ON workloads.id = tasks.workload_id JOIN runs ON runs.id = tasks.run_id"
        " JOIN targets ON targets.id = runs.target_id WHERE tasks.ok_count > 0 ORDER BY tasks.id"
    ).fetchall()
    if not groups:
        raise UsageError(
            f"{store.path} holds no valid trial.", remedy="Measure first: tuneassist dataset collect."
        )
    cores = tuple(sorted(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory(prefix="tuneassist-") as scratch:
        workers = Workers("llvm", cores, Path(scratch) / "zygote.log")
        workers.start()
        workers.wait_ready()
        try:
            measurer = LocalMeasurer(workers, cores, Protocol(repeat=_REPEATS, shorten=False))
            for task_id, run_id, name, spec, mod_json, target_json in groups:
                stored = _chosen(store, run_id, task_id, spread, sample, seed, doubtful)
                jobs = _jobs(stored, mod_json, target_json)
                if not jobs:
                    continue
                info = parse_workload(spec)
                inputs = Path(scratch) / f"{task_id}.npz"
                save_inputs(inputs, make_inputs(info, INPUT_SEED))
                workers.set_inputs(inputs)
                limits = limits_for(info.flops, info.bytes, repeat=_REPEATS, min_repeat_secs=0.01)
                for start in range(0, len(jobs), _CHUNK):
                    told(name, start, len(jobs))
                    part = jobs[start : start + _CHUNK]
                    outcomes: dict[int, Outcome] = {}
                    measurer.run(
                        [job for _, job in part], limits, best_secs=None, on_outcome=outcomes.__setitem__
                    )
                    for index, (trial, _) in enumerate(part):
                        repeated = _taken_over(store, name, trial, outcomes[index])
                        if repeated is not None:
                            yield repeated
                inputs.unlink()
        finally:
            workers.stop()


def _chosen(
    store: SqliteStore,
    run_id: int,
    task_id: int,
    spread: float,
    sample: float,
    seed: int,
    doubtful: frozenset[int],
) -> list[_Stored]:
    random = np.random.default_rng([seed, task_id])
    chosen = []
    for trial in store.trials(run_id, task_id=task_id):
        if trial.status is not TrialStatus.OK or not trial.run_secs or trial.best_of is None:
            continue
        disturbed = _spread(trial.run_secs) > spread or trial.id in doubtful
        if disturbed or random.random() < sample:
            assert trial.id is not None
            chosen.append(_Stored(trial.id, trial.trace_json, trial.run_secs, trial.best_of, disturbed))
    return chosen


def _jobs(stored: Sequence[_Stored], mod_json: str, target_json: str) -> list[tuple[_Stored, Job]]:
    target = Target(json.loads(target_json))
    load_tensor_intrinsics(target.kind.name)
    replayer = Replayer(tvm.ir.load_json(mod_json), target)
    jobs = []
    for trial in stored:
        try:
            jobs.append((trial, Job(module_to_text(replayer(trial.trace_json).mod), target_json)))
        except ValueError:
            continue  # Another TVM wrote the trace.
    return jobs


def _taken_over(store: SqliteStore, name: str, trial: _Stored, outcome: Outcome) -> Repeated | None:
    if outcome.run_secs is None or outcome.median_secs is None:
        return None
    if trial.disturbed and outcome.median_secs < trial.best_of:
        store.update_measurement(trial.id, run_secs=outcome.run_secs, best_of=outcome.median_secs)
    return Repeated(trial.id, name, trial.disturbed, trial.best_of, outcome.median_secs)


def _spread(run_secs: Sequence[float]) -> float:
    """How far the median is above the fastest repeat."""
    return float(np.median(run_secs)) / min(run_secs)
