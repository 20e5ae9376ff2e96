"""The lines of a MetaSchedule database, without TVM."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneassist.exchange.metaschedule import (
    RecordLine,
    read_record,
    read_workload,
    record_line,
    trace_key,
    workload_line,
)

TRACE = '[[["GetSBlock",[],["b","main"],["b0"]],["Split",["l1"],[true,false],["l2"]]],[[1,[2,4]]]]'
TARGET = '{"kind":"llvm","num-cores":2}'


def record(**changed: object) -> bytes:
    """A record line with some of its parts replaced."""
    parts = {
        "workload": 0,
        "trace": json.loads(TRACE),
        "secs": [1e-3],
        "target": json.loads(TARGET),
    } | changed
    return json.dumps(
        [parts["workload"], [parts["trace"], parts["secs"], parts["target"], []]]
    ).encode()  # fmt: skip


@given(st.text(), st.integers(0, 2**64 - 1))
def test_a_workload_comes_back_as_it_was_written(module: str, number: int) -> None:
    module = module.encode(errors="replace").decode()
    line = read_workload(workload_line(f"{number:016x}", module).encode())
    assert (line.shash, line.mod_json) == (str(number), module)


@given(st.lists(st.floats(1e-12, 1e6), min_size=1), st.integers(0, 10**6))
def test_a_record_comes_back_with_every_digit(secs: list[float], workload: int) -> None:
    written = RecordLine(workload, TRACE, tuple(secs), TARGET)
    read = read_record(record_line(written, []).encode())
    assert (read.workload, read.run_secs, read.target_json) == (workload, tuple(secs), TARGET)
    assert trace_key(read.trace_json) == trace_key(TRACE)


@pytest.mark.parametrize(
    "secs",
    [[1e10], [1e10, 1e10], [1e-3, 1e10], [1e9], [0.0], [-1e-3], [], None, [float("nan")], [float("inf")]],
)
def test_a_time_that_is_none_is_a_failure(secs: list[float] | None) -> None:
    assert read_record(record(secs=secs)).run_secs is None


def test_booleans_written_as_numbers_are_the_same_trace() -> None:
    assert trace_key(TRACE) == trace_key(TRACE.replace("true", "1").replace("false", "0"))
    assert trace_key(TRACE) != trace_key(TRACE.replace("[2,4]", "[4,2]"))


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"null", b"[0]", b"\xff\xfe", b"[0,[[],[],{}]]", b"[" * 100_000,
        record(workload=-1), record(workload="0"), record(trace={}), record(trace=[[]]), record(secs="1e-3"),
        record(secs=[True]), record(secs=[[1.0]]), record(target="llvm"), record(target=None),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused_with_a_reason(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"it is|its "):
        read_record(line)


def packed(body: bytes, size: int | None = None) -> str:
    """A module as TVM packs it; with a wrong size if one is given."""
    return base64.b64encode((len(body) if size is None else size).to_bytes(8, "little") + body).decode()


@pytest.mark.parametrize(
    "value",
    [["1"], ["1", "x!"], ["1", packed(b"{}", 3)], ["1", packed(b"\xff")], [1, packed(b"{}")], {}, "x"],
)
def test_what_is_no_workload_is_refused_with_a_reason(value: object) -> None:
    with pytest.raises(ValueError, match=r"it is|its "):
        read_workload(json.dumps(value).encode())
