"""Keeps rebuilt samples in a file of plain arrays."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.cost_model.graph import FEATURE_VERSION, AstGraph
from tuneassist.cost_model.row_trees import Rows
from tuneassist.research.rebuild import Rebuilt

VERSION = f"v{FEATURE_VERSION}.1"
_ARRAYS = ("types", "features", "parents", "edges", "edge_kinds")
_NUMBERS = ("flops", "bytes", "cores")


def write(path: Path, rebuilt: Sequence[Rebuilt]) -> None:
    """Write what was rebuilt of each workload."""
    arrays: dict[str, Any] = {}
    for number, made in enumerate(rebuilt):
        arrays[f"{number}.usable"] = np.array([seen is not None for seen in made.seen], dtype=bool)
        seen = [item for item in made.seen if item is not None]
        if not seen:
            continue
        if isinstance(seen[0], Rows):
            arrays[f"{number}.rows"] = np.concatenate([item.values for item in seen])
            arrays[f"{number}.counts"] = np.array([len(item.values) for item in seen])
            continue
        for name in _ARRAYS:
            axis = 1 if name == "edges" else 0
            arrays[f"{number}.{name}"] = np.concatenate([getattr(item, name) for item in seen], axis=axis)
        arrays[f"{number}.sizes"] = np.array([item.num_nodes for item in seen])
        arrays[f"{number}.edge_counts"] = np.array([item.edges.shape[1] for item in seen])
        arrays[f"{number}.numbers"] = np.array([[getattr(item, n) for n in _NUMBERS] for item in seen])
    unknown = [made.unknown for made in rebuilt]
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, unknown=np.array(json.dumps(unknown)), **arrays)
    partial.replace(path)


def read(path: Path) -> list[Rebuilt] | None:
    """What `write` wrote, or None if there is no such file or it is damaged."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            unknown = json.loads(str(arrays["unknown"]))
            return [_rebuilt(arrays, number, counts) for number, counts in enumerate(unknown)]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _rebuilt(arrays: Any, number: int, unknown: dict[str, int]) -> Rebuilt:
    usable = arrays[f"{number}.usable"]
    found = iter(_seen(arrays, number) if usable.any() else [])
    return Rebuilt(tuple(next(found) if ok else None for ok in usable), unknown)


def _seen(arrays: Any, number: int) -> list[Any]:
    if f"{number}.rows" in arrays:
        ends = np.cumsum(arrays[f"{number}.counts"])[:-1]
        return [Rows(values) for values in np.split(arrays[f"{number}.rows"], ends)]
    nodes = np.cumsum(arrays[f"{number}.sizes"])[:-1]
    edges = np.cumsum(arrays[f"{number}.edge_counts"])[:-1]
    parts = {
        name: np.split(
            arrays[f"{number}.{name}"], edges if name.startswith("edge") else nodes,
            axis=1 if name == "edges" else 0,
        )
        for name in _ARRAYS
    }  # fmt: skip
    return [
        AstGraph(
            types=parts["types"][i], features=parts["features"][i], parents=parts["parents"][i],
            edges=parts["edges"][i], edge_kinds=parts["edge_kinds"][i],
            flops=float(flops), bytes=float(size), cores=int(cores),
        )
        for i, (flops, size, cores) in enumerate(arrays[f"{number}.numbers"])
    ]  # fmt: skip
