"""What one forked process does with one device: wait for it, run kernels on it, give it back.

Runs in a fork of the zygote. A session that hangs costs this process, which is killed.
"""

from __future__ import annotations

import gc
import math
import socket
from typing import Any

import numpy as np

from tuneassist.processes import die_with_parent
from tuneassist.targets.sessions import DIED, Session, SessionLostError
from tuneassist.targets.tracker import Address, Tracker, TrackerError
from tuneassist.tuning.answers import compared, failure, finite
from tuneassist.tuning.candidate import SLOW_FACTOR, SLOW_REPEAT_SECS, WARM_UP_SECS
from tuneassist.tuning.inputs import load_inputs
from tuneassist.tuning.wire import receive, send
from tuneassist.tvm_api import tvm


def run(sock: socket.socket, request: dict[str, Any], inputs: list[np.ndarray]) -> None:
    """Serve one session over the socket; returns when the engine is done with it.

    Args:
        sock: Messages: `offered` out, `connect` in, `connected` or `lost` out, then any number of `measure`
            or `check` in, each answered by `measured` or `checked`, or by `failed`, `timed_out` or `lost`.
        request: The `device` order.
        inputs: The workload's inputs.
    """
    die_with_parent()
    gc.disable()
    try:
        with Tracker(Address(*request["tracker"])) as tracker:
            offer = tracker.request(request["key"])
    except TrackerError as error:
        send(sock, {"event": "no_tracker", "error": error.message})
        return
    send(sock, {"event": "offered", "device": offer.device})
    receive(sock)
    try:
        session = Session(offer, timeout_secs=request["session_secs"])
        send(sock, {"event": "connected", "facts": session.facts()})
    except Exception as error:
        send(sock, {**failure(error), "event": "lost"})
        return
    kernels: dict[str, _RemoteKernel] = {}
    try:
        while True:
            order, _ = receive(sock)
            send(sock, _done(session, kernels, order, inputs))
    finally:
        # Everything that belongs to the session goes before it, so that it is closed and not cut off.
        kernels.clear()
        del session


def _done(
    session: Session, kernels: dict[str, _RemoteKernel], order: dict[str, Any], inputs: list[np.ndarray]
) -> dict[str, Any]:
    """Do what an order says and return the answer."""
    try:
        name = order["kernel"]
        if name not in kernels:
            given = load_inputs(order["inputs"]) if order["inputs"] else inputs
            kernels[name] = _RemoteKernel(session, order, given)
        kernel = kernels[name]
        return kernel.check(order) if order["event"] == "check" else kernel.measure(order)
    except Exception as error:
        if "RPCSessionTimeoutError" in f"{type(error).__name__} {error}":
            return {"event": "timed_out"}
        if DIED in str(error):
            return {"event": "failed", "error": str(error).strip().splitlines()[-1]}
        if isinstance(error, SessionLostError) or not session.alive():
            return {**failure(error), "event": "lost"}
        return failure(error)


class _RemoteKernel:
    def __init__(self, session: Session, order: dict[str, Any], inputs: list[np.ndarray]) -> None:
        self._device = session.device(order["kind"])
        self._module = session.load(order["kernel"])
        *given, (shape, dtype) = order["arguments"]
        arguments = [
            tvm.runtime.tensor(np.resize(array, shape) if list(array.shape) != shape else array, self._device)
            for array, (shape, _) in zip(inputs, given, strict=True)
        ]
        self._arguments = [*arguments, tvm.runtime.empty(tuple(shape), dtype, self._device)]

    def measure(self, order: dict[str, Any]) -> dict[str, Any]:
        """As `candidate.py` measures, except that the device's own clock is read for every call."""
        call_secs = max(min(self._secs(number=1, repeat=2)), 1e-9)
        warm_up = math.ceil(WARM_UP_SECS / call_secs)
        if warm_up > 2:
            call_secs = max(self._secs(number=warm_up, repeat=1)[0], 1e-9)
        best_secs, slow = order["best_secs"], False
        if best_secs is not None and not order["flush_cache"]:
            slow = call_secs >= SLOW_FACTOR * best_secs
        if slow:
            run_secs = self._secs(number=math.ceil(SLOW_REPEAT_SECS / call_secs), repeat=order["repeat"])
            slow = min(run_secs) >= SLOW_FACTOR * best_secs
        if not slow:
            number = 1 if order["flush_cache"] else math.ceil(order["min_repeat_secs"] / call_secs)
            flush = "cache_flush_cpu_non_first_arg" if order["flush_cache"] else ""
            run_secs = self._secs(number=number, repeat=order["repeat"], f_preproc=flush)
        if not finite(self._arguments[-1]):
            return {"event": "failed", "error": "The kernel's output holds NaN or infinity."}
        return {"event": "measured", "run_secs": run_secs, "slow": slow, "peak_rss_bytes": None}

    def check(self, order: dict[str, Any]) -> dict[str, Any]:
        self._module["main"](*self._arguments)
        return compared(self._arguments[-1], order)

    def _secs(self, *, number: int, repeat: int, f_preproc: str = "") -> list[float]:
        timer = self._module.time_evaluator(
            "main", self._device, number=number, repeat=repeat, f_preproc=f_preproc
        )
        return [float(secs) for secs in timer(*self._arguments).results]
