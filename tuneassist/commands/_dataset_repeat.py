"""`tuneassist dataset repeat`: measures disturbed trials again."""

from __future__ import annotations

from typing import Any

import click

from tuneassist.commands._data_set import progress_bar
from tuneassist.commands._history_options import store_path
from tuneassist.commands._history_print import reports_errors, say
from tuneassist.commands._options import db_option, json_option, print_json
from tuneassist.errors import RunInterruptedError


@click.command("repeat")
@click.option(
    "--spread", type=click.FloatRange(min=1.0), default=1.1, show_default=True, metavar="RATIO",
    help="Median over fastest repeat from which on a trial counts as disturbed.",
)  # fmt: skip
@click.option(
    "--doubtful", type=click.FloatRange(min=1.0), metavar="RATIO",
    help="Also those slower by RATIO than a model of all others expects.",
)  # fmt: skip
@click.option(
    "--sample", type=click.FloatRange(0.0, 1.0), default=0.05, show_default=True, metavar="SHARE",
    help="Of the other trials: how well they are reproduced is told.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@db_option
@json_option
@reports_errors
def repeat_command(
    spread: float, doubtful: float | None, sample: float, seed: int, db: str | None, as_json: bool
) -> None:
    """Measure again the trials whose repeats disagree, and tell the noise of the others.

    Do this on the machine that measured them, with nothing else running. A disturbed trial takes over the
    new repeats if they are faster, since a disturbance makes a kernel look slow, never fast; others stay as
    they are.
    """
    from tuneassist.storage.sqlite import open_store
    from tuneassist.tuning.repeat import repeat_trials

    path = store_path(db)
    found = []
    try:
        ids = _doubtful(path, doubtful) if doubtful is not None else frozenset()
        with open_store(path) as store, progress_bar("measuring again") as bar:
            found = list(
                repeat_trials(
                    store,
                    spread=spread,
                    sample=sample,
                    seed=seed,
                    doubtful=ids,
                    told=lambda _, done, of: bar(done, of),
                )
            )
    except KeyboardInterrupt as error:
        raise RunInterruptedError(
            "Interrupted; what was measured again is kept.", remedy="Give the same command again to go on."
        ) from error
    disturbed = _figures([r.after_secs / r.before_secs for r in found if r.disturbed])
    others = _figures([r.after_secs / r.before_secs for r in found if not r.disturbed])
    if as_json:
        print_json({"disturbed": disturbed, "sample": others})
        return
    for name, figures in (("disturbed", disturbed), ("sample of the others", others)):
        if figures["count"]:
            say(
                f"{name}: {figures['count']} measured again; off by {figures['median']:.1%} (median), "
                f"{figures['p90']:.1%} (90th percentile)"
            )


def _doubtful(path: str, ratio: float) -> frozenset[int]:
    from tuneassist.research.doubt import doubtful_trials
    from tuneassist.research.samples import load_dataset

    with progress_bar("rebuilding programs") as bar:
        return doubtful_trials(load_dataset(path, progress=bar), ratio)


def _figures(ratios: list[float]) -> dict[str, Any]:
    import numpy as np

    if not ratios:
        return {"count": 0, "median": None, "p90": None}
    off = np.exp(np.abs(np.log(ratios))) - 1
    return {
        "count": len(ratios),
        "median": float(np.median(off)),
        "p90": float(np.quantile(off, 0.9)),
    }  # fmt: skip
