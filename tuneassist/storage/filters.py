"""What a user asks for, as SQL conditions with bound parameters; no user text enters a statement."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from tuneassist.errors import UsageError
from tuneassist.records import RunStatus
from tuneassist.storage.liveness import engine_alive

LOST = "lost"
"""State of a run whose row says running or paused while no engine works on it."""

STATES = (*(status.value for status in RunStatus), LOST)

MAX_PATTERN_CHARS = 1000

_ESCAPE = "!"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs; an empty field asks nothing.

    Patterns ignore case (of ASCII letters), know the wildcards `*` and `?`, and match anywhere where
    they have none.
    """

    text: str = ""
    """Pattern of a workload, the note, the target or the state."""
    workload: str = ""
    """Pattern of a task's name or its workload's spec."""
    target: str = ""
    """Pattern of the target's spec or JSON."""
    machine: str = ""
    """Pattern of the host name or the CPU."""
    cost_model: str = ""
    states: tuple[str, ...] = ()
    """Any of `STATES`."""
    since: float | None = None
    """Started at or after this Unix time."""
    until: float | None = None
    """Started before this Unix time."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A WHERE term over runs, targets and machines, and its parameters."""

    sql: str
    parameters: dict[str, str | float]


RUN_STATE = """
    CASE WHEN runs.status IN ('running', 'paused') AND runs.id NOT IN (SELECT value FROM json_each(:alive))
    THEN 'lost' ELSE runs.status END
"""
"""A run's state; needs the parameter `alive`."""


def matches(parameter: str, *columns: str) -> str:
    """The term that any of the columns is like the parameter, a pattern made by `like`."""
    return f"({' OR '.join(f'{column} LIKE :{parameter} ESCAPE {_ESCAPE!r}' for column in columns)})"


def like(pattern: str) -> str:
    """The pattern as LIKE takes it, with its special characters escaped.

    Raises:
        UsageError: It is longer than `MAX_PATTERN_CHARS`.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UsageError(
            f"A pattern of {len(pattern)} characters is too long.",
            remedy=f"Use at most {MAX_PATTERN_CHARS}; * stands for any text.",
        )
    text = pattern.encode(errors="replace").decode()  # arguments that are no text hold lone surrogates
    text = text.replace("\0", "\ufffd")  # SQLite's LIKE ends at a NUL and would match more than was asked
    for special in f"{_ESCAPE}%_":
        text = text.replace(special, f"{_ESCAPE}{special}")
    if not any(wildcard in text for wildcard in "*?"):
        return f"%{text}%"
    return text.replace("*", "%").replace("?", "_")


def run_condition(conn: sqlite3.Connection, wanted: RunFilter) -> Condition:
    """The condition that `wanted` stands for, with the parameter `alive` in any case."""
    terms = ["1"]
    parameters: dict[str, str | float] = {"alive": json.dumps(alive_runs(conn))}
    columns = {
        "target": matches("target", "targets.spec", "targets.json"),
        "machine": matches("machine", "machines.hostname", "machines.cpu"),
        "cost_model": matches("cost_model", "runs.cost_model"),
        "workload": _workload("workload"),
        "text": f"({matches('text', 'runs.note', 'targets.spec', RUN_STATE)} OR {_workload('text')})",
    }
    for name, term in columns.items():
        pattern = getattr(wanted, name)
        if pattern:
            terms.append(term)
            parameters[name] = like(pattern)
    if wanted.states:
        terms.append(f"{RUN_STATE} IN (SELECT value FROM json_each(:states))")
        parameters["states"] = json.dumps(wanted.states)
    if wanted.since is not None:
        terms.append("runs.started_at >= :since")
        parameters["since"] = wanted.since
    if wanted.until is not None:
        terms.append("runs.started_at < :until")
        parameters["until"] = wanted.until
    return Condition(" AND ".join(terms), parameters)


def _workload(parameter: str) -> str:
    return (
        "EXISTS (SELECT 1 FROM tasks JOIN workloads ON workloads.id = tasks.workload_id"
        f" WHERE tasks.run_id = runs.id AND {matches(parameter, 'tasks.name', 'workloads.spec')})"
    )


def alive_runs(conn: sqlite3.Connection) -> list[int]:
    """Ids of the runs that an engine works on now."""
    found = conn.execute("SELECT id, pid, pid_started FROM runs WHERE status IN ('running', 'paused')")
    return [run_id for run_id, pid, started in found.fetchall() if engine_alive(pid, started)]
