"""A scheduled module as plain Python lists: what `walk` reads and the features are made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tuneassist.cost_model.indices import Changes


class Loop(NamedTuple):
    """A loop of more than one iteration."""

    node: int
    extent: int
    kind: int
    unroll_max_step: int
    unroll_explicit: int


class Access(NamedTuple):
    """One load or store of a buffer."""

    node: int
    buffer: int
    """Index into `Walk.buffers`."""
    store: bool
    dims: int


@dataclass(slots=True)
class Statement:
    """A store, a branch or an evaluated call, with what it touches: the store's access first."""

    node: int
    loops: tuple[Loop, ...]
    """Innermost first."""
    iterations: int
    """Times that it is executed."""
    accesses: list[Access] = field(default_factory=list)
    changes: list[Changes] = field(default_factory=list)
    """Of each dimension of each access in turn, how the index changes along the loops."""
    ops: dict[str, int] = field(default_factory=dict)
    """How many operations of each kind."""

    def count(self, kind: str) -> None:
        """Count one more operation."""
        self.ops[kind] = self.ops.get(kind, 0) + 1


class Buffer(NamedTuple):
    """A buffer as declared."""

    shape: tuple[int, ...]
    itemsize: float
    is_float: bool
    bytes: float
    local: bool
    """Allocated within the function."""


@dataclass(slots=True)
class Walk:
    """A module as flat lists."""

    types: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    blocks: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """node, spatial iters, reduction iters, other iters, has init, has predicate, annotations."""
    statements: list[Statement] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    ops: list[tuple[int, int, int]] = field(default_factory=list)
    """node, how many of its kind, statement."""
    allocs: list[tuple[int, int]] = field(default_factory=list)
    """node, buffer."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Classes that this version does not know, and how often each was seen."""
    labels: list[str] | None = None
