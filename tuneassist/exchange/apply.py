"""Putting the best known schedule of a workload to work: found, compiled, verified, measured beside others.

Nothing is compiled or run in the calling process: kernels run in forked candidate processes, PyTorch in a
process of its own.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneassist.errors import NoMeasurementError, UsageError
from tuneassist.exchange.header import Function, python_lines
from tuneassist.exchange.packing import argument_specs, split_packing
from tuneassist.exchange.scheduled import load_workload
from tuneassist.exchange.selection import Place, StoredWorkload, find_workload, places_of
from tuneassist.records import Machine, RunSettings, TargetInfo, Trial, WorkloadInfo
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.targets.resolve import measuring_machine, resolve_target
from tuneassist.tuning.baseline import TorchBaseline
from tuneassist.tuning.confirm import measure_untuned
from tuneassist.tuning.database import Replayer
from tuneassist.tuning.inputs import INPUT_SEED, save_inputs
from tuneassist.tuning.measurer import LocalMeasurer
from tuneassist.tuning.measuring import Outcome, Protocol, limits_for
from tuneassist.tuning.task import TuneTask
from tuneassist.tuning.workers import Workers
from tuneassist.tvm_api import IRModule, Target, load_tensor_intrinsics
from tuneassist.workloads.build import build_prim_func, describe_module, workload_hash
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.reference import make_inputs, tolerance
from tuneassist.workloads.spec import parse_workload

_TRIED = 5
"""Schedules that are tried, best first, where the first ones fail or compute something else."""
_PASSES = 3
_PYTORCH_TIMEOUT_SECS = 120.0

Progress = Callable[[str], None]


@dataclass(slots=True)
class Applied:
    """The best schedule at work. Seconds are medians, None where it could not be measured."""

    workload: str
    spec: str
    target: TargetInfo
    machine: Machine
    run_id: int
    ordinal: int
    trial_id: int
    stored_secs: float
    """What the store says."""
    tuned_secs: float
    """Measured now, on the packed weight where there is one."""
    tuned_run_secs: tuple[float, ...]
    gflops: float
    untuned_secs: float | None
    pytorch_secs: float | None
    correct: bool | None
    """None: not checked."""
    max_relative_error: float | None
    reference: str
    """What the output was compared with."""
    snippet: str
    notes: list[str] = field(default_factory=list)

    def times_as_fast(self, other_secs: float | None) -> float | None:
        """How many times as fast as another it is."""
        return None if other_secs is None else other_secs / self.tuned_secs


@dataclass(frozen=True, slots=True)
class Known:
    """A workload with its best known schedules on this machine and target."""

    info: WorkloadInfo
    module: IRModule
    hash: str
    target: TargetInfo
    target_id: int
    machine: Machine
    machine_id: int
    trials: tuple[Trial, ...]
    """Fastest first."""


def apply_best(
    store: SqliteStore,
    spec: str,
    target_spec: str,
    cores: tuple[int, ...],
    *,
    verify: bool,
    progress: Progress = lambda text: None,
) -> Applied:
    """Compile, verify and measure the best schedule that the store knows for this machine and target.

    Args:
        store: Where it is; a trial whose output turns out wrong is marked there.
        spec: The workload: a spec, or the name or hash of a stored one.
        target_spec: As the user wrote it.
        cores: CPU ids to use.
        verify: Compare the output with a reference.
        progress: Told what happens, in words.

    Raises:
        UsageError: The spec or the target can't be understood, or nothing was measured for it here.
        NoMeasurementError: None of the best schedules works and is right any more.
        MachineError: This machine can't run it.
    """
    with tempfile.TemporaryDirectory(prefix="tuneassist-apply-") as folder:
        workers = Workers("llvm", cores, Path(folder) / "zygote.log")
        workers.start()
        try:
            progress("Looking for the best schedule.")
            known = find_best(store, spec, target_spec, cores)
            task = _task(known, Path(folder))
            workers.wait_ready()
            workers.set_inputs(task.inputs_path)
            return _Application(store, known, task, workers, cores, verify, progress).run()
        finally:
            workers.stop()


def find_best(store: SqliteStore, spec: str, target_spec: str, cores: tuple[int, ...]) -> Known:
    """Find the best schedules of a workload for this machine and target.

    Raises:
        UsageError: Nothing was measured for it here; the message says what was measured instead.
    """
    info, module = _workload(store, spec)
    load_tensor_intrinsics("llvm")
    target = resolve_target(target_spec, cores=cores, store=store)
    machine = measuring_machine(cores)
    # Asked for by content: an id that does not exist yet must not be made by a look-up.
    conn, key = store.connection, workload_hash(module)
    target_row = conn.execute("SELECT id FROM targets WHERE json = ?", (target.json,)).fetchone()
    machine_id = store.machine_id(machine)
    trials = (
        store.top_trials(key, target_id=target_row["id"], machine_id=machine_id, limit=_TRIED)
        if target_row
        else []
    )
    if not trials:
        raise _nothing_here(store, info, key, target, machine)
    return Known(info, module, key, target, target_row["id"], machine, machine_id, tuple(trials))


def _workload(store: SqliteStore, spec: str) -> tuple[WorkloadInfo, IRModule]:
    """A workload by spec, or one that only the store knows (an imported module, a file that is gone)."""
    try:
        info = parse_workload(spec)
        module = build_prim_func(info)
    except UsageError as unknown:
        try:
            stored = find_workload(store, spec)
        except UsageError:
            raise unknown from None
        return _stored_workload(stored)
    return describe_module(info, module), module


def _stored_workload(stored: StoredWorkload) -> tuple[WorkloadInfo, IRModule]:
    if stored.op in OPERATORS:
        info = parse_workload(stored.spec)
        return info, build_prim_func(info)
    module = load_workload(stored)
    *inputs, output = argument_specs(module["main"])
    return WorkloadInfo(stored.name, stored.spec, stored.op, tuple(inputs), output, stored.flops), module


def _nothing_here(
    store: SqliteStore, info: WorkloadInfo, key: str, target: TargetInfo, machine: Machine
) -> UsageError:
    row = store.connection.execute("SELECT * FROM workloads WHERE hash = ?", (key,)).fetchone()
    places: list[Place] = places_of(store, find_workload(store, key)) if row else []
    measured = "It was measured elsewhere: " + "; ".join(map(str, places)) + "." if places else ""
    command = f"tuneassist --batch --workload '{info.spec}'"
    if target.spec != "native":
        command += f" --target '{target.spec}'"
    return UsageError(
        f"No valid schedule of {info.name} is known for target {target.spec} ({target.json}) on this machine "
        f"with {machine.cores} cores.",
        remedy="\n".join(filter(None, (measured, f"Tune it here: {command}"))),
    )


def _task(known: Known, folder: Path) -> TuneTask:
    info, defaults = known.info, RunSettings()
    task = TuneTask(
        id=0, run_id=0, target_id=known.target_id, machine_id=known.machine_id, info=info, mod=known.module,
        workload_hash=known.hash, weight=1, target_json=known.target.json, folder=folder,
        limits=limits_for(
            info.flops, info.bytes, repeat=defaults.repeat, min_repeat_secs=defaults.min_repeat_secs
        ),
    )  # fmt: skip
    save_inputs(task.inputs_path, make_inputs(info, INPUT_SEED))
    return task


class _Application:
    def __init__(
        self, store: SqliteStore, known: Known, task: TuneTask, workers: Workers, cores: tuple[int, ...],
        verify: bool, progress: Progress,
    ) -> None:  # fmt: skip
        self._store = store
        self._known = known
        self._replay = Replayer(known.module, Target(json.loads(known.target.json)))
        self._task = task
        self._cores = cores
        self._verify = verify
        self._progress = progress
        self._protocol = Protocol()
        self._measurer = LocalMeasurer(workers, cores, self._protocol)
        self._notes: list[str] = []

    def run(self) -> Applied:
        known = self._known
        pytorch_secs = self._pytorch()
        reference = "PyTorch" if self._task.reference_path.exists() else "TVM's default schedule"
        self._progress("Measuring TVM's default schedule.")
        untuned_secs, error = measure_untuned(self._task, self._measurer)
        if error:
            self._notes.append(f"TVM's default schedule: {error}")
        for trial in known.trials:
            self._progress(f"Compiling trial {trial.ordinal} of run {trial.run_id}.")
            module = self._replayed(trial)
            if module is None:
                continue
            correct, difference = self._checked(trial, module)
            if correct is False:
                continue
            run_secs = self._measured(trial, module)
            if run_secs:
                return self._applied(
                    trial, module, run_secs, untuned_secs, pytorch_secs, correct, difference, reference
                )
        raise NoMeasurementError(
            f"None of the {len(known.trials)} best schedules of {known.info.name} works here now. "
            + " ".join(self._notes),
            remedy=f"Tune it again: tuneassist --batch --workload '{known.info.spec}'",
        )

    def _pytorch(self) -> float | None:
        if self._known.info.op not in OPERATORS:
            self._notes.append("PyTorch has no counterpart of this workload.")
            return None
        self._progress("Measuring PyTorch.")
        baseline = TorchBaseline(
            self._known.info.spec, self._task.inputs_path, self._task.reference_path, cores=self._cores,
            repeat=self._protocol.repeat, min_repeat_secs=self._protocol.min_repeat_secs,
        )  # fmt: skip
        result = baseline.measure(timeout_secs=_PYTORCH_TIMEOUT_SECS)
        if result.error:
            self._notes.append(result.error)
        return result.secs

    def _replayed(self, trial: Trial) -> IRModule | None:
        try:
            return self._replay(trial.trace_json).mod
        except ValueError as error:
            self._failed(trial, str(error).splitlines()[-1])
            return None

    def _checked(self, trial: Trial, module: IRModule) -> tuple[bool | None, float | None]:
        """Whether the whole kernel, packing included, is right (None: not checked), and how far it is off."""
        if not self._verify:
            return None, None
        if not self._task.reference_path.exists():
            self._notes.append("There is nothing to check the output against.")
            return None, None
        rtol, atol = tolerance(self._known.info)
        with self._open(module, prepacked=False) as opened:
            answer = (
                opened
                if isinstance(opened, Outcome)
                else opened.check(self._task.reference_path, rtol=rtol, atol=atol)
            )
        if isinstance(answer, Outcome):
            self._failed(trial, answer.error or str(answer.status))
            return False, None
        assert trial.id is not None
        self._store.set_correct(trial.id, answer["correct"])
        if not answer["correct"]:
            off = answer["max_relative_error"]
            self._failed(trial, f"its output differs by {off:.2g} of the largest value; it is marked wrong")
        return answer["correct"], answer["max_relative_error"]

    def _measured(self, trial: Trial, module: IRModule) -> tuple[float, ...]:
        self._progress("Measuring it.")
        run_secs: list[float] = []
        with self._open(module, prepacked=True) as opened:
            outcome = opened if isinstance(opened, Outcome) else None
            for _ in range(_PASSES):
                if not isinstance(opened, Outcome):
                    outcome = opened.measure()
                    run_secs += outcome.run_secs or ()
        if not run_secs and outcome is not None:
            self._failed(trial, outcome.error or str(outcome.status))
        return tuple(run_secs)

    @contextmanager
    def _open(self, module: IRModule, *, prepacked: bool) -> Iterator[Any]:
        (opened,) = self._measurer.open([self._task.job(module, prepacked=prepacked)], self._task.limits)
        try:
            yield opened
        finally:
            if not isinstance(opened, Outcome):
                opened.close()

    def _failed(self, trial: Trial, why: str) -> None:
        self._notes.append(f"Trial {trial.ordinal} of run {trial.run_id}: {why}.")
        self._progress(self._notes[-1])

    def _applied(
        self, trial: Trial, module: IRModule, run_secs: tuple[float, ...], untuned_secs: float | None,
        pytorch_secs: float | None, correct: bool | None, difference: float | None, reference: str,
    ) -> Applied:  # fmt: skip
        info, median = self._known.info, statistics.median(run_secs)
        assert trial.id is not None and trial.best_of is not None
        return Applied(
            workload=info.name, spec=info.spec, target=self._known.target, machine=self._known.machine,
            run_id=trial.run_id, ordinal=trial.ordinal, trial_id=trial.id, stored_secs=trial.best_of,
            tuned_secs=median, tuned_run_secs=run_secs, gflops=info.flops / median / 1e9,
            untuned_secs=untuned_secs, pytorch_secs=pytorch_secs, correct=correct,
            max_relative_error=difference, reference=reference if correct is not None else "",
            snippet=_snippet(info, module), notes=self._notes,
        )  # fmt: skip


def _snippet(info: WorkloadInfo, module: IRModule) -> str:
    parts = split_packing(module)
    functions = [Function("main", argument_specs(parts.whole))]
    if parts.pack is not None:
        functions.append(Function("pack", argument_specs(parts.pack)))
    lines = python_lines("kernel.so", functions, parts.position)
    export = f"tuneassist export --workload '{info.spec}' --format so -o kernel.so"
    return "\n".join([f"# {export}", *lines])
