"""What the live screen lets its user do to the engine, and says of it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tuneassist.records import RunSettings
from tuneassist.ui.follow import MAX_RESTARTS, EngineState, Follower, Snapshot
from tuneassist.ui.replay import SPEEDS, ReplaySession
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.screens.dialogs import LongText, Question
from tuneassist.ui.services import Session


class EngineScreen(BaseScreen):
    """A screen that follows a session: pause, stop, detach, and replay speed.

    Args:
        session: The engine, or a replay.
        run_id: The run, where it is known before the first event.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause/resume"),
        Binding("x", "stop", "Stop"),
        Binding("d", "detach", "Detach"),
        Binding("plus,equals_sign", "speed(1)", "Faster", show=False, key_display="+"),
        Binding("minus", "speed(-1)", "Slower", show=False, key_display="-"),
        Binding("e", "detail", "Errors", show=False),
        Binding("r", "continue_run", "Continue run", show=False),
        Binding("c", "copy_command", "Copy command", show=False),
    ]

    def __init__(self, session: Session, *, run_id: int | None = None) -> None:
        super().__init__()
        self._replay = session if isinstance(session, ReplaySession) else None
        self.follower = Follower(session, restart=self._replay is None)
        self._run_id = run_id
        self._told = EngineState.RUNNING
        self._pausing = False

    def on_unmount(self) -> None:
        """Stop following; the engine itself is left as it is."""
        self.follower.close()

    @property
    def snapshot(self) -> Snapshot:
        """The latest state of the run."""
        return self.follower.latest

    @property
    def run_id(self) -> int | None:
        """The run, once it is known."""
        return self.snapshot.state.run_id or self._run_id

    @property
    def engine_running(self) -> bool:
        """Whether leaving would leave an engine at work."""
        return self._replay is None and self.snapshot.engine in (EngineState.RUNNING, EngineState.RESTARTING)

    def tell_engine(self, snapshot: Snapshot) -> None:
        """Say once when the engine's state changes."""
        if snapshot.engine is self._told:
            return
        self._told = snapshot.engine
        if snapshot.engine is EngineState.RESTARTING:
            again = f"starting it again ({snapshot.restarts} of {MAX_RESTARTS})"
            text = f"The engine died; {again}. e: its last words."
            self.notify(text, severity="warning", timeout=8)
        elif snapshot.engine is EngineState.DIED:
            text = "The engine died for good; what was measured is kept. e: why, r: continue the run."
            self.notify(text, severity="error", timeout=15)
        elif snapshot.engine is EngineState.GONE and self._replay is None:
            self.notify("No engine works on this run. r: continue it.", severity="warning", timeout=8)

    def replay_label(self) -> str:
        if self._replay is None:
            return ""
        speed = "max" if self._replay.speed >= SPEEDS[-1] else f"{self._replay.speed:g}×"
        if self.snapshot.engine is not EngineState.RUNNING:
            return "▣ replay over"
        return f"{'‖' if self._replay.paused else '▶'} replay {speed}"

    def action_pause(self) -> None:
        """Pause, or go on."""
        session = self.follower.session
        if self._replay is not None:
            (self._replay.resume if self._replay.paused else self._replay.pause)()
        elif not self.engine_running:
            self.notify("No engine runs.", severity="warning")
        elif self.snapshot.state.paused or self._pausing:
            self._pausing = False
            session.resume()
        else:
            self._pausing = True
            session.pause()
            self.notify("Pausing after what runs now.", timeout=3)

    def action_speed(self, step: int) -> None:
        """Replay faster or slower."""
        if self._replay is not None:
            index = min(range(len(SPEEDS)), key=lambda i: abs(SPEEDS[i] - self._replay.speed))  # type: ignore[union-attr]
            self._replay.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, index + step))]

    async def action_stop(self) -> None:
        """Stop the engine, after a question."""
        if self._replay is not None or not self.engine_running:
            await self.action_back()
            return
        text = "Stop this run? The trial that runs now is finished; the run can be continued later."
        if self.follower.stopping:
            text = "The engine is stopping. Stop it at once, and lose the trial that runs now?"
        self.app.push_screen(Question(text, [("stop", "Stop")]), self._stop)

    def _stop(self, answer: str | None) -> None:
        if answer == "stop":
            self.follower.stop_engine()
            self.notify("Stopping after the running trial. x again: at once.", timeout=4)

    def action_detach(self) -> None:
        """Leave the engine running and close the screen."""
        self.notify(f"Run {self.run_id} goes on by itself. Open it again from the start screen.", timeout=5)
        self.dismiss()

    async def action_back(self) -> None:
        """Close; a running engine is stopped or left running as the user says."""
        if not self.engine_running:
            self.dismiss()
            return
        answers = [("leave", "Leave it running"), ("stop", "Stop it")]
        self.app.push_screen(Question("This run is still going on.", answers), self._leave)

    def _leave(self, answer: str | None) -> None:
        if answer == "stop":
            self.follower.stop_engine()
        if answer in ("stop", "leave"):
            self.dismiss()

    def action_continue_run(self) -> None:
        """Start a new engine on a run that has none and is not done."""
        if self._replay is not None or self.engine_running or self.snapshot.state.status == "done":
            self.notify("There is nothing to continue.", severity="warning")
        elif self.run_id is not None:
            self.dismiss()
            self.tune_app.start_run(RunSettings(), resume_run_id=self.run_id)

    def action_copy_command(self) -> None:
        """Copy the command that continues or follows this run."""
        word = "--attach" if self.engine_running else "--resume"
        self.tune_app.copy(f"tuneassist --batch {word} {self.run_id} --db {self.tune_app.services.db}")

    def action_detail(self) -> None:
        """Show what went wrong, in full."""
        snapshot = self.snapshot
        parts = [snapshot.state.error, snapshot.state.remedy, snapshot.problem]
        parts += [f"{name}: {text}" for task in snapshot.state.tasks for name, text in task.baseline_errors]
        parts += [f"{task.name}: {task.detail}" for task in snapshot.state.tasks if task.ended == "error"]
        if snapshot.skipped:
            parts.append(f"{snapshot.skipped} events could not be understood and were skipped.")
        parts += [line.text for line in snapshot.state.log if line.level in ("warning", "error")][-20:]
        text = "\n\n".join(part for part in parts if part)
        self.app.push_screen(LongText("What went wrong", text or "Nothing went wrong so far."))
