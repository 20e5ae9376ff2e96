"""`tuneassist export`: what was measured, in the forms of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tuneassist.commands._history_options import RUN
from tuneassist.commands._history_print import hint, reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path
from tuneassist.errors import UsageError

_FORMATS = ("tvm", "so", "script", "csv", "parquet")


@click.command("export")
@click.argument("run", type=RUN, required=False)
@click.option(
    "--workload", metavar="SPEC", default="", help="Only this workload; of every run if none is named."
)
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="One of the above.")
@click.option(
    "-o", "--output", "output", type=click.Path(path_type=Path), required=True, metavar="PATH",
    help="The file (tvm: the folder) to make.",
)  # fmt: skip
@click.option("--machine", metavar="PATTERN", default="", help="Measured on this machine.")
@click.option("--target", metavar="PATTERN", default="", help="Measured for this target.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="tvm: only the N best of each workload.")
@click.option("--force", is_flag=True, help="Replace what is at PATH.")
@db_option
@json_option
@reports_errors
def command(
    run: int | None, workload: str, form: str, output: Path, machine: str, target: str, top: int | None,
    force: bool, db: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Write what was measured to PATH: of run RUN, or of one workload over all runs.

    \b
    tvm      a MetaSchedule JSON database: a folder that TVM's own JSONDatabase loads and compiles with;
             valid trials only
    so       the best kernel as a shared library, with PATH.h on how to call it from Python and C; of a whole
             model (--workload model:resnet18) its tuned form with weights, with PATH.py on how to load it
    script   the best schedule as TVMScript
    csv      every trial, failed ones included
    parquet  the same, where pyarrow is installed

    With --workload, tvm, so and script take the trials of this machine, or of the only one that measured
    it; --machine and --target choose. Nothing is overwritten without --force, and nothing is left behind
    half written.
    """
    if top is not None and form != "tvm":
        raise UsageError(f"--top does not go with --format {form}.", remedy="It limits --format tvm.")
    from tuneassist.exchange.selection import Wanted
    from tuneassist.storage.sqlite import open_store

    wanted = Wanted(run, workload, machine, target)
    output = output.expanduser()
    path = database_path(db)
    model = _model(workload, run, form)
    with open_store(path, readonly=True) as store:
        if model is None:
            done = _export(store, wanted, form, output, force, top)
    if model is not None:
        done = _export_model(path, model, target or "native", output, force)
    result = {"format": form, "path": str(output), **done}
    if as_json:
        print_json(result)
    else:
        _report(result)


def _export(
    store: Any, wanted: Any, form: str, path: Path, force: bool, top: int | None
) -> dict[str, Any]:  # fmt: skip
    from tuneassist.exchange import selection, tables

    if form == "csv":
        return tables.export_csv(store, wanted, path, force=force)
    if form == "parquet":
        return tables.export_parquet(store, wanted, path, force=force)
    places = selection.choose(store, wanted)
    if form == "tvm":
        from tuneassist.exchange.to_metaschedule import export_database

        done = export_database(store, places, path, force=force, top=top)
        return {**done, **_place(places[0])}
    if len(places) > 1:
        names = ", ".join(place.workload.name for place in places)
        raise UsageError(
            f"Run {wanted.run_id} tuned {len(places)} workloads, and {form} holds one.",
            remedy=f"Choose with --workload: {names}.",
        )
    if form == "so":
        from tuneassist.exchange.library import export_library

        done = export_library(store, places[0], path, force=force)
    else:
        from tuneassist.exchange.scheduled import export_script

        done = export_script(store, places[0], path, force=force)
    return {**done, "workload": places[0].workload.name, **_place(places[0])}


def _model(workload: str, run: int | None, form: str) -> Any:
    """The whole model that is to be exported, or None."""
    from tuneassist.workloads.models import parse_model

    if not workload or "/" in workload.partition(":")[2]:
        return None
    model = parse_model(workload)
    if model is not None and (form != "so" or run is not None):
        raise UsageError(
            f"{model.name} is a whole model, which --format so exports, from what is best over all runs.",
            remedy="Take --format so without a run; `tuneassist export RUN --format tvm` holds its kernels.",
        )
    return model


def _export_model(path: str | Path, model: Any, target: str, output: Path, force: bool) -> dict[str, Any]:
    from tuneassist.exchange.models import export_model
    from tuneassist.storage.sqlite import open_store
    from tuneassist.targets.cores import usable_cores

    # Writable: what is measured of a target that is new here is kept.
    with open_store(path) as store:
        return export_model(
            store, model, target, tuple(usable_cores()), output, force=force,
            progress=lambda text: hint(safe(text)),
        )  # fmt: skip


def _place(place: Any) -> dict[str, Any]:
    return {"machine": place.machine.hostname, "target": place.target.spec}


def _report(done: dict[str, Any]) -> None:
    path = safe(done["path"])
    if done["format"] in ("csv", "parquet"):
        say(f"{path}: {done['trials']} trials")
    elif done["format"] == "tvm":
        say(f"{path}: {done['records']} records of {done['workloads']} workloads")
        hint(f"Measured on {safe(done['machine'])} for {safe(done['target'])}.")
        if done["dropped"]:
            hint(f"Left out {done['dropped']} traces that this TVM can't apply.")
        hint(f"Use it with ms.database.JSONDatabase(work_dir={done['path']!r}).")
    elif "kernels" in done:
        tuned = f"{done['tuned_kernels']} of {done['kernels']} kernels tuned"
        say(f"{path}: {safe(done['workload'])} for {safe(done['target'])}, {tuned}")
        hint(f"{safe(done['loader'])} shows how to load it.")
    else:
        best = f"{done['best_secs'] * 1e3:.4g} ms on {safe(done['machine'])}"
        say(f"{path}: {safe(done['workload'])}, run {done['run_id']}, trial {done['ordinal']}, {best}")
        if done["format"] == "so":
            hint(f"{safe(done['header'])} says how to call it from Python and C.")
            if done["correct"] is None:
                hint("Its output was never checked against a reference; `tuneassist apply` does that.")
