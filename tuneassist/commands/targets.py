"""`tuneassist targets`: what can be tuned for, and what a target spec becomes."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path
from tuneassist.errors import TuneAssistError, UsageError

if TYPE_CHECKING:
    from tuneassist.storage.base import Store


@click.command("targets")
@click.argument("filter_or_spec", required=False, metavar="[FILTER|SPEC]")
@click.option(
    "--measure", is_flag=True, help="Compare CPU models on this machine now, keep the result, and show it."
)
@db_option
@json_option
def command(filter_or_spec: str | None, measure: bool, db: str | None, as_json: bool) -> None:
    """List hardware targets, or explain one.

    Without an argument: this machine as LLVM detects it, the kinds that this TVM compiles for, and TVM's
    tags. FILTER is part of a tag. A SPEC (native, a tag, a JSON object, cuda, an old-style string such as
    'llvm -mcpu=znver4 -num-cores 4', or rpc:KEY@HOST:PORT/TARGET) is shown in its new form with what was
    filled in; exit code 3 says that it can't be measured here, and why.

    --measure times kernels compiled for each CPU model and vector width that this CPU can run.
    """
    problem = None
    try:
        if measure:
            if filter_or_spec not in (None, "native"):
                raise UsageError(
                    f"--measure compares CPU models of this machine; it can't measure {filter_or_spec!r}.",
                    remedy="Leave the argument out.",
                )
            _measure(db, as_json)
        else:
            problem = _list_or_explain((filter_or_spec or "").strip(), db, as_json)
    except TuneAssistError as error:
        if as_json:
            print_json({"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code})
        raise
    if problem is not None:
        raise problem


def _list_or_explain(text: str, db: str | None, as_json: bool) -> TuneAssistError | None:
    from tuneassist.targets import catalogue

    found = {name: config for name, config in catalogue.tags().items() if text.lower() in name.lower()}
    if not found or text in found or text in catalogue.known_kinds():
        return _explain(text, db, as_json)
    _list(found, as_json, whole=not text)
    return None


def _list(found: dict[str, dict[str, Any]], as_json: bool, *, whole: bool) -> None:
    from tuneassist.targets import catalogue, native
    from tuneassist.targets.cores import usable_cores

    kinds = catalogue.kinds_available()
    tags = [
        {
            "name": name, "kind": config["kind"], "model": config.get("mcpu") or config.get("arch"),
            "cores": config.get("num-cores"), "available": config["kind"] in kinds,
        }
        for name, config in found.items()
    ]  # fmt: skip
    own = {**native.detected(), "num-cores": len(usable_cores())} if "llvm" in kinds else None
    if as_json:
        print_json({"native": own, "kinds": list(kinds), "tags": tags})
        return
    if whole:
        described = json.dumps(own, sort_keys=True) if own else "no CPU target: this TVM has no LLVM"
        click.echo(f"native\t{described}" if not sys.stdout.isatty() else f"native  {described}")
        click.echo(f"kinds{_gap()}{', '.join(kinds)}")
        click.echo()
    print_rows(
        ("tag", "kind", "model", "cores", "this TVM"),
        [
            (tag["name"], tag["kind"], tag["model"] or "", str(tag["cores"] or ""), _yes(tag["available"]))
            for tag in tags
        ],
    )


def _explain(spec: str, db: str | None, as_json: bool) -> TuneAssistError | None:
    """Show a target; return why it can't be measured here, if it can't."""
    from tuneassist.targets.resolve import examine_target

    with _store_if_there(db) as store:
        examined = examine_target(spec, store=store)
    target, problem = examined.target, examined.problem
    if as_json:
        print_json(
            {
                "spec": target.spec, "target": json.loads(target.json), "kind": target.kind,
                "cores": target.cores, "note": target.note, "usable": problem is None,
                "error": problem and problem.message, "remedy": problem and problem.remedy,
                "exit_code": problem.exit_code if problem else 0,
            }
        )  # fmt: skip
    else:
        for name, value in (("spec", target.spec), ("target", target.json), ("note", target.note)):
            if value:
                click.echo(f"{name}{_gap(name)}{value}")
        click.echo(f"usable{_gap('usable')}{'yes' if problem is None else 'no'}")
    return problem


def _measure(db: str | None, as_json: bool) -> None:
    from tuneassist.storage.sqlite import open_store
    from tuneassist.targets import native
    from tuneassist.targets.catalogue import check_available
    from tuneassist.targets.cores import usable_cores
    from tuneassist.targets.resolve import cpu_model_fact, measuring_machine

    check_available("llvm")
    with open_store(database_path(db)) as store:
        machine_id = store.machine_id(measuring_machine())
        fact = cpu_model_fact(store, machine_id, usable_cores(), renew=True)
    if as_json:
        print_json({"cpu_model": fact})
        return
    kernels = next((list(result["ratios"]) for result in fact["results"] if result["ratios"]), [])
    finals = {native.label(result["config"]): result["ratio"] for result in fact["finals"]}
    rows = []
    for result in fact["results"]:
        name = native.label(result["config"])
        chosen = "chosen" if result["config"] == fact["config"] else ""
        times = [_ratio(result["ratio"]), *(_ratio(result["ratios"].get(kernel)) for kernel in kernels)]
        rows.append((name, *times, _ratio(finals.get(name)), result["error"] or chosen))
    rows.sort(key=lambda row: row[1] or "~")
    if rows:
        print_rows(("CPU model", "time", *kernels, "again", ""), rows)
        click.echo("\nTimes are relative to the detected model: below 1 is faster.", err=True)
    click.echo(fact["note"], err=bool(rows))


@contextlib.contextmanager
def _store_if_there(db: str | None) -> Iterator[Store | None]:
    """The store, where there is one already: looking at targets makes no database."""
    path = database_path(db)
    if not path.exists():
        yield None
        return
    from tuneassist.storage.sqlite import open_store

    with open_store(path) as store:
        yield store


def print_rows(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table on a terminal, else one row a line with cells separated by tabs."""
    if not sys.stdout.isatty():
        for row in (headings, *rows):
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _gap(name: str = "kinds") -> str:
    return " " * (8 - len(name)) if sys.stdout.isatty() else "\t"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _yes(value: object) -> str:
    return "yes" if value else "no"
