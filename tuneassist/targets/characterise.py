"""What is found out about this machine once: a target that runs, the best CPU model, the peak.

Runs in a probe process, in one go: loading TVM takes longer than any of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tuneassist.targets import experiments
from tuneassist.targets.experiments import MARGIN
from tuneassist.targets.native import label

_NOISES = 3.0
"""A win must also be this many times the difference between two runs of the same target."""


def characterise(
    fallbacks: Sequence[dict[str, Any]], rivals: Sequence[dict[str, Any]], cores: Sequence[int],
    budget_secs: float,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Verify, compare, measure the peak.

    Args:
        fallbacks: Targets to try until one runs.
        rivals: Targets to compare it with; no comparison where there is none, nor where the first
            fallback fails (what LLVM detects does not run: its relatives are no better founded).
        cores: Ids of the cores whose peak is wanted; none: no peak.
        budget_secs: Time for the comparison.

    Yields:
        One object: `tried` (see `experiments.verify`) and, where one runs, `config` and `note` (the
        target to use, and why), what `experiments.compare` found, and `gflops`.
    """
    tried = list(experiments.verify(fallbacks))
    usable = tried[-1]["config"]
    found: dict[str, Any] = {
        "tried": tried,
        "results": [],
        "finals": [],
        "noise": None,
        "secs": 0.0,
        "gflops": None,
    }
    if tried[-1]["error"]:
        yield found
        return
    others = [rival for rival in rivals if rival != usable]
    if len(tried) > 1:
        found |= {"config": usable, "note": _fallback_note(tried[0], usable)}
    elif not others:
        found |= {
            "config": usable,
            "note": f"LLVM detects {label(usable)}. Other CPU models were not compared.",
        }
    else:
        (compared,) = experiments.compare([usable, *others], budget_secs)
        config, note = choose(compared)
        found |= {**compared, "config": config, "note": note}
    if cores:
        (peak,) = experiments.peak(found["config"], cores)
        found["gflops"] = peak["gflops"]
    yield found


def choose(compared: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Pick a target from a comparison: the first (the detected one) unless another clearly wins.

    Args:
        compared: From `experiments.compare`.

    Returns:
        The target, and why.
    """
    results: Sequence[Mapping[str, Any]] = compared["results"]
    first: dict[str, Any] = results[0]["config"]
    name = label(first)
    margin = max(MARGIN, _NOISES * (compared["noise"] or 0.0))
    winners = [r for r in compared["finals"] if r["ratio"] is not None and r["ratio"] < 1.0 - margin]
    if winners:
        best = min(winners, key=lambda result: result["ratio"])
        return best["config"], (
            f"LLVM detects {name}, but kernels compiled for {label(best['config'])} run "
            f"{1.0 / best['ratio']:.2f}x as fast here, so that is used."
        )
    others = [result for result in results[1:] if result["ratio"] is not None]
    if results[0]["ratio"] is None or not others:
        return first, f"LLVM detects {name}; no other CPU model could be compared with it."
    runner_up = min(others, key=lambda result: result["ratio"])
    return first, (
        f"LLVM detects {name}; of {len(others)} other CPU models and vector widths measured here none is "
        f"clearly faster (best: {label(runner_up['config'])}, {runner_up['ratio']:.2f}x the time)."
    )


def _fallback_note(failed: Mapping[str, Any], usable: dict[str, Any]) -> str:
    return (
        f"LLVM detects {label(failed['config'])}, but a kernel compiled for it fails here "
        f"({failed['error']}), so {label(usable)} is used."
    )
