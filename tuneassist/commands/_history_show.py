"""`tuneassist history show`."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import click

from tuneassist.commands._history_options import RUN, db_suffix, store_path
from tuneassist.commands._history_print import as_data, print_table, reports_errors, safe, say, sparkline
from tuneassist.commands._history_trials import first_line
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.records import Round, RunSettings
from tuneassist.storage.queries import RunRow
from tuneassist.storage.reading import reading
from tuneassist.storage.run_detail import Improvement, RunDetail, TaskRow, best_curves, run_detail
from tuneassist.ui import format as fmt

_ROUNDS_SHOWN = 12
_TASK_COLUMNS = ("task", "best", "spread", "GFLOPS", "untuned", "PyTorch", "valid/trials", "output")
_ROUND_COLUMNS = ("round", "trials", "valid", "Spearman", "pairwise")
_OUTPUTS = {True: "right", False: "WRONG", None: fmt.NONE}


@click.command("show")
@click.argument("run", type=RUN)
@db_option
@json_option
@reports_errors
def show_command(run: int, db: str | None, as_json: bool) -> None:
    """Show run RUN: settings, machine, best per task, failures with example errors, model quality, phases."""
    path = store_path(db)
    with reading(path) as conn:
        detail = run_detail(conn, run, path)
        curves = best_curves(conn, run)
    if as_json:
        print_json(_data(detail, curves, path))
    else:
        _print(detail, curves, db)


def _data(detail: RunDetail, curves: dict[int, list[Improvement]], path: str) -> dict[str, Any]:
    tasks = [
        {**as_data(task), "gflops": task.gflops, "curve": as_data(curves.get(task.id, []))}
        for task in detail.tasks
    ]
    run = {**as_data(detail.run), "state": detail.run.state, "resumable": detail.run.resumable}
    return {"db": path, **as_data(detail), "run": run, "tasks": tasks}


def _print(detail: RunDetail, curves: dict[int, list[Improvement]], db: str | None) -> None:
    _print_head(detail)
    say()
    print_table(_TASK_COLUMNS, map(_task_cells, detail.tasks), numeric=_TASK_COLUMNS[1:7])
    for task in detail.tasks:
        _print_curve(task, curves.get(task.id, []))
    _print_failures(detail)
    _print_rounds(detail.rounds)
    _print_phases(detail.phase_secs)
    if detail.run.resumable:
        say()
        say(f"Continue it: tuneassist --batch --resume {detail.run.id}{db_suffix(db)}")


def _print_head(detail: RunDetail) -> None:
    run, machine, target = detail.run, detail.machine, detail.target
    say(f"Run {run.id}: {run.state}, {run.trials} of {run.trials_requested} trials, {run.valid} valid")
    lines = {
        "note": run.note,
        "started": f"{fmt.moment(run.started_at)}, {_took(run)}",
        "machine": f"{machine.hostname}, {machine.cpu}, {machine.cores} cores",
        "target": f"{target.spec}, {target.cores} cores{f' ({target.note})' if target.note else ''}",
        "model": f"{run.cost_model}, seed {run.seed}",
        "settings": _settings(detail.settings),
    }
    for name, text in lines.items():
        if text:
            say(f"{name:<9}{safe(text)}")


def _took(run: RunRow) -> str:
    if run.ended_at is None:
        return "has not ended"
    return f"took {fmt.duration(run.ended_at - run.started_at)}"


def _settings(settings: RunSettings) -> str:
    """Those that differ from the defaults and are not shown elsewhere."""
    shown = {"workloads", "target", "trials", "cost_model", "seed"}
    usual = RunSettings()
    changed = [
        f"{field.name} {getattr(settings, field.name)}"
        for field in fields(settings)
        if field.name not in shown and getattr(settings, field.name) != getattr(usual, field.name)
    ]
    return ", ".join(changed)


def _task_cells(task: TaskRow) -> tuple[str, ...]:
    best = task.best_secs
    repeats = task.best_run_secs
    return (
        f"{task.name}{f' ×{task.weight}' if task.weight != 1 else ''}",
        fmt.latency(best),
        f"{(max(repeats) - min(repeats)) / best:.1%}" if best and len(repeats) > 1 else fmt.NONE,
        fmt.number(task.gflops, 1),
        fmt.ratio(task.untuned_secs / best if best and task.untuned_secs else None),
        fmt.ratio(task.pytorch_secs / best if best and task.pytorch_secs else None),
        f"{task.valid}/{task.trials}",
        _OUTPUTS[task.best_correct] if best else fmt.NONE,
    )


def _print_curve(task: TaskRow, curve: list[Improvement]) -> None:
    if task.error:
        say(f"{safe(task.name)}: {safe(first_line(task.error, 200))}")
    if len(curve) < 2:
        return
    # The best so far at evenly spaced trials, on a log scale: halving looks the same wherever it happens.
    points, at = [], 0
    for trial in range(curve[0].trial, task.trials + 1):
        while at + 1 < len(curve) and curve[at + 1].trial <= trial:
            at += 1
        points.append(math.log(curve[at].best_secs))
    last = curve[-1]
    say(
        f"{safe(task.name)}: {fmt.latency(curve[0].best_secs)} {sparkline(points)}"
        f" {fmt.latency(last.best_secs)} at trial {last.trial} of {task.trials}"
    )


def _print_failures(detail: RunDetail) -> None:
    for failure in detail.failures:
        say()
        say(f"{failure.count} {failure.status.value}")
        for example in failure.examples:
            say(f"    {safe(first_line(example, 200))}")


def _print_rounds(rounds: tuple[Round, ...]) -> None:
    if not rounds:
        return
    say()
    ranked = [record.spearman for record in rounds if record.spearman is not None]
    if ranked:
        say(f"Rank correlation by round (predicted with measured): {sparkline(ranked)}")
    shown = [
        (r.round, r.trials, r.valid, fmt.number(r.spearman), fmt.number(r.pairwise_accuracy))
        for r in rounds[-_ROUNDS_SHOWN:]
    ]
    print_table(_ROUND_COLUMNS, shown, numeric=_ROUND_COLUMNS)
    if len(rounds) > _ROUNDS_SHOWN:
        say(f"The last {_ROUNDS_SHOWN} of {len(rounds)} rounds; --json has all.")


def _print_phases(phase_secs: dict[str, float]) -> None:
    whole = sum(phase_secs.values())
    if whole <= 0:
        return
    shares = sorted(phase_secs.items(), key=lambda item: -item[1])
    say()
    say(
        "Time by phase: "
        + ", ".join(f"{safe(name)} {fmt.duration(secs)} ({secs / whole:.0%})" for name, secs in shares)
    )
