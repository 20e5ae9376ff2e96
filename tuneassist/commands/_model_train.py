"""`tuneassist model train`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuneassist.commands._data_set import data_path, progress_bar
from tuneassist.commands._history_options import store_path
from tuneassist.commands._history_print import hint, reports_errors, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import RunInterruptedError, UsageError

if TYPE_CHECKING:
    from tuneassist.research.samples import DataSet


@click.command("train")
@click.argument("data", metavar="[DATA]", required=False, type=click.Path(path_type=Path))
@click.option("--from-history", is_flag=True, help="Train on what this machine measured, in the database.")
@click.option("--kind", default="gnn", show_default=True, metavar="KIND", help="Model to train.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="PATH",
    help="The checkpoint to write; a JSON file beside it tells what it is.",
)  # fmt: skip
@click.option("--epochs", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace what is at PATH.")
@db_option
@json_option
@reports_errors
def train_command(
    data: Path | None, from_history: bool, kind: str, output: Path, epochs: int | None, seed: int,
    force: bool, db: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Train a cost model on DATA and write a checkpoint, for --cost-model PATH.

    DATA is a tuneassist database, or one compressed with xz. [default: the shipped data set] Training stops
    early when the loss on trials that it is kept from no longer falls. After Ctrl-C the same command goes
    on where it was, with the same result. A GPU is used where torch sees one. KIND is gnn, gcn, mlp, tree,
    context-relation or per-store.
    """
    if from_history and data is not None:
        raise UsageError("--from-history and DATA exclude each other.", remedy="Give one of them.")
    if output.exists() and not force:
        raise UsageError(f"{output} is there already.", remedy="Name another file, or give --force.")
    path = store_path(db) if from_history else data_path(data)
    if from_history and not Path(path).is_file():
        raise UsageError(f"Nothing was measured yet: there is no {path}.", remedy="Tune something first.")
    started = time.monotonic()
    trained, dataset = _train(path, kind, output, epochs, seed)
    about = _save(trained, dataset, output, seed, Path(path).name)
    about["train_secs"] = time.monotonic() - started
    _register(about, output, db)
    if as_json:
        print_json({"path": str(output), **about})
        return
    figures = about["held_out_trials"]
    say(f"{output}: {kind}, trained on {about['trials']} trials of {len(about['workloads'])} workloads.")
    say(
        "On every tenth trial, kept from it: pairwise accuracy "
        f"{figures['pairwise_accuracy']:.3f}, within 1.5x {figures['calibration']:.0%}."
    )
    say(f"Use it: tuneassist --batch --cost-model {output} --workload resnet18.c2")


def _train(path: str, kind: str, output: Path, epochs: int | None, seed: int) -> tuple[Any, DataSet]:
    from tuneassist.cost_model.bases import BASES, EPOCHS
    from tuneassist.cost_model.registry import MODULE_KINDS
    from tuneassist.research.pretrain import train
    from tuneassist.research.rebuild import GRAPHS
    from tuneassist.research.samples import load_dataset

    if kind not in BASES:
        raise UsageError(f"There is no model {kind!r} to train.", remedy=f"Known: {', '.join(BASES)}.")
    threads = len(os.sched_getaffinity(0))
    try:
        with progress_bar("rebuilding programs") as bar:
            what = kind if kind in MODULE_KINDS else GRAPHS
            dataset = load_dataset(path, what=what, processes=threads, progress=bar)
        if dataset.unusable:
            hint(f"{dataset.unusable} traces no longer apply and are left out.")
        output.parent.mkdir(parents=True, exist_ok=True)
        trained = train(
            dataset, kind, seed=seed, epochs=epochs or EPOCHS, output=output, threads=threads,
            told=lambda epoch, loss, kept: hint(f"epoch {epoch}: loss {loss:.4f}, held out {kept:.4f}"),
        )  # fmt: skip
    except KeyboardInterrupt as error:
        raise RunInterruptedError(
            "Training was interrupted.", remedy="Give the same command again to go on."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{output.parent} can't be written: {error.strerror}.", remedy="Name another folder."
        ) from error
    return trained, dataset


def _save(trained: Any, dataset: DataSet, output: Path, seed: int, trained_on: str) -> dict[str, Any]:
    from tuneassist.research.pretrain import describe

    trained.model.save(output)
    about = describe(trained, dataset, output, seed=seed, trained_on=trained_on)
    output.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return about


def _register(about: dict[str, Any], output: Path, db: str | None) -> None:
    """Note the checkpoint in the store, where `model list` finds it."""
    from tuneassist.storage.models import add_model
    from tuneassist.storage.sqlite import open_store

    with open_store(store_path(db)) as store:
        add_model(
            store, kind=about["kind"], path=str(output.resolve()), sha256=about["sha256"],
            trained_on=about["trained_on"], metrics=about,
        )  # fmt: skip
