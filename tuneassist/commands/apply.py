"""`tuneassist apply`: the best known schedule, put to work."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from tuneassist.commands._history_print import hint, print_table, reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.config import database_path, load_config
from tuneassist.ui import format as fmt


@click.command("apply")
@click.argument("spec")
@click.option("--target", metavar="SPEC", help="The target it was tuned for. [default: native]")
@click.option("--cores", metavar="LIST", help="CPU ids to use, such as 0-3,6. [default: all allowed]")
@click.option(
    "--verify/--no-verify", default=True, help="Compare its output with a reference. [default: verify]"
)
@db_option
@json_option
@reports_errors
def command(
    spec: str, target: str | None, cores: str | None, verify: bool, db: str | None, as_json: bool
) -> None:  # fmt: skip
    """Compile the best known schedule of workload SPEC, verify it, and print code that uses it.

    What this machine measured for this target counts. The kernel is measured beside TVM's default
    schedule and PyTorch, and its output compared with PyTorch's (or, where PyTorch has no counterpart,
    with that of the default schedule). A schedule whose output is wrong is marked so in the database, and
    the next best is taken.

    A whole model is put together from the best schedules of its kernels, and measured beside TVM untuned,
    PyTorch, torch.compile and ONNX Runtime.
    """
    from tuneassist.storage.sqlite import open_store
    from tuneassist.targets.cores import parse_cores, usable_cores
    from tuneassist.workloads.models import parse_model

    ids = parse_cores(cores) if cores else usable_cores()
    path = database_path(db)
    open_store(path, readonly=True).close()  # An absent database is an error, and is not made.
    wanted = target or load_config().target or "native"
    model = parse_model(spec) if "/" not in spec.partition(":")[2] else None
    with open_store(path) as store:
        if model is not None:
            _apply_model(store, model, wanted, tuple(ids), verify, as_json)
            return
        from tuneassist.exchange.apply import apply_best

        done = apply_best(
            store, spec, wanted, tuple(ids), verify=verify, progress=lambda text: hint(safe(text))
        )
    if as_json:
        ratios = {
            "times_as_fast_as_untuned": done.times_as_fast(done.untuned_secs),
            "times_as_fast_as_pytorch": done.times_as_fast(done.pytorch_secs),
        }
        print_json({**asdict(done), **ratios})
    else:
        _report(done)


def _apply_model(
    store: Any, model: Any, target: str, cores: tuple[int, ...], verify: bool, as_json: bool
) -> None:
    from tuneassist.commands._model_report import print_model
    from tuneassist.exchange.models import apply_model

    done = apply_model(store, model, target, cores, verify=verify, progress=lambda text: hint(safe(text)))
    if as_json:
        print_json(done)
        return
    print_model(done)
    for note in done["notes"]:
        hint(safe(note))
    say()
    say(f"# tuneassist export --workload '{model.spec}' --format so -o model.so")
    say(done["snippet"])


def _report(done: Any) -> None:
    say(f"{safe(done.workload)}: trial {done.ordinal} of run {done.run_id}")
    rows = [("tuned", fmt.latency(done.tuned_secs), f"{done.gflops:.3g} GFLOPS")]
    for name, other in (("untuned", done.untuned_secs), ("PyTorch", done.pytorch_secs)):
        if other is not None:
            rows.append((name, fmt.latency(other), f"tuned is {done.times_as_fast(other):.2f}x as fast"))
    print_table(("", "latency", ""), rows, numeric=("latency",))
    if done.correct:
        off = f"{done.max_relative_error:.1e}"
        say(f"Output verified against {done.reference}: off by {off} of its largest value.")
    else:
        say("Output not verified.")
    for note in done.notes:
        hint(safe(note))
    say()
    say(done.snippet)
