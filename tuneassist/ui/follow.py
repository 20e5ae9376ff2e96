"""Follows one engine in a thread of its own and keeps the latest complete snapshot of its run.

The screen takes the latest snapshot when it wants to; snapshots that nobody took are dropped, so a flood of
events costs the screen nothing. An engine that dies under the follower is started again on the same run.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tuneassist.errors import TuneAssistError
from tuneassist.events import Event
from tuneassist.ui.run_state import RunState, fold
from tuneassist.ui.services import Session

POLL_SECS = 0.2
MAX_RESTARTS = 3
_CHUNK = 2000
"""Events folded between two snapshots, so that a long stream shows its progress."""
_LOG_TAIL = 40


class EngineState(StrEnum):
    """How the engine stands, as the follower sees it."""

    RUNNING = "running"
    RESTARTING = "restarting"
    ENDED = "ended"
    DIED = "died"
    """It died and is not started again."""
    GONE = "gone"
    """It was not there when the viewer came; the run is unfinished."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the live screen shows of a run."""

    state: RunState = field(default_factory=RunState)
    engine: EngineState = EngineState.RUNNING
    pid: int | None = None
    restarts: int = 0
    skipped: int = 0
    """Events that could not be understood."""
    behind: bool = False
    """More events wait to be read."""
    problem: str = ""
    """What went wrong with the engine, in full."""


class Follower:
    """One thread that polls a session.

    Args:
        session: The engine to follow.
        restart: Whether to start an engine that dies again (not for a replay).
    """

    def __init__(self, session: Session, *, restart: bool = True, poll_secs: float = POLL_SECS) -> None:
        self.session = session
        self.latest = Snapshot(pid=session.pid)
        self._restart = restart
        self._poll_secs = poll_secs
        self._seen_alive = False
        self.stopping = False
        self._cancel = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def close(self) -> None:
        """Stop following and wait for the thread; the engine is left alone."""
        self._cancel.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def stop_engine(self) -> None:
        """Ask the engine to stop after the running trial; at once when asked again. It is not restarted."""
        self.stopping = True
        self.session.stop()

    def _follow(self) -> None:
        try:
            while not self._cancel.is_set():
                # Liveness first: what the engine wrote before it ended is then all there to be read.
                alive = self.session.alive()
                self._seen_alive = self._seen_alive or alive
                events = self.session.poll()
                self._fold(events)
                if not events:
                    if not alive and self._over():
                        return
                    self._cancel.wait(self._poll_secs)
        except (TuneAssistError, OSError) as error:
            self._publish(engine=EngineState.DIED, problem=str(error), behind=False)

    def _fold(self, events: list[Event]) -> None:
        state, skipped = self.latest.state, self.latest.skipped
        for number, event in enumerate(events, 1):
            try:
                state = fold(state, event)
            except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
                skipped += 1
            if number % _CHUNK == 0:
                self._publish(state=state, skipped=skipped, behind=True)
                if self._cancel.wait(0.001):  # lets the screen draw
                    return
        self._publish(state=state, skipped=skipped, behind=len(events) >= _CHUNK)

    def _over(self) -> bool:
        """The engine has ended and everything is read: say how; True when there is nothing more to follow."""
        if self.latest.state.ended:
            self._publish(engine=EngineState.ENDED)
            return True
        if not self._seen_alive:
            self._publish(engine=EngineState.GONE)
            return True
        problem = "\n".join(self.session.log_tail(_LOG_TAIL)) or "The engine left no message."
        if self.stopping or not self._restart:
            self._publish(engine=EngineState.GONE, problem=problem)
            return True
        if self.latest.restarts >= MAX_RESTARTS:
            self._publish(engine=EngineState.DIED, problem=problem)
            return True
        self._publish(engine=EngineState.RESTARTING, restarts=self.latest.restarts + 1, problem=problem)
        self.session = self.session.restart()
        self._publish(pid=self.session.pid)
        return False

    def _publish(self, **changes: object) -> None:
        latest = replace(self.latest, **changes)  # type: ignore[arg-type]
        back = (
            latest.engine is EngineState.RESTARTING and latest.state.last_time > self.latest.state.last_time
        )
        if back:
            latest = replace(latest, engine=EngineState.RUNNING)
        if latest != self.latest:
            self.latest = latest
