"""`tuneassist model evaluate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuneassist.commands._data_set import data_path, progress_bar
from tuneassist.commands._history_print import hint, print_table, reports_errors
from tuneassist.commands._options import json_option, print_json
from tuneassist.errors import UsageError

if TYPE_CHECKING:
    from tuneassist.research.evaluate import Judged, Score
    from tuneassist.research.samples import DataSet

_SPLITS = ("workload", "family", "within", "machine")
_MODELS = ("gnn", "gcn", "mlp", "context-relation", "per-store")
_COLUMNS = ("model", "shots", "pairwise", "spearman", "top-1", "top-5", "top-10", "RMSE log", "within 1.5x")


@click.command("evaluate")
@click.argument("data", metavar="[DATA]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--model", "models", multiple=True, metavar="KIND",
    help=f"May be given several times. [default: {', '.join(_MODELS)}]",
)  # fmt: skip
@click.option(
    "--split", type=click.Choice(_SPLITS), default="workload", show_default=True, help="What is left out."
)
@click.option(
    "--held-out", multiple=True, metavar="PREFIX",
    help="Leave out only what begins so, one at a time; may be given several times.",
)  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 99), default=3, show_default=True, metavar="N")
@click.option(
    "--shots", default="0,8,16,32", show_default=True, metavar="LIST",
    help="Trials of a new workload that models may learn from.",
)  # fmt: skip
@click.option("--epochs", type=click.IntRange(min=1), metavar="N", help="Of training a network.")
@click.option("--against", default="per-store", show_default=True, metavar="KIND", help="Compare with it.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
    help="Write plots and all scores there.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. [default: all cores]")
@json_option
@reports_errors
def evaluate_command(
    data: Path | None, models: tuple[str, ...], split: str, held_out: tuple[str, ...], seeds: int, shots: str,
    epochs: int | None, against: str, output: Path | None, jobs: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Train models on a part of DATA, judge them on the rest, and compare them.

    DATA is a tuneassist database, or one compressed with xz. [default: the shipped data set] Every model
    sees the same rows, splits and seeds. Figures are means over what was left out, with the standard error
    of the mean; differences are paired. KIND is gnn, gcn, mlp, tree, context-relation, per-store,
    estimate, random, or a variant of the graph network (gnn-net, gnn-no-flow, gnn-no-edges, gnn-no-mean,
    gnn-no-gate, gnn-1-layer, gnn-wide, gnn-3-nets).
    """
    path = data_path(data)
    from tuneassist.cost_model.bases import BASES, EPOCHS
    from tuneassist.research import campaign
    from tuneassist.research.variants import VARIANTS

    chosen = tuple(dict.fromkeys(models or _MODELS))
    known = (*BASES, *VARIANTS)
    for name in chosen:
        if name not in known:
            raise UsageError(f"There is no model {name!r} to judge.", remedy=f"Known: {', '.join(known)}.")
    plan = campaign.Plan(path, chosen, split, held_out, seeds, _numbers(shots), epochs or EPOCHS)
    processes = jobs or len(os.sched_getaffinity(0))
    with progress_bar("rebuilding programs") as bar:
        dataset = campaign.rebuild_all(plan, processes=processes, progress=bar)
    _warn(dataset)
    scores: list[Score] = []
    judged: list[Judged] = []
    with progress_bar("training and judging") as bar:
        for more, predictions in campaign.run(plan, processes=processes, progress=bar):
            scores += more
            judged += predictions
    result = _result(dataset, plan, scores, against)
    if output is not None:
        _write(output, result, scores, judged)
    if as_json:
        print_json(result)
    else:
        _print(result, plan.shots, against)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = (-1,)
    if min(numbers) < 0:
        raise UsageError(f"--shots {text!r} is no list of counts.", remedy="Write 0,8,16,32.")
    return numbers


def _warn(dataset: DataSet) -> None:
    for name, valid in dataset.skipped.items():
        hint(f"{name} is left out: it has {valid} valid trials of different times.")
    if dataset.unusable:
        hint(f"{dataset.unusable} traces no longer apply and are left out.")
    for name, count in dataset.unknown.items():
        hint(f"AST nodes of class {name} ({count}) are unknown to this version.")


def _result(dataset: DataSet, plan: Any, scores: Sequence[Score], against: str) -> dict[str, Any]:
    from tuneassist.research.summary import HEADLINE, difference, means

    table, differences = [], []
    for model in plan.models:
        for shots in plan.shots:
            row = {name: means(scores, name, model=model, shots=shots) for name in HEADLINE}
            table.append(
                {"model": model, "shots": shots, **{k: v and asdict(v) for k, v in row.items()}}
            )  # fmt: skip
            if model != against and against in plan.models:
                found = {
                    name: difference(scores, name, model=model, against=against, shots=shots)
                    for name in HEADLINE[:5]
                }
                differences.append(
                    {"model": model, "against": against, "shots": shots,
                     **{k: v and asdict(v) for k, v in found.items()}}
                )  # fmt: skip
    return {
        "data": dataset.path, "data_sha256": dataset.sha256, "workloads": len(dataset.workloads),
        "samples": dataset.samples, "split": plan.split, "held_out": list(plan.held_out),
        "seeds": plan.seeds, "epochs": plan.epochs, "means": table, "differences": differences,
        "scores": [asdict(score) for score in scores],
    }  # fmt: skip


def _print(result: dict[str, Any], shots: Sequence[int], against: str) -> None:
    metrics = ("pairwise_accuracy", "spearman", "top_1", "top_5", "top_10", "rmse_log", "calibration")
    print_table(
        _COLUMNS,
        [
            [row["model"], str(row["shots"]), *(_cell(row[name]) for name in metrics)]
            for row in result["means"]
        ],
        numeric=_COLUMNS[1:],
    )
    for row in result["differences"]:
        found = row["pairwise_accuracy"]
        if found and row["shots"] == min(shots):
            hint(
                f"{row['model']} against {against}: pairwise {found['mean']:+.3f} ± {found['error']:.3f}, "
                f"better on {found['better']} of {found['count']}"
            )


def _cell(mean: dict[str, Any] | None) -> str:
    return f"{mean['mean']:.3f} ±{mean['error']:.3f}" if mean else "-"


def _write(folder: Path, result: dict[str, Any], scores: Sequence[Score], judged: Sequence[Judged]) -> None:
    import json

    from tuneassist.cost_model.plots import Predicted, plot_ablation, plot_predictions

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "evaluation.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{folder} can't be written: {error.strerror}.", remedy="Name another folder."
        ) from error
    for model in dict.fromkeys(found.model for found in judged):
        panels = [
            Predicted(found.workload, found.predicted_secs, found.measured_secs)
            for found in judged
            if found.model == model
        ]
        plot_predictions(panels, folder / f"predicted-{model}.png", title=f"{model}, held-out workloads")
    rows = [row for row in result["means"] if row["shots"] == 0 and row["pairwise_accuracy"]]
    if rows:
        plot_ablation(
            {row["model"]: row["pairwise_accuracy"]["mean"] for row in rows},
            {row["model"]: row["pairwise_accuracy"]["error"] for row in rows},
            folder / "pairwise.png",
            metric="pairwise accuracy",
        )
    hint(f"Scores and plots are in {folder}.")
