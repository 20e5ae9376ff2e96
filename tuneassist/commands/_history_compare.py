"""`tuneassist history compare`."""

from __future__ import annotations

import click

from tuneassist.commands._history_options import RUN, csv_option, store_path
from tuneassist.commands._history_print import (
    as_data,
    hint,
    print_csv,
    print_table,
    reports_errors,
    safe,
    say,
)
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import UsageError
from tuneassist.storage.comparison import Comparison, RunOnTask, TaskComparison, compare
from tuneassist.storage.reading import reading
from tuneassist.ui import format as fmt

_COLUMNS = ("run", "model", "best", "ratio", "95 %", "trials", "trials to common", "time to common")
_CSV = (
    "workload", "workload_spec", "run_id", "cost_model", "best_secs", "ratio", "ratio_low", "ratio_high",
    "trials", "common_secs", "trials_to_common", "secs_to_common",
)  # fmt: skip


@click.command("compare")
@click.argument("runs", type=RUN, nargs=-1, required=True)
@db_option
@csv_option
@json_option
@reports_errors
def compare_command(runs: tuple[int, ...], db: str | None, as_csv: bool, as_json: bool) -> None:
    """Compare two or more RUNS with the first of them, workload by workload.

    The ratio is the first run's best latency over the other's: above 1, the other is faster. Its 95 %
    interval comes from the repeats of the two measurements. Common is the worst of the bests: what every
    run reached, and after how many trials and how much time.
    """
    if len(runs) < 2 or len(set(runs)) < len(runs):
        raise UsageError(
            f"Got {', '.join(map(str, runs))}; at least two different runs are compared.",
            remedy="tuneassist history compare 3 5",
        )
    path = store_path(db)
    with reading(path) as conn:
        found = compare(conn, runs, path)
    if as_json:
        print_json({"db": path, **as_data(found)})
    elif as_csv:
        print_csv(_CSV, [_csv_row(found, task, row) for task in found.tasks for row in task.runs])
    else:
        _print(found)


def _model(found: Comparison, run_id: int) -> str:
    return next(run.cost_model for run in found.runs if run.id == run_id)


def _csv_row(found: Comparison, task: TaskComparison, row: RunOnTask) -> list[object]:
    return [
        task.name, task.workload_spec, row.run_id, _model(found, row.run_id), row.task.best_secs, row.ratio,
        row.ratio_low, row.ratio_high, row.task.trials, row.common_secs, row.trials_to_common,
        row.secs_to_common,
    ]  # fmt: skip


def _print(found: Comparison) -> None:
    if not found.tasks:
        hint("These runs have no workload in common.")
    for task in found.tasks:
        common = task.runs[0].common_secs
        say(f"{safe(task.name)}{f', common {fmt.latency(common)}' if common else ''}")
        rows = [
            (
                row.run_id,
                _model(found, row.run_id),
                fmt.latency(row.task.best_secs),
                fmt.ratio(row.ratio),
                _interval(row),
                row.task.trials,
                row.trials_to_common or fmt.NONE,
                fmt.duration(row.secs_to_common),
            )
            for row in task.runs
        ]
        print_table(_COLUMNS, rows, numeric=set(_COLUMNS) - {"model"})
        say()
    if len(found.tasks) > 1:
        means = [
            f"run {run.id} {fmt.ratio(mean)}"
            for run, mean in zip(found.runs, found.geomean_ratios, strict=True)
        ]
        say(f"Geometric mean of the ratios: {', '.join(means)}")
    if not found.same_place:
        hint("These runs are of different machines or targets: the ratios compare those, too.")


def _interval(row: RunOnTask) -> str:
    if row.ratio_low is None or row.ratio_high is None:
        return fmt.NONE
    return f"{row.ratio_low:.2f}-{row.ratio_high:.2f}"
