"""A look at every device of a tracker: what it is, how far away, how fast, how steady.

Runs in a probe process; each device is met in a fork of it, since a session may hang.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.targets import kernels
from tuneassist.targets.forked import ForkedError, call
from tuneassist.targets.linker import linker_for
from tuneassist.targets.sessions import Session
from tuneassist.targets.tracker import Address, Tracker
from tuneassist.tvm_api import Target, tvm

REFERENCE = kernels.matmul(256, rows=4, columns=32, lanes=16, unroll=2, name="reference")
"""The kernel that devices are compared by."""
_REPEATS = 20
_REPEAT_SECS = 5e-3
_DEVICE_SECS = 60.0
_OFFER_SECS = 5.0


def devices(host: str, port: int, target: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Look at all devices; those that others use are only named.

    Args:
        host: Where the tracker listens.
        port: Its port.
        target: What to compile the reference kernel for, in dict form; None: what each device says it is.

    Yields:
        The tracker (`round_trip_secs` and the `keys` with their counts), then one dict a device.
    """
    address = Address(host, port)
    with Tracker(address) as tracker:
        summary = tracker.summary()
        yield {
            "round_trip_secs": tracker.round_trip_secs(),
            "keys": [
                {
                    "key": key, "total": len(names), "free": summary.free.get(key, 0),
                    "waiting": summary.waiting.get(key, 0),
                }
                for key, names in summary.devices.items()
            ],
        }  # fmt: skip
    for key, names in summary.devices.items():
        met: set[str] = set()
        # The tracker gives the device that has been free the longest, so these are all different.
        for _ in range(summary.free.get(key, 0)):
            try:
                found = call(_look, address, key, target, timeout_secs=_DEVICE_SECS)
            except ForkedError as error:
                found = {"device": "", "error": str(error)}
            met.add(found["device"])
            yield {"key": key, "free": True, **found}
        yield from ({"key": key, "free": False, "device": name} for name in names if name not in met)


def _look(address: Address, key: str, target: dict[str, Any] | None) -> dict[str, Any]:
    with Tracker(address) as tracker:
        offer = tracker.request(key, timeout_secs=_OFFER_SECS)
    found: dict[str, Any] = {"device": offer.device, "error": None}
    try:
        session = Session(offer, timeout_secs=_DEVICE_SECS)
        found |= session.facts()
        found["round_trip_secs"] = statistics.median(_round_trip_secs(session) for _ in range(5))
        config = target or _config(found)
        if config is None:
            found["error"] = "it does not say what its CPU is: name it with --target"
            return found
        found |= _timed(session, config)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        found["error"] = lines[-1].strip()
    return found


def _round_trip_secs(session: Session) -> float:
    started = time.perf_counter()
    session.alive()
    return time.perf_counter() - started


def _config(facts: dict[str, Any]) -> dict[str, Any] | None:
    """The target that a device with LLVM describes itself as."""
    if not facts["cpu"] or not facts["triple"]:
        return None
    return {"kind": "llvm", "mtriple": facts["triple"], "mcpu": facts["cpu"], "num-cores": facts["threads"]}


def _timed(session: Session, config: dict[str, Any]) -> dict[str, Any]:
    """`reference_secs` (median), `noise` (10th to 90th percentile, as a share of it) and `correct`."""
    linker = linker_for(config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"reference{linker.suffix}"
        options = {"cc": linker.compiler} if linker.compiler else {}
        tvm.compile(REFERENCE.build(), target=Target(config)).export_library(str(path), **options)
        module = session.load(str(path))
    device = session.device(str(config["kind"]))
    rng = np.random.default_rng(0)
    *shapes, output_shape = REFERENCE.shapes
    inputs = [rng.random(shape, dtype=np.float32) for shape in shapes]
    output = tvm.runtime.empty(output_shape, "float32", device)
    arguments = [*(tvm.runtime.tensor(array, device) for array in inputs), output]
    once = module.time_evaluator("main", device, number=1, repeat=3)(*arguments).results
    number = max(1, math.ceil(_REPEAT_SECS / max(min(once), 1e-9)))
    secs = module.time_evaluator("main", device, number=number, repeat=_REPEATS)(*arguments).results
    tenths = statistics.quantiles(secs, n=10)
    median = statistics.median(secs)
    expected = REFERENCE.reference(*inputs)
    return {
        "reference_secs": median,
        "noise": (tenths[8] - tenths[0]) / median,
        "correct": bool(np.allclose(output.numpy(), expected, rtol=1e-3)),
    }
