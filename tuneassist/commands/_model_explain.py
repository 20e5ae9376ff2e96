"""`tuneassist model explain`."""

from __future__ import annotations

import math
from typing import Any

import click

from tuneassist.commands._history_options import RUN
from tuneassist.commands._history_print import reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.commands._program_print import print_tree
from tuneassist.config import database_path
from tuneassist.errors import UsageError
from tuneassist.storage.models import PRETRAINED, checkpoint_path
from tuneassist.ui import format as fmt


@click.command("explain")
@click.argument("trial_id", required=False, type=RUN)
@click.option("--run", "run_id", type=RUN, metavar="RUN", help="The run whose trial --trial names.")
@click.option("--trial", "ordinal", type=RUN, metavar="N", help="The N-th trial of --run.")
@click.option(
    "--model", "name", metavar="PATH|pretrained", default=PRETRAINED, show_default=True,
    help="The checkpoint to explain.",
)  # fmt: skip
@db_option
@json_option
@reports_errors
def explain_command(
    trial_id: int | None, run_id: int | None, ordinal: int | None, name: str, db: str | None, as_json: bool
) -> None:
    """Show what each node of a trial's program adds to the predicted time.

    TRIAL_ID is a trial's id in the database (`tuneassist history trials RUN --json` lists ids); --run and
    --trial name it by its number within a run instead. Contributions are natural logs of seconds: they and
    the constant add up to the log of the predicted time.
    """
    from tuneassist.exchange.program import inspect_trial
    from tuneassist.storage.sqlite import open_store

    if (trial_id is None) == (run_id is None) or (run_id is None) != (ordinal is None):
        raise UsageError(
            "It takes one trial to explain.",
            remedy="Give its id, or --run RUN and --trial N; `tuneassist history trials RUN` lists trials.",
        )
    path = checkpoint_path(name)
    with open_store(database_path(db), readonly=True) as store:
        if trial_id is None:
            assert run_id is not None and ordinal is not None
            trial_id = _trial_id(store, run_id, ordinal)
        program = inspect_trial(store, trial_id, model=str(path))
    if as_json:
        print_json({"model": str(path), **program})
        return
    print_tree(program)
    _print_sum(program)


def _trial_id(store: Any, run_id: int, ordinal: int) -> int:
    last = store.last_ordinal(store.run(run_id).id)
    found = store.trials(run_id, after_ordinal=ordinal - 1)[:1]
    if not found or found[0].ordinal != ordinal or found[0].id is None:
        raise UsageError(
            f"Run {run_id} has no trial {ordinal}.",
            remedy=f"Its trials go up to {last}." if last else "It has none at all.",
        )
    return int(found[0].id)


def _print_sum(program: dict[str, Any]) -> None:
    total = sum(node["contribution"] for node in program["nodes"])
    predicted, measured = program["predicted_secs"], program["measured_secs"]
    say()
    say(
        f"{safe(program['workload'])}: constant {program['constant']:+.3g}, nodes {total:+.3g}, "
        f"together {math.log(predicted):+.3g}: predicted {fmt.latency(predicted)}, "
        f"measured {fmt.latency(measured)}."
    )
