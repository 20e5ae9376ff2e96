"""`tuneassist --batch --dry-run`: candidates by prediction alone, for a target that need not be here."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import click

from tuneassist.commands._batch import check_settings, settings_from_options
from tuneassist.commands._options import print_json
from tuneassist.config import load_config
from tuneassist.errors import BY_EXIT_CODE, MachineError, TuneAssistError, UsageError
from tuneassist.processes import module_command

_NO_MODEL = ("xgb", "random")


def run_dry(options: dict[str, Any]) -> int:
    """Do what `--dry-run` asks for and return the exit code.

    Raises:
        TuneAssistError: It can't be done.
    """
    try:
        found = _found(options)
    except TuneAssistError as error:
        if options["as_json"]:
            print_json({"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code})
        raise
    if options["as_json"]:
        print_json(found)
    else:
        _print(found)
    return 0


def _found(options: dict[str, Any]) -> dict[str, Any]:
    if options["resume"] is not None or options["attach"] is not None:
        raise UsageError("A dry run is no run: nothing of it can be resumed.", remedy="Leave that out.")
    settings = settings_from_options(options, load_config())
    check_settings(settings)
    if settings.cost_model in _NO_MODEL:
        raise UsageError(
            f"The cost model {settings.cost_model!r} knows nothing before the first measurement.",
            remedy="A dry run needs gcn, mlp, or a checkpoint.",
        )
    request = {
        "workloads": settings.workloads, "target": settings.target, "cost_model": settings.cost_model,
        "seed": settings.seed, "keep": options["keep"], "output": options["output"],
    }  # fmt: skip
    done = subprocess.run(
        module_command("tuneassist.exchange.candidates"), input=json.dumps(request), text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    line = done.stdout.strip().rpartition("\n")[2]
    answer: dict[str, Any] | None = json.loads(line) if line.startswith("{") else None
    if answer is None:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise MachineError(f"The dry run failed: {last[0]}", remedy="Run `tuneassist doctor`.")
    if "error" in answer:
        kind = BY_EXIT_CODE.get(answer["exit_code"], TuneAssistError)
        raise kind(answer["error"], remedy=answer["remedy"])
    return answer


def _print(found: dict[str, Any]) -> None:
    for note in found["notes"]:
        click.echo(note, err=True)
    click.echo("workload\trank\tpredicted_secs\tscore\tprogram")
    for task in found["tasks"]:
        for rank, candidate in enumerate(task["candidates"], 1):
            secs = candidate["predicted_secs"]
            cells = (
                task["name"],
                str(rank),
                f"{secs:.4g}",
                f"{candidate['score']:.4g}",
                candidate["program"],
            )
            click.echo("\t".join(cells))
    for task in found["tasks"]:
        spread = task["spread"]
        click.echo(
            f"{task['name']}: predicted, not measured: {spread['best_secs'] * 1e3:.4g} to "
            f"{spread['worst_secs'] * 1e3:.4g} ms, median {spread['median_secs'] * 1e3:.4g} ms.",
            err=True,
        )
    click.echo(f"Written to {found['output']}.", err=True)
