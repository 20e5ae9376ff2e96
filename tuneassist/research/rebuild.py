"""Rebuilds what models see of stored schedules, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

GRAPHS = "graphs"
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Work:
    """Trials of one workload on one machine and target, as the database holds them."""

    what: str
    """`GRAPHS`, or a baseline kind."""
    name: str
    op: str
    machine: str
    key: str
    mod_json: str
    target_json: str
    hardware_json: str | None
    traces: tuple[str, ...]
    secs: tuple[float, ...]
    sources: tuple[str, ...]
    ids: tuple[int, ...]

    def split(self, size: int) -> list[Work]:
        """The same in parts of at most so many trials."""
        return [
            replace(
                self, traces=self.traces[i : i + size], secs=self.secs[i : i + size],
                sources=self.sources[i : i + size], ids=self.ids[i : i + size],
            )
            for i in range(0, len(self.traces), size)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of them: None where a trace no longer applies."""

    seen: tuple[Any, ...]
    unknown: dict[str, int] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[Rebuilt]) -> Rebuilt:
        """Parts of one workload, in order."""
        unknown: dict[str, int] = {}
        for part in parts:
            for name, count in part.unknown.items():
                unknown[name] = unknown.get(name, 0) + count
        return cls(tuple(seen for part in parts for seen in part.seen), unknown)


def rebuild(work: Work) -> Rebuilt:
    """Replay the traces and extract what a model sees."""
    from tuneassist.tuning.database import Replayer
    from tuneassist.tvm_api import Target, load_tensor_intrinsics, tvm

    target = Target(json.loads(work.target_json))
    load_tensor_intrinsics(target.kind.name)
    replayer = Replayer(tvm.ir.load_json(work.mod_json), target)
    mods: list[Any] = []
    for trace in work.traces:
        try:
            mods.append(replayer(trace).mod)
        except ValueError:
            mods.append(None)
    usable = [number for number, mod in enumerate(mods) if mod is not None]
    seen: list[Any] = [None] * len(mods)
    unknown: dict[str, int] = {}
    for start in range(0, len(usable), _BATCH):
        numbers = usable[start : start + _BATCH]
        for number, found in zip(numbers, _extract(work, [mods[n] for n in numbers], target), strict=True):
            seen[number] = found
            for name, count in getattr(found, "unknown", {}).items():
                unknown[name] = unknown.get(name, 0) + count
    return Rebuilt(tuple(seen), unknown)


def _extract(work: Work, mods: list[Any], target: Any) -> list[Any]:
    from tuneassist.cost_model.graph import extract_batch
    from tuneassist.cost_model.hardware import Hardware
    from tuneassist.cost_model.registry import module_rows

    if work.what != GRAPHS:
        return list(module_rows(work.what, mods, target))
    cores = int(target.attrs.get("num-cores", 1))
    hardware = Hardware(**json.loads(work.hardware_json)) if work.hardware_json else None
    return list(extract_batch(mods, cores, hardware=hardware))
