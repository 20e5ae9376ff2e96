"""The app: opens screens, starts and attaches engines, shows errors. Screens load when first opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rich.markup import escape
from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from tuneassist.errors import TuneAssistError
from tuneassist.records import Run, RunSettings
from tuneassist.ui.collector import TICK_SECS, IdleCollector
from tuneassist.ui.services import Services, Session
from tuneassist.ui.theme import DARK, LIGHT, THEMES

T = TypeVar("T")

_PROGRAMS_KEPT = 16
_NOT_OFFERED = frozenset({"command_palette", "focus_next", "focus_previous", "copy_text"})
"""Bound actions that make no sense from the command palette."""

if TYPE_CHECKING:
    from tuneassist.ui.program import Program
    from tuneassist.ui.screens.live import LiveScreen


class TuneAssistApp(App[int]):
    """The terminal app.

    Args:
        services: Store, engines, commands and catalogue.
        open_run: Open this run first; None: the start screen, or the latest run that is still going.
    """

    TITLE = "tuneassist"
    CSS_PATH = "style.tcss"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (40, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (12, "-low"), (30, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+q", "quit", show=False, priority=True),
        Binding("ctrl+t", "turn_theme", "Light/dark", show=False),
        Binding("ctrl+s", "screenshot", "Save screen as SVG", show=False),
        Binding("ctrl+p", "command_palette", "Commands", show=False),
    ]

    def __init__(self, services: Services, *, open_run: int | None = None) -> None:
        super().__init__()
        self.services = services
        self._open_run = open_run
        self._programs: dict[str, Program] = {}
        self.collector: IdleCollector | None = None
        """Collects garbage while the user is idle; None leaves that to Python."""
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = LIGHT.name if services.theme in ("light", LIGHT.name) else DARK.name

    def on_mount(self) -> None:
        """Open the start screen, and over it the run that was asked for."""
        from tuneassist.ui.screens.start import StartScreen

        self.push_screen(StartScreen(open_running=self._open_run is None))
        if self._open_run is not None:
            self.open_run(self._open_run)

        if self.collector is not None:
            self.set_timer(TICK_SECS, self.collector.take_over)  # once the first screen is there
            self.set_interval(TICK_SECS, self.collector.tick)

    def on_unmount(self) -> None:
        """Wait for no subcommand that still runs."""
        self.services.commands.close()

    async def on_event(self, event: events.Event) -> None:
        """Notice that the user is there."""
        if self.collector is not None and isinstance(event, events.InputEvent):
            self.collector.input_seen()
        await super().on_event(event)

    # screens

    def open_new_run(self) -> None:
        """The form for a new run."""
        from tuneassist.ui.screens.new_run import NewRunScreen

        self.push_screen(NewRunScreen())

    def open_history(self) -> None:
        """All runs."""
        from tuneassist.ui.screens.history import HistoryScreen

        self.push_screen(HistoryScreen())

    def open_models(self) -> None:
        """Cost models."""
        from tuneassist.ui.screens.models import ModelsScreen

        self.push_screen(ModelsScreen())

    def open_doctor(self) -> None:
        """Checks of this machine."""
        from tuneassist.ui.screens.doctor import DoctorScreen

        self.push_screen(DoctorScreen())

    def open_compare(self, run_ids: tuple[int, ...]) -> None:
        """Runs side by side."""
        from tuneassist.ui.screens.compare import CompareScreen

        self.push_screen(CompareScreen(run_ids))

    def open_trial(self, trial_id: int) -> None:
        """A trial's program."""
        from tuneassist.ui.screens.trial import TrialScreen

        self.push_screen(TrialScreen(trial_id))

    def open_trial_of(self, run_id: int, task_id: int, ordinal: int) -> None:
        """The program of the trial with that ordinal within the run."""
        self._in_thread(
            lambda: self.services.reader.trial_id(run_id, ordinal), lambda trial_id: self.open_trial(trial_id)
        )

    # runs

    def open_run(self, run_id: int, *, replay: bool = False) -> None:
        """Follow a run, or look at one that has ended; never starts work."""
        reader, engines, db = self.services.reader, self.services.engines, self.services.db

        def attach() -> Session:
            from tuneassist.ui.replay import ReplaySession
            from tuneassist.ui.stored import StoredSession, with_earlier

            run = reader.run(run_id)
            alive = reader.run_row(run_id).alive
            kept = alive or _has_events(run)
            session: Session = StoredSession(reader, run, db)
            if kept:
                session = with_earlier(engines.attach(run), reader, run, db)
            return ReplaySession(session) if replay and not alive else session

        self._in_thread(attach, lambda session: self._show_live(session, run_id))

    def start_run(self, settings: RunSettings, *, resume_run_id: int | None = None) -> None:
        """Start an engine on a new run, or on one that is continued, and watch it."""
        services = self.services

        def start() -> Session:
            if resume_run_id is None:
                return services.engines.start(settings)
            from tuneassist.ui.stored import ResumedSession, stored_events

            run = services.reader.run(resume_run_id)
            earlier = stored_events(services.reader, run, services.db, ended=False)
            return ResumedSession(services.engines.start(settings, resume_run_id=resume_run_id), earlier)

        self._in_thread(start, lambda session: self._show_live(session, resume_run_id))

    def _show_live(self, session: Session, run_id: int | None) -> None:
        from tuneassist.ui.screens.live import LiveScreen

        self.push_screen(LiveScreen(session, run_id=run_id))

    def program(self, name: str) -> Program:
        """The program of `TRIAL_ID`, or `TRIAL_ID --untuned`; blocks, so call it in a thread.

        Raises:
            TuneAssistError: The command failed.
        """
        from tuneassist.ui.program import read_program

        if name not in self._programs:
            text = self.services.commands.run("trial", *name.split(), "--json")
            title = "untuned" if name.endswith("--untuned") else f"trial {name}"
            while len(self._programs) >= _PROGRAMS_KEPT:
                self._programs.pop(next(iter(self._programs)))
            self._programs[name] = read_program(text, title)
        return self._programs[name]

    # helpers

    def copy(self, text: str) -> None:
        """Copy and say so."""
        self.copy_to_clipboard(text)
        self.notify(text, title="Copied", timeout=3, markup=False)

    def show_error(self, error: Exception) -> None:
        """An error as a notification: what failed, and what to do."""
        if isinstance(error, TuneAssistError):
            text = f"{error.message}\n{error.remedy}" if error.remedy else error.message
        else:
            text = str(error)
        self.notify(text[:600], title="Error", severity="error", timeout=12, markup=False)

    def _in_thread(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        def run() -> None:
            try:
                result = work()
            except (TuneAssistError, OSError) as error:
                self.call_from_thread(self.show_error, error)
            else:
                self.call_from_thread(then, result)

        self.run_worker(run, group="app", thread=True)

    # actions

    def action_turn_theme(self) -> None:
        """The other theme; charts are drawn again in its colours."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    def action_keys(self) -> None:
        """The keys of this screen."""
        from tuneassist.ui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen))

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        """Save the screen as SVG in the working directory."""
        try:
            saved = self.save_screenshot(filename, path)
        except OSError as error:
            self.show_error(error)
        else:
            self.copy_to_clipboard(str(Path(saved).absolute()))
            self.notify(f"{saved} (path copied)", title="Screen saved", timeout=5, markup=False)

    async def action_quit(self) -> None:
        """Quit; running engines are stopped or left running as the user says."""
        running = self.running_screens()
        if not running:
            self.exit(0)
            return
        from tuneassist.ui.screens.dialogs import Question

        def answered(answer: str | None) -> None:
            if answer == "stop":
                for screen in running:
                    screen.follower.stop_engine()
            if answer in ("leave", "stop"):
                self.exit(0)

        names = ", ".join(f"run {screen.run_id}" for screen in running)
        text = f"{names} is still going on. What was measured is kept either way."
        answers = [("leave", "Leave it running"), ("stop", "Stop it")]
        self.push_screen(Question(text, answers), answered)

    def running_screens(self) -> list[LiveScreen]:
        """Live screens with an engine at work."""
        from tuneassist.ui.screens.base import BaseScreen

        return [
            screen  # type: ignore[misc]
            for screen in self.screen_stack
            if isinstance(screen, BaseScreen) and getattr(screen, "engine_running", False)
        ]

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action of the screen, and the app's own."""
        seen: set[str] = set()
        for active in screen.active_bindings.values():
            binding = active.binding
            if not binding.description or binding.description in seen or not active.enabled:
                continue
            if binding.action.removeprefix("app.").removeprefix("screen.") in _NOT_OFFERED:
                continue
            seen.add(binding.description)
            key = self.get_key_display(binding)

            def call(action: str = binding.action, node: object = active.node) -> None:
                self.run_worker(self.run_action(action, node), group="palette")  # type: ignore[arg-type]

            yield SystemCommand(escape(binding.description), f"Key {escape(key)}", call)
        for name, about, open_screen in (
            ("New run", "Choose workloads and a target", self.open_new_run),
            ("History", "All runs in the store", self.open_history),
            ("Models", "Cost models and how good they are", self.open_models),
            ("Doctor", "Check this machine", self.open_doctor),
        ):
            if name not in seen:
                yield SystemCommand(name, about, open_screen)
        yield SystemCommand(
            "Copy database path", str(self.services.db), lambda: self.copy(str(self.services.db))
        )


def _has_events(run: Run) -> bool:
    return bool(run.events_path) and Path(run.events_path or "").is_file()


def run(db: Path, open_run: int | None = None) -> int:
    """Run the app on this database until the user quits.

    Args:
        db: The SQLite database; it need not exist yet.
        open_run: A run to open first.

    Returns:
        The exit code.
    """
    from tuneassist.ui.adapters import local_services

    app = TuneAssistApp(local_services(db), open_run=open_run)
    app.collector = IdleCollector()
    return app.run() or app.return_code or 0
