"""A trial's program as `tuneassist trial ID --json` prints it, read with care; its layout and diff."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from tuneassist.errors import TuneAssistError

MAX_NODES = 5000
"""More nodes than this are not drawn; no operator comes near it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the AST."""

    id: int
    parent: int | None
    kind: str
    label: str
    detail: tuple[tuple[str, Any], ...] = ()
    contribution: float | None = None
    """The node's share of the predicted time, in the model's own units; None: the model gives none."""


@dataclass(frozen=True, slots=True)
class Program:
    """The scheduled program of one trial."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int, str], ...]
    """(from, to, kind) beside the tree's own."""
    script: str
    trace: str
    constant: float | None = None
    """What the model adds whatever the nodes are."""

    @property
    def heaviest(self) -> float:
        """The largest contribution by size, 0 where there is none."""
        return max((abs(n.contribution) for n in self.nodes if n.contribution is not None), default=0.0)

    def children(self) -> dict[int | None, list[Node]]:
        """Nodes by parent, in program order."""
        known = {node.id for node in self.nodes}
        by_parent: dict[int | None, list[Node]] = {}
        for node in self.nodes:
            by_parent.setdefault(node.parent if node.parent in known else None, []).append(node)
        return by_parent


def read_program(text: str, title: str) -> Program:
    """Parse the command's output.

    Raises:
        TuneAssistError: It is not the object that it should be.
    """
    try:
        data = json.loads(text)
        nodes = tuple(_node(item) for item in data["nodes"][:MAX_NODES])
        edges = tuple((int(a), int(b), str(kind)) for a, b, kind in data.get("edges") or ())
        constant = data.get("constant")
        return Program(
            title, _acyclic(nodes), edges, str(data.get("script") or ""), str(data.get("trace") or ""),
            float(constant) if constant is not None else None,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TuneAssistError(
            f"The program of {title} can't be read: {error!r}.",
            remedy="`tuneassist trial ID --json` prints it; report what it says.",
        ) from error


def _node(item: dict[str, Any]) -> Node:
    value = item.get("contribution")
    contribution = float(value) if value is not None and math.isfinite(value) else None
    parent = item.get("parent")
    detail = tuple((str(key), value) for key, value in (item.get("detail") or {}).items())
    above = None if parent is None else int(parent)
    return Node(int(item["id"]), above, str(item["kind"]), str(item["label"]), detail, contribution)


def _acyclic(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Parents come before their children, or the tree could never be walked to an end."""
    seen: set[int] = set()
    for node in nodes:
        if node.id in seen or (node.parent is not None and node.parent not in seen):
            raise ValueError(f"node {node.id} is repeated, or comes before its parent {node.parent}")
        seen.add(node.id)
    return nodes


class Place(NamedTuple):
    """Where a node stands in a tree drawn from top to bottom."""

    column: float
    """In leaves from the left; a parent stands in the middle of its children."""
    level: int
    """Depth."""
    span: int
    """Leaves below it: how much room its label has."""


def layout(program: Program, folded: Collection[int] = ()) -> dict[int, Place]:
    """Tidy tree: a leaf takes one column, a parent the columns of its children."""
    children = program.children()
    places: dict[int, Place] = {}
    leaves = 0
    # An explicit stack: deep loop nests must not meet Python's recursion limit.
    stack = [(node, 0, False) for node in reversed(children.get(None, []))]
    while stack:
        node, depth, done = stack.pop()
        below = [] if node.id in folded else children.get(node.id, [])
        if done:
            at = [places[child.id] for child in below]
            places[node.id] = Place((at[0].column + at[-1].column) / 2, depth, sum(p.span for p in at))
        elif below:
            stack.append((node, depth, True))
            stack.extend((child, depth + 1, False) for child in reversed(below))
        else:
            places[node.id] = Place(float(leaves), depth, 1)
            leaves += 1
    return places


def weight_level(contribution: float | None, heaviest: float) -> int:
    """0 (none) to 4 (the heaviest): how much a node counts beside the others."""
    if contribution is None or heaviest <= 0:
        return 0
    return min(4, 1 + int(abs(contribution) / heaviest * 3.999))


WEIGHT_SIGNS = (" ", "▁", "▃", "▅", "▇")


class DiffLine(NamedTuple):
    """One line of a side-by-side diff; `sign` is ` `, `~`, `-`, `+`, or `⋯` for a folded stretch."""

    sign: str
    left: str
    right: str


def side_by_side(left: str, right: str, context: int = 3) -> list[DiffLine]:
    """Lines of both texts beside each other; long equal stretches are folded."""
    a, b = left.splitlines(), right.splitlines()
    lines: list[DiffLine] = []
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for number, (tag, a0, a1, b0, b1) in enumerate(blocks):
        if tag == "equal":
            first, last = number == 0, number == len(blocks) - 1
            lines.extend(_folded(a[a0:a1], 0 if first else context, 0 if last else context))
            continue
        sign = {"replace": "~", "delete": "-", "insert": "+"}[tag]
        for offset in range(max(a1 - a0, b1 - b0)):
            was = a[a0 + offset] if a0 + offset < a1 else ""
            now = b[b0 + offset] if b0 + offset < b1 else ""
            lines.append(DiffLine(sign, was, now))
    return lines


def _folded(equal: list[str], head: int, tail: int) -> list[DiffLine]:
    hidden = len(equal) - head - tail
    if hidden < 4:
        return [DiffLine(" ", line, line) for line in equal]
    note = f"{hidden} equal lines"
    return [
        *(DiffLine(" ", line, line) for line in equal[:head]),
        DiffLine("⋯", note, note),
        *(DiffLine(" ", line, line) for line in equal[len(equal) - tail :]),
    ]
