"""The lines of a MetaSchedule JSON database, written and read without TVM.

A database is two files of one JSON value a line:

    database_workload.json       ["STRUCTURAL_HASH", "BASE64"]
    database_tuning_record.json  [WORKLOAD, [TRACE, RUN_SECS, TARGET, ARGS_INFO]]

BASE64 holds a string as TVM saves one: its length in bytes (8 bytes, little-endian), then the module as
JSON. WORKLOAD is the 0-based line of the workload. RUN_SECS is a list of seconds; a candidate that failed
has a sentinel there, 1e10 in stock TVM.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"

SENTINEL_SECS = 1e9
"""Times from here on (30 years) are no times: MetaSchedule writes 1e10 for a candidate that failed."""


@dataclass(frozen=True, slots=True)
class WorkloadLine:
    """A line of the workload file."""

    shash: str
    """Structural hash, decimal, by the TVM that wrote it."""
    mod_json: str


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A line of the record file."""

    workload: int
    """0-based line of the workload file."""
    trace_json: str
    run_secs: tuple[float, ...] | None
    """None: the candidate failed."""
    target_json: str
    """As it stands there, keys sorted."""


def workload_line(workload_hash: str, mod_json: str) -> str:
    """The line of a workload.

    Args:
        workload_hash: Structural hash, hexadecimal, as the store keeps it.
        mod_json: The module as TVM saves it.
    """
    body = mod_json.encode()
    packed = base64.b64encode(len(body).to_bytes(8, "little") + body).decode()
    return _dump([str(int(workload_hash, 16)), packed])


def record_line(record: RecordLine, args_info: list[Any]) -> str:
    """The line of a record; `args_info` is MetaSchedule's JSON form of the workload's arguments."""
    return _dump(
        [
            record.workload,
            [json.loads(record.trace_json), record.run_secs, json.loads(record.target_json), args_info],
        ]
    )


def read_workload(line: bytes) -> WorkloadLine:
    """Read a line of the workload file.

    Raises:
        ValueError: It is none; the message says why.
    """
    value = _load(line)
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value)):
        raise ValueError("it is not [hash, module]")
    try:
        raw = base64.b64decode(value[1], validate=True)
        size, body = int.from_bytes(raw[:8], "little"), raw[8:].decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"its module is not base64 text ({error})") from error
    if size != len(raw) - 8:
        raise ValueError(f"its module should have {size} bytes and has {len(raw) - 8}")
    return WorkloadLine(value[0], body)


def read_record(line: bytes) -> RecordLine:
    """Read a line of the record file.

    Raises:
        ValueError: It is none; the message says why.
    """
    value = _load(line)
    match value:
        case [int(workload), [[list(), list()] as trace, secs, dict(target), *_]] if workload >= 0:
            return RecordLine(workload, _dump(trace), _run_secs(secs), _dump_sorted(target))
    raise ValueError("it is not [workload, [trace, run_secs, target, args_info]]")


def trace_key(trace_json: str) -> bytes:
    """What identifies a trace: 16 bytes, equal for a trace of the store and the same one from a database.

    TVM's own files write booleans as 0 and 1, our traces as false and true.
    """
    plain = trace_json.replace("true", "1").replace("false", "0")
    return hashlib.blake2b(plain.encode(), digest_size=16).digest()


def _run_secs(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
        raise ValueError("its run_secs is no list of numbers")
    secs = tuple(float(item) for item in value)
    valid = bool(secs) and all(math.isfinite(item) and 0 < item < SENTINEL_SECS for item in secs)
    return secs if valid else None


def _load(line: bytes) -> Any:
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is no JSON ({error})") from error


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _dump_sorted(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
