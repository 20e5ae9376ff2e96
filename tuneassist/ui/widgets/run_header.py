"""The live screen's header: what runs, how far it is, what it reached."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from tuneassist.ui import format as fmt
from tuneassist.ui.follow import EngineState, Snapshot
from tuneassist.ui.run_state import RunState
from tuneassist.ui.task_state import TaskState


class RunHeader(Static):
    """Three lines that fit 80 columns and grow with the terminal."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)

    def show(self, snapshot: Snapshot, task: TaskState | None, idle_secs: float, label: str = "") -> None:
        """Draw it.

        Args:
            task: The task whose latencies are shown.
            idle_secs: Time since the last event, counted as elapsed while the engine works.
            label: What takes the place of the engine's state (a replay's speed).
        """
        state = snapshot.state
        colours = {
            role: self.app.theme_variables.get(role, "") for role in ("success", "warning", "error", "accent")
        }
        lines = (
            _what(snapshot, task, label, colours),
            _progress(state, idle_secs, self.content_size.width or 80, colours),
            _reached(state, task, colours),
        )
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append_text(Text("\n").join(lines))
        self.update(text, layout=False)  # its size is fixed; a layout would redraw the whole screen


def _what(snapshot: Snapshot, task: TaskState | None, label: str, colours: dict[str, str]) -> Text:
    state = snapshot.state
    word, colour = _engine_words(snapshot)
    line = Text()
    line.append(label or word, style=colours["accent"] if label else colours[colour])
    line.append("  ")
    line.append(fmt.plain(task.name) if task else "starting", style="bold")
    if len(state.tasks) > 1:
        line.append(f" (1 of {len(state.tasks)} tasks)")
    target = dict(state.target)
    cores = target.get("num-cores")
    name = " ".join(str(target[key]) for key in ("kind", "mcpu", "arch") if target.get(key)) or str(
        target.get("spec", "")
    )
    parts = [
        fmt.plain(name),
        f"{cores} cores" if cores else "",
        fmt.plain(state.cost_model),
        f"seed {state.seed}",
    ]
    if state.tasks:
        line.append("  " + " · ".join(part for part in parts if part))
    return line


def _engine_words(snapshot: Snapshot) -> tuple[str, str]:
    """The engine's state in words, and the role of its colour."""
    state = snapshot.state
    match snapshot.engine:
        case EngineState.DIED:
            return "✗ engine died", "error"
        case EngineState.GONE:
            return "? no engine", "error"
        case EngineState.RESTARTING:
            return f"↻ restarting ({snapshot.restarts} of 3)", "warning"
    if state.ended:
        return {"done": ("✓ done", "success")}.get(state.status, (f"◐ {state.status}", "warning"))
    if snapshot.behind:
        return "… catching up", "warning"
    if state.paused:
        return "‖ paused", "warning"
    progress = f" {state.phase_done}/{state.phase_total}" if state.phase_total else ""
    return f"● {state.phase or 'starting'}{progress}", "success"


def _progress(state: RunState, idle_secs: float, width: int, colours: dict[str, str]) -> Text:
    line = Text()
    line.append(f"{state.trials}/{state.trials_requested or '?'} trials ")
    room = max(6, min(40, width - 70))
    share = min(1.0, state.trials / state.trials_requested) if state.trials_requested else 0.0
    line.append("━" * round(room * share), style=colours["success"])
    line.append("─" * (room - round(room * share)), style="dim")
    elapsed = state.elapsed_secs + (0.0 if state.ended or state.paused else idle_secs)
    line.append(f" {fmt.duration(elapsed)}")
    eta = state.eta_after(idle_secs)
    if eta is not None:
        line.append(f"  ETA {fmt.duration(eta)}")
    if state.trials_per_minute is not None:
        line.append(f"  {state.trials_per_minute:.0f}/min")
    counts = state.counts
    if counts.failed:
        kinds = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in counts.by_failure())
        line.append(f"  ✗ {kinds}", style=colours["warning"])
    else:
        line.append("  no failures", style="dim")
    return line


def _reached(state: RunState, task: TaskState | None, colours: dict[str, str]) -> Text:
    line = Text()
    if task is None or task.best_secs is None:
        line.append("no valid trial yet", style="dim")
        return line
    line.append(f"best {fmt.latency(task.best_secs)}", style=f"bold {colours['success']}")
    if task.gflops is not None:
        line.append(f"  {fmt.number(task.gflops, 1)} GFLOPS")
        if state.peak_gflops:
            line.append(f" ({task.gflops / state.peak_gflops:.0%} of peak)")
    for name, secs in (("untuned", task.untuned_secs), ("PyTorch", task.pytorch_secs)):
        factor = task.speedup(secs)
        if factor is not None:
            line.append(f"  {fmt.ratio(factor)} {name}", style="" if factor >= 1 else colours["warning"])
    total = _weighted(state)
    if total is not None:
        line.append(f"  all tasks {fmt.latency(total)}")
    return line


def _weighted(state: RunState) -> float | None:
    """Sum of weight times best latency, where there are several tasks and each has one."""
    if len(state.tasks) < 2:
        return None
    each = [task.weight * task.best_secs for task in state.tasks if task.best_secs is not None]
    return sum(each) if len(each) == len(state.tasks) else None
