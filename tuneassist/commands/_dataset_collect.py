"""`tuneassist dataset collect`: measures schedules of many workloads for a data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tuneassist.commands._batch import follow
from tuneassist.commands._history_print import print_table, reports_errors
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.commands._progress import make_progress
from tuneassist.config import database_path
from tuneassist.errors import (
    BY_EXIT_CODE,
    MachineError,
    NoMeasurementError,
    RunInterruptedError,
    TuneAssistError,
)
from tuneassist.records import RunSettings, RunStatus
from tuneassist.session import EngineSession
from tuneassist.storage.collected import Collected, collected_runs

STANDARD = (
    *(f"resnet18.c{number}" for number in range(1, 13)),
    "generic.matmul-512", "bert-base.query", "vit-b16.qkv", "bert-base.ffn1-gelu", "bert-base.scores",
    "bert-base.context", "generic.batch-matmul", "llama-7b.decode-q-proj",
    "mobilenet-v2.dw144", "mobilenet-v2.dw384", "efficientnet-b0.dw240-k5", "resnext50.group-conv1",
    "mobilenet-v2.expand96", "resnet50.layer3.conv1",
    "conv2d:n=1,ci=64,h=56,w=56,co=64,k=3,s=1,p=1,layout=NHWC",
    "bert-base.softmax", "bert-base.layer-norm", "llama-7b.rms-norm", "generic.sum-columns", "dcgan.up4",
    "resnet50.layer1.conv3",
)  # fmt: skip
"""Workloads that are collected where none are named: families and sizes as networks have them."""

_MOST_VISITS = 3
"""Runs of a workload at most: some spaces hold fewer valid schedules than are wanted."""
_SURPLUS = 1.08
"""Trials asked for each valid one that is wanted."""


@click.command("collect")
@click.option(
    "--workload", "workloads", multiple=True, metavar="SPEC",
    help="May be given several times. [default: a standard set of networks' operators]",
)  # fmt: skip
@click.option(
    "--trials", type=click.IntRange(min=3), default=300, show_default=True, help="Valid trials of each."
)
@click.option("--target", default="native", show_default=True, metavar="SPEC", help="Hardware target.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@db_option
@json_option
@reports_errors
def collect_command(
    workloads: tuple[str, ...], trials: int, target: str, seed: int, quiet: bool, db: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Measure schedules of workloads into the store: a third random, a third spread evenly over vector
    widths, unrolling and parallel extents, a third from guided search; each trial is marked so.

    A run for each workload. What is there already counts: the same command, given again, goes on where it
    was stopped.
    """
    from tuneassist.workloads.spec import parse_workload

    path = Path(database_path(db))
    infos = [parse_workload(spec) for spec in workloads or STANDARD]
    settings = RunSettings(target=target, cost_model="ensemble", seed=seed, collect=True, reuse_history=False)
    for info in infos:
        _collect(replace(settings, workloads=(info.name,)), trials, path, quiet=quiet)
    found = [collected_runs(path, settings_of(settings, info.name)) for info in infos]
    rows = [
        {"workload": info.name, "runs": [run.run_id for run in runs], "trials": sum(r.trials for r in runs),
         "valid": sum(run.valid for run in runs)}
        for info, runs in zip(infos, found, strict=True)
    ]  # fmt: skip
    if as_json:
        print_json({"db": str(path), "workloads": rows})
    else:
        print_table(
            ["workload", "valid", "trials"],
            [[row["workload"], str(row["valid"]), str(row["trials"])] for row in rows],
            numeric=("valid", "trials"),
        )


def settings_of(settings: RunSettings, workload: str) -> dict[str, Any]:
    """What must be equal for an earlier run to count."""
    return {
        "workloads": [workload], "target": settings.target, "seed": settings.seed, "collect": True,
    }  # fmt: skip


def _collect(settings: RunSettings, wanted: int, db: Path, *, quiet: bool) -> None:
    """Run the engine on one workload until it has as many valid trials, or has no more to offer."""
    same = settings_of(settings, settings.workloads[0])
    for _ in range(_MOST_VISITS):
        runs = collected_runs(db, same)
        valid, trials = sum(run.valid for run in runs), sum(run.trials for run in runs)
        if valid >= wanted:
            return
        asked = (
            round(_SURPLUS * wanted) if not trials else trials + max(8, round(_SURPLUS * (wanted - valid)))
        )
        if not runs:
            _engine(replace(settings, trials=asked), None, db, quiet=quiet)
        elif _spent(runs[0]):
            return
        else:
            _engine(replace(settings, trials=asked), runs[0].run_id, db, quiet=quiet)


def _spent(run: Collected) -> bool:
    """Whether the run ended although trials were left: its space is exhausted, or the task failed."""
    return run.status is RunStatus.DONE and run.trials < run.requested


def _engine(settings: RunSettings, resume: int | None, db: Path, *, quiet: bool) -> None:
    """One engine from start to end.

    Raises:
        TuneAssistError: It was interrupted, or could not work; a workload that measures nothing is none.
    """
    session = EngineSession.start(settings, db=db, detachable=False, resume_run_id=resume)
    session = follow(session, make_progress(quiet=quiet), attached=False)
    ended = session.ended
    if ended is None:
        raise MachineError(
            f"The engine died while it measured {settings.workloads[0]} (exit code {session.exit_code}).",
            remedy=f"Its log is {session.events_path.with_suffix('.log')}.",
        )
    if ended.exit_code == RunInterruptedError.exit_code:
        raise RunInterruptedError(
            "Collecting was interrupted; what was measured is kept.",
            remedy="Give the same command again to go on.",
        )
    if ended.exit_code not in (0, NoMeasurementError.exit_code):
        raise BY_EXIT_CODE.get(ended.exit_code, TuneAssistError)(ended.error or "", remedy=ended.remedy)
