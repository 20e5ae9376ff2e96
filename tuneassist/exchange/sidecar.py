"""What an exported MetaSchedule database says beside its records: who measured, and what things are called.

Stock TVM does not look at this file. Import believes what it says of the machine only while the records
are those that were exported: TVM may have appended others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tuneassist import __version__
from tuneassist.exchange.metaschedule import RECORDS
from tuneassist.records import Machine

SIDECAR = "tuneassist.json"


@dataclass(frozen=True, slots=True)
class NamedWorkload:
    """How the exporting store describes a workload."""

    hash: str
    name: str
    spec: str
    op: str
    flops: int


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The file, read."""

    machine: Machine | None
    """None if the records are no longer those that were exported."""
    workloads: dict[str, NamedWorkload] = field(default_factory=dict)
    """By hash."""


def write_sidecar(folder: Path, machine: Machine, workloads: Sequence[NamedWorkload]) -> None:
    """Write the file beside the records, which are there already."""
    content = {
        "tuneassist": __version__,
        "machine": asdict(machine),
        "workloads": [asdict(workload) for workload in workloads],
        "records_sha256": _sha256(folder / RECORDS),
    }
    (folder / SIDECAR).write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")


def read_sidecar(folder: Path) -> Sidecar | None:
    """Read the file; None where there is none, or it is not what `write_sidecar` writes."""
    try:
        content = json.loads((folder / SIDECAR).read_text(encoding="utf-8"))
        named = [NamedWorkload(**item) for item in content["workloads"]]
        same = content["records_sha256"] == _sha256(folder / RECORDS)
        told = content["machine"]
        machine = Machine(
            str(told["hostname"]), str(told["cpu"]), int(told["cores"]), tuple(told["features"])
        )
        return Sidecar(machine if same else None, {item.hash: item for item in named})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
