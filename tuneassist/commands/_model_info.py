"""`tuneassist model info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tuneassist.commands._history_options import store_path
from tuneassist.commands._history_print import reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import UsageError
from tuneassist.storage.models import checkpoint_path, described, stored_models
from tuneassist.storage.reading import reading


@click.command("info")
@click.argument("checkpoint", metavar="CHECKPOINT|pretrained")
@db_option
@json_option
@click.pass_context
@reports_errors
def info_command(ctx: click.Context, checkpoint: str, db: str | None, as_json: bool) -> None:
    """Show what CHECKPOINT is and how good it was found to be, and whether this version can use it.

    Its figures are those that the database, or a JSON file of the same name beside it, keeps of it. Exit
    code 2 where this version can't use it: another architecture, other features, or a wrong hash.
    """
    path = checkpoint_path(checkpoint)
    about = _about(path)
    about |= _figures(path, about["sha256"], store_path(db))
    if as_json:
        print_json(about)
    else:
        _print(about)
    if not about["usable"]:
        ctx.exit(UsageError.exit_code)


def _about(path: Path) -> dict[str, Any]:
    """The file's header, and whether a model can be made of it."""
    from tuneassist.cost_model import checkpoint
    from tuneassist.cost_model.registry import create_cost_model

    head = checkpoint.header(path)
    problem = None
    try:
        create_cost_model(str(path))
    except UsageError as error:
        problem = error.message
    return {
        "path": str(path),
        "kind": head["architecture"].get("kind"),
        "bytes": path.stat().st_size,
        "sha256": str(head.get("sha256")),
        "feature_version": head.get("feature_version"),
        "architecture": head["architecture"],
        "usable": problem is None,
        "problem": problem,
    }


def _figures(path: Path, sha256: str, db: str) -> dict[str, Any]:
    """What it was trained on and its metrics: from the store, else from beside the file."""
    with reading(db) as conn:
        rows = [row for row in stored_models(conn) if row.sha256 == sha256]
    row = rows[0] if rows else described(path)
    return {"trained_on": row.trained_on or None, "metrics": dict(row.metrics)}


def _print(about: dict[str, Any]) -> None:
    shown = {**about, "usable": "yes" if about["usable"] else f"no: {about['problem']}"}
    del shown["problem"]
    for name, value in _flat(shown):
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        say(f"{safe(name):<28} {safe(text)}")


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Values by dotted name; what is absent is left out."""
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{key}.")
        elif value is not None:
            found.append((f"{prefix}{key}", value))
    return found
