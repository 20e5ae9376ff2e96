"""`tuneassist dataset stats`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuneassist.commands._dataset_histogram import print_histogram
from tuneassist.commands._history_options import store_path
from tuneassist.commands._history_print import hint, print_table, reports_errors, safe, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import UsageError
from tuneassist.storage.measurements import Measurements, measurements
from tuneassist.storage.reading import reading
from tuneassist.ui import format as fmt

if TYPE_CHECKING:
    from tuneassist.cost_model.mixture import Mixture

_COLUMNS = (
    "workload", "valid", "failed", "fastest", "median", "slowest", "span", "components", "BIC", "normal",
    "normality p",
)  # fmt: skip


@click.command("stats")
@click.argument("data", metavar="[STORE|FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--workload", default="", metavar="PATTERN", help="Only workloads of this name or spec.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="PATH",
    help="Draw the distributions into this file (.png, .svg or .pdf).",
)  # fmt: skip
@db_option
@json_option
@reports_errors
def stats_command(
    data: Path | None, workload: str, output: Path | None, db: str | None, as_json: bool
) -> None:
    """Show counts, failures, span and the distribution of log time, workload by workload.

    STORE is a tuneassist database, or one compressed with xz. [default: that of --db] To the log times of
    each workload one normal distribution and mixtures of up to six are fitted; the one of the lowest BIC is
    shown (BIC: lower is better; normality p: that log times are normal, by D'Agostino and Pearson's test).
    Workloads are kept apart by machine and target.
    """
    path = str(data) if data is not None else store_path(db)
    found = _found(path, data, workload)
    fits = [_fit(each) for each in found]
    if output is not None:
        _draw(found, fits, output)
    if as_json:
        rows = [_data(each, fit, why) for each, (fit, why) in zip(found, fits, strict=True)]
        print_json({"data": path, "picture": str(output) if output else None, "workloads": rows})
        return
    _print(found, fits)
    if output is not None:
        hint(f"Drawn into {output}.")


def _found(path: str, named: Path | None, workload: str) -> list[Measurements]:
    if named is not None and not named.is_file():
        raise UsageError(f"There is no file {named}.", remedy="Name a tuneassist database.")
    if named is not None and named.suffix == ".xz":
        from tuneassist.research.samples import unpacked

        path = str(unpacked(named)[0])
    with reading(path) as conn:
        found = list(measurements(conn, workload=workload))
    if not found:
        what = f"no trial of a workload like {workload!r}" if workload else "no trial"
        raise UsageError(
            f"{path} holds {what}.",
            remedy="Measure first: tuneassist --batch --workload resnet18.c2; or name another database.",
        )
    return found


def _fit(each: Measurements) -> tuple[Mixture | None, str]:
    """The mixture of a workload's log times, or why there is none."""
    import numpy as np

    from tuneassist.cost_model.mixture import fit_mixture

    try:
        return fit_mixture(np.log(each.secs)), ""
    except UsageError as error:
        return None, error.message


def _draw(found: Sequence[Measurements], fits: Sequence[tuple[Mixture | None, str]], output: Path) -> None:
    import numpy as np

    from tuneassist.cost_model.plots import Distribution, plot_distributions

    panels = [
        Distribution(each.workload, np.array(each.secs), fit)
        for each, (fit, _) in zip(found, fits, strict=True)
        if each.secs
    ]
    plot_distributions(panels, output, title="Latency of measured schedules")


def _data(each: Measurements, fit: Mixture | None, why: str) -> dict[str, Any]:
    values = asdict(each)
    secs = sorted(values.pop("secs"))
    return {
        **values,
        "trials": each.trials,
        "valid": len(secs),
        "failed": each.trials - len(secs),
        "fastest_secs": secs[0] if secs else None,
        "median_secs": secs[len(secs) // 2] if secs else None,
        "slowest_secs": secs[-1] if secs else None,
        "mixture": None if fit is None else {
            "weights": fit.weights.tolist(), "means": fit.means.tolist(), "stds": fit.stds.tolist(),
            "bic": fit.bic, "normal_bic": fit.normal_bic, "normality_p": fit.normality_p,
        },
        "problem": why or None,
    }  # fmt: skip


def _print(found: Sequence[Measurements], fits: Sequence[tuple[Mixture | None, str]]) -> None:
    places = {(each.machine, each.target) for each in found}
    for each, (fit, why) in zip(found, fits, strict=True):
        say(
            f"{safe(each.workload)}"
            + (f"  ({safe(each.machine)}, {safe(each.target)})" if len(places) > 1 else "")
        )
        if each.secs:
            print_histogram(each.secs, fit)
        if why:
            say(f"  {why}")
        say()
    print_table(
        _COLUMNS,
        [_cells(each, fit) for each, (fit, _) in zip(found, fits, strict=True)],
        numeric=_COLUMNS[1:],
    )
    normal = sum(fit is not None and fit.components == 1 for fit, _ in fits)
    fitted = sum(fit is not None for fit, _ in fits)
    sources: dict[str, int] = {}
    for each in found:
        for name, count in each.sources.items():
            sources[name] = sources.get(name, 0) + count
    by_source = ", ".join(f"{count} {safe(name)}" for name, count in sorted(sources.items()))
    hint(f"Of {fitted} distributions fitted, {normal} are one normal distribution.")
    hint(f"Valid trials by source: {by_source or 'none'}.")


def _cells(each: Measurements, fit: Mixture | None) -> tuple[str, ...]:
    secs = sorted(each.secs)
    times = (
        (
            fmt.latency(secs[0]),
            fmt.latency(secs[len(secs) // 2]),
            fmt.latency(secs[-1]),
            fmt.ratio(secs[-1] / secs[0]),
        )
        if secs
        else (fmt.NONE,) * 4
    )
    fitted = (
        (fmt.NONE,) * 4
        if fit is None
        else (str(fit.components), f"{fit.bic:.0f}", f"{fit.normal_bic:.0f}", f"{fit.normality_p:.2g}")
    )
    return (each.workload, str(len(secs)), str(each.trials - len(secs)), *times, *fitted)
