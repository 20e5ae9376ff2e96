"""A dry run: the best candidates by prediction alone, written down for whoever measures them later.

Started by a viewer as `python -m tuneassist.exchange.candidates`, with one JSON request on stdin; the last
line of its stdout is the answer. Nothing is built, measured, or written to the database.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuneassist.errors import TuneAssistError, UsageError
from tuneassist.exchange.metaschedule import RECORDS, WORKLOADS, RecordLine, record_line, workload_line
from tuneassist.exchange.output import new_folder
from tuneassist.processes import die_with_parent
from tuneassist.records import TargetInfo
from tuneassist.targets.resolve import examine_target
from tuneassist.tuning.guides import GraphGuide
from tuneassist.tuning.loader import ModelLoader, shipped_weights
from tuneassist.tuning.model_run import Workload, load_workloads
from tuneassist.tuning.phases import PhaseClock
from tuneassist.tuning.search import Candidate, SpaceError, TaskSearch
from tuneassist.tvm_api import Target, load_tensor_intrinsics, ms, tvm
from tuneassist.workloads.spec import parse_workload

CANDIDATES = "candidates.json"
FILES = (CANDIDATES, WORKLOADS, RECORDS)
_POPULATION = 512
_GENERATIONS = 4


def dry_run(
    specs: Sequence[str], target_spec: str, *, cost_model: str, seed: int, keep: int, output: Path
) -> dict[str, Any]:
    """Search under the model alone and write the best candidates of each workload.

    The folder holds `candidates.json`, which says everything in one object, and the same candidates as a
    MetaSchedule database whose records have no times.

    Args:
        specs: Workloads.
        target_spec: What to search for; it need not be connected.
        cost_model: A kind of ours, or the path of a checkpoint.
        seed: Decides the random choices.
        keep: How many candidates of each workload.
        output: The folder to make.

    Raises:
        TuneAssistError: A workload or the target can't be used, or the folder can't be written.
    """
    examined = examine_target(target_spec)
    info, target = examined.target, Target(json.loads(examined.target.json))
    notes = [f"Not measured: {examined.problem.message}"] if examined.problem else []
    if info.kind != "llvm":
        notes.append(f"The cost models are made for CPUs: what they say of {info.kind} is a guess.")
    load_tensor_intrinsics(info.kind)
    threads = len(os.sched_getaffinity(0))
    weights = shipped_weights(cost_model, info.kind)
    model = ModelLoader(cost_model, seed=seed, threads=threads, checkpoint=weights)
    if not model.pretrained:
        notes.append("No pretrained model: the analytic estimate of the CPU's work ranks the candidates.")
    tasks = []
    with new_folder(output, force=False, holds=FILES) as part:
        _, works = load_workloads([parse_workload(spec) for spec in specs], (), part, notes.append)
        found = []
        for work in works:
            guide = GraphGuide(model, work.hash, target=target, cores=info.cores or 1, clock=PhaseClock())
            try:
                search = TaskSearch(work.module, target, guide, seed=seed, threads=threads)
                best = search.best_predicted(keep, population=_POPULATION, generations=_GENERATIONS)
            except SpaceError as error:
                raise UsageError(f"{work.info.name}: {error}", remedy="Choose another workload.") from error
            found.append((work, best))
            tasks.append(_task(work, best))
        result = {
            "measured": False, "target": json.loads(info.json), "target_spec": info.spec,
            "cost_model": cost_model, "seed": seed, "notes": notes, "output": str(output), "tasks": tasks,
        }  # fmt: skip
        (part / CANDIDATES).write_text(json.dumps(result, indent=2), encoding="utf-8")
        _write_database(part, found, info)
    return result


def _task(work: Workload, best: Sequence[Candidate]) -> dict[str, Any]:
    secs = [candidate.predicted_secs for candidate in best if candidate.predicted_secs is not None]
    if not secs:
        raise UsageError(
            f"{work.info.name}: the cost model predicts nothing here.", remedy="Choose gcn or mlp."
        )
    return {
        "name": work.info.name,
        "workload": work.info.spec,
        "workload_hash": work.hash,
        "spread": {"best_secs": min(secs), "median_secs": statistics.median(secs), "worst_secs": max(secs)},
        "candidates": [
            {
                "predicted_secs": candidate.predicted_secs, "score": candidate.score,
                "program": candidate.module_hash, "trace": json.loads(candidate.trace_json),
            }
            for candidate in best
        ],
    }  # fmt: skip


def _write_database(
    folder: Path, found: Sequence[tuple[Workload, Sequence[Candidate]]], target: TargetInfo
) -> None:
    """The candidates as MetaSchedule's own records, without times; loaded once, as a user will."""
    workloads, records = [], []
    for index, (work, best) in enumerate(found):
        workloads.append(workload_line(work.hash, tvm.ir.save_json(work.module)))
        arguments = ms.arg_info.ArgInfo.from_entry_func(work.module, remove_preproc=False)
        args_info = json.loads(json.dumps([argument.as_json() for argument in arguments], default=list))
        records += [
            record_line(RecordLine(index, candidate.trace_json, None, target.json), args_info)
            for candidate in best
        ]
    (folder / WORKLOADS).write_text("".join(f"{line}\n" for line in workloads), encoding="utf-8")
    (folder / RECORDS).write_text("".join(f"{line}\n" for line in records), encoding="utf-8")
    ms.database.JSONDatabase(work_dir=str(folder))


def main() -> None:
    """Serve one request."""
    die_with_parent()
    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    # What TVM prints must not get between the answers.
    os.dup2(2, 1)
    try:
        answer = dry_run(
            request["workloads"], request["target"], cost_model=request["cost_model"], seed=request["seed"],
            keep=request["keep"], output=Path(request["output"]),
        )  # fmt: skip
    except TuneAssistError as error:
        answer = {"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
