"""`tuneassist history note`, `prune` and `delete`: what changes history."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from tuneassist.commands._history_list import print_runs
from tuneassist.commands._history_options import RUN, filter_options, moment, run_filter, store_path
from tuneassist.commands._history_print import hint, reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import StoreError, UsageError
from tuneassist.storage.filters import RunFilter
from tuneassist.storage.maintenance import delete_runs, prunable, set_note
from tuneassist.storage.queries import run_row
from tuneassist.storage.reading import reading

_LONGEST_NOTE = 10_000


def yes_option(function: Any) -> Any:
    """Add `--yes`."""
    return click.option("--yes", is_flag=True, help="Don't ask.")(function)


@click.command("note")
@click.argument("run", type=RUN)
@click.argument("text", required=False)
@db_option
@json_option
@reports_errors
def note_command(run: int, text: str | None, db: str | None, as_json: bool) -> None:
    """Set the note of run RUN to TEXT (an empty TEXT clears it), or show the note."""
    path = store_path(db)
    if text is not None:
        if len(text) > _LONGEST_NOTE:
            raise UsageError(
                f"A note of {len(text)} characters is too long.", remedy=f"Use at most {_LONGEST_NOTE}."
            )
        with reading(path) as conn:
            run_row(conn, run, path)
        set_note(path, run, text.encode(errors="replace").decode())
    with reading(path) as conn:
        note = run_row(conn, run, path).note
    if as_json:
        print_json({"db": path, "run_id": run, "note": note})
    else:
        say(safe(note))


@click.command("prune")
@filter_options
@click.option("--older-than", metavar="SPAN", help="Started longer ago than this, such as 90d.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and stop.")
@yes_option
@db_option
@json_option
@reports_errors
def prune_command(
    older_than: str | None, dry_run: bool, yes: bool, db: str | None, as_json: bool, **filters: Any
) -> None:
    """Remove the runs that match, but none that holds the best of a workload on its machine and target.

    At least one filter is needed. What would go is shown, and you are asked.
    """
    path, wanted = store_path(db), run_filter(filters)
    if older_than is not None:
        oldest = moment("--older-than", older_than)
        assert oldest is not None
        until = oldest if wanted.until is None else min(oldest, wanted.until)
        wanted = RunFilter(**{**{f: getattr(wanted, f) for f in wanted.__slots__}, "until": until})
    if wanted == RunFilter():
        raise UsageError(
            "Without a filter every run would match.", remedy="Say which, such as --older-than 90d."
        )
    with reading(path) as conn:
        plan = prunable(conn, wanted)
    if not as_json and plan.gone:
        print_runs(list(plan.gone))
    for kept, why in ((plan.kept_best, "hold the best of a workload"), (plan.kept_alive, "are under way")):
        if kept:
            hint(f"{len(kept)} more match and stay: they {why}.")
    gone: list[int] = []
    if plan.gone and not dry_run:
        trials = sum(run.trials for run in plan.gone)
        _confirm(f"Remove {len(plan.gone)} runs with {trials} trials?", yes=yes)
        gone = delete_runs(path, [run.id for run in plan.gone], keep_best=True)
    if as_json:
        print_json(
            {
                "db": path,
                "matching": [run.id for run in plan.gone],
                "kept_best": [run.id for run in plan.kept_best],
                "kept_alive": [run.id for run in plan.kept_alive],
                "removed": gone,
            }
        )
    elif not plan.gone:
        hint("Nothing to remove.")
    elif not dry_run:
        hint(f"Removed {len(gone)} runs. `tuneassist history vacuum` gives the space back.")


@click.command("delete")
@click.argument("runs", type=RUN, nargs=-1, required=True)
@yes_option
@db_option
@json_option
@reports_errors
def delete_command(runs: Sequence[int], yes: bool, db: str | None, as_json: bool) -> None:
    """Remove RUNS with all their trials, even where they hold the best of a workload; asks first."""
    path = store_path(db)
    with reading(path) as conn:
        found = [run_row(conn, run, path) for run in dict.fromkeys(runs)]
        holders = {run_id for (run_id,) in conn.execute("SELECT run_id FROM best_trials")}
    alive = [run.id for run in found if run.alive]
    if alive:
        raise StoreError(
            f"Run {alive[0]} is being worked on.",
            remedy="Stop it first; what it measured is kept until then.",
        )
    if not as_json:
        print_runs(found)
    best = [str(run.id) for run in found if run.id in holders]
    if best:
        hint(f"Holds the best of a workload: run {', '.join(best)}.")
    _confirm(f"Remove {len(found)} runs with {sum(run.trials for run in found)} trials?", yes=yes)
    gone = delete_runs(path, [run.id for run in found], keep_best=False)
    if as_json:
        print_json({"db": path, "removed": gone})
    else:
        hint(f"Removed {len(gone)} runs. `tuneassist history vacuum` gives the space back.")


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("There is nobody to ask: stdin is no terminal.", remedy="Add --yes to go ahead.")
    click.confirm(question, abort=True, err=True)
