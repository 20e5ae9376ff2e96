"""What a batch run found, for people: a table a task, on stdout."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from tuneassist.commands._model_report import print_model
from tuneassist.ui import format as fmt

_SHORTEST_TABLE = 100


def print_report(result: dict[str, Any]) -> None:
    """Print a run's result."""
    console = Console(highlight=False)
    if (console.is_terminal and console.width < _SHORTEST_TABLE) or len(result["tasks"]) == 1:
        for task in result["tasks"]:
            _print_lines(console, task)
    else:
        if not console.is_terminal:
            console.width = max(console.width, _SHORTEST_TABLE)
        console.print(_table(result))
    for model in result.get("models", ()):
        print_model(model)
    console.print(
        f"Run {result['run_id']} {result['status']} after {fmt.duration(result['wall_secs'])}; "
        f"first measurement after {_secs(result['first_measurement_secs'])}.",
        markup=False,
    )
    console.print(f"Stored in {result['db']}", markup=False, soft_wrap=True)
    console.print(
        f"See more: tuneassist history show {result['run_id']} --db {result['db']}",
        markup=False,
        soft_wrap=True,
    )


def _print_lines(console: Console, task: dict[str, Any]) -> None:
    best, untuned, pytorch = task["best_secs"], task["baseline_secs"], task["pytorch_secs"]
    rate = f"  ({task['gflops']:.1f} GFLOPS)" if task["gflops"] else ""
    lines = [
        (f"{task['name']}", ""),
        ("  best", f"{fmt.latency(best)}{rate}  {_verdict(task)}"),
        ("  untuned", f"{fmt.latency(untuned)}  {_against(best, untuned)}"),
        ("  PyTorch", f"{fmt.latency(pytorch)}  {_against(best, pytorch)}"),
        ("  trials", f"{task['trials']}, {task['valid']} valid{_failed(task)}"),
    ]
    if task["error"]:
        lines.append(("  error", task["error"]))
    for name, text in lines:
        console.print(f"{name:<11}{text}".rstrip(), markup=False, soft_wrap=True)


def _table(result: dict[str, Any]) -> Table:
    table = Table()
    for name in ("task", "weight", "best", "GFLOPS", "untuned", "", "PyTorch", "", "output", "valid/trials"):
        table.add_column(
            name, justify="left" if name in ("task", "output") else "right", no_wrap=name != "task"
        )
    for task in result["tasks"]:
        best = task["best_secs"]
        table.add_row(
            task["name"],
            str(task["weight"]),
            fmt.latency(best),
            f"{task['gflops']:.1f}" if task["gflops"] else fmt.NONE,
            fmt.latency(task["baseline_secs"]),
            _ratio(best, task["baseline_secs"]),
            fmt.latency(task["pytorch_secs"]),
            _ratio(best, task["pytorch_secs"]),
            task["error"] or _verdict(task),
            f"{task['valid']}/{task['trials']}",
        )
    return table


def _verdict(task: dict[str, Any]) -> str:
    if task["best_secs"] is None:
        return "nothing valid"
    wrong = f"; {task['wrong']} wrong left out" if task["wrong"] else ""
    return {True: "output correct", False: "output wrong", None: "output not checked"}[
        task["correct"]
    ] + wrong


def _against(best: float | None, other: float | None) -> str:
    if best is None or other is None:
        return ""
    return (
        f"best is {fmt.ratio(other / best)} as fast"
        if other >= best
        else f"best is {fmt.ratio(best / other)} slower"
    )


def _ratio(best: float | None, other: float | None) -> str:
    return fmt.ratio(other / best) if best and other else fmt.NONE


def _failed(task: dict[str, Any]) -> str:
    kinds = [f"{count} {kind.replace('_', ' ')}" for kind, count in task["failed"].items() if count]
    return f" ({', '.join(kinds)})" if kinds else ""


def _secs(secs: float | None) -> str:
    return fmt.NONE if secs is None else f"{secs:.1f} s"
