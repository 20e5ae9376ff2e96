"""A model for people: how fast it is end to end, and where its time goes before and after tuning."""

from __future__ import annotations

from typing import Any

from tuneassist.commands._history_print import print_table, safe, say
from tuneassist.ui import format as fmt

_NAMES = {
    "tuned": "tuned",
    "untuned": "TVM untuned",
    "pytorch": "PyTorch eager",
    "torch_compile": "torch.compile",
    "onnxruntime": "ONNX Runtime",
}


def print_model(model: dict[str, Any]) -> None:
    """Print a model's result (`known_kernels.model_result`)."""
    say(f"{safe(model['name'])} end to end")
    tuned = model["tuned_secs"]
    rows = []
    for kind, name in _NAMES.items():
        secs = model[f"{kind}_secs"]
        against = fmt.ratio(secs / tuned) if secs and tuned and kind != "tuned" else ""
        remark = f"tuned is {against} as fast" if against else model["errors"].get(kind, "")
        rows.append((name, fmt.latency(secs), remark))
    print_table(("", "latency", ""), rows, numeric=("latency",))
    if model["correct"] is not None:
        off = model["max_relative_error"]
        found = "verified" if model["correct"] else "WRONG"
        size = f"off by {off:.1e} of the largest value" if off is not None else "it is not finite"
        reference = _NAMES[model["reference"]]
        say(f"Output {found} against {reference}: {size}, allowed {model['tolerance']:.0e}.")
    print_tasks(model["tasks"])


def print_tasks(tasks: list[dict[str, Any]]) -> None:
    """Print a model's kernels with the time of all their calls, and the share of the sum."""
    before = [_all_calls(task, "untuned_secs") for task in tasks]
    after = [_all_calls(task, "best_secs") for task in tasks]
    flops = sum(task["weight"] * task["flops"] for task in tasks)
    rows = []
    for task, untuned, tuned in zip(tasks, before, after, strict=True):
        if task.get("kept_untuned") and untuned is not None:
            tuned = untuned if tuned is not None else None
        rows.append(
            (
                task["name"].rpartition("/")[2],
                str(task["weight"]),
                _share(task["weight"] * task["flops"], flops),
                fmt.latency(untuned),
                _share(untuned, sum(filter(None, before))),
                fmt.latency(tuned),
                _share(tuned, sum(filter(None, after))),
                fmt.ratio(untuned / tuned) if untuned and tuned else "",
                _remark(task),
            )
        )
    columns = ("kernel", "calls", "FLOPs", "untuned", "share", "tuned", "of all", "gain", "")
    print_table(columns, rows, numeric=columns[1:-1])


def _remark(task: dict[str, Any]) -> str:
    if not task["tunable"]:
        return "not tunable"
    if task["best_secs"] is None:
        return "not tuned"
    return "kept untuned, which is faster" if task.get("kept_untuned") else ""


def _all_calls(task: dict[str, Any], key: str) -> float | None:
    secs: float | None = task[key]
    return None if secs is None else secs * int(task["weight"])


def _share(part: float | None, whole: float) -> str:
    return f"{part / whole:.1%}" if part is not None and whole else ""
