"""Devices behind an RPC tracker: whether there are any, and what they say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.targets.probe import ProbeError, ask
from tuneassist.targets.sessions import Session
from tuneassist.targets.spec import Remote
from tuneassist.targets.tracker import Address, Tracker

_SESSION_SECS = 20.0


def check_remote(remote: Remote) -> str:
    """How many devices of the key there are, in words.

    Raises:
        MachineError: The tracker does not answer, or knows none of that key.
    """
    address = Address(remote.host, remote.port)
    with Tracker(address) as tracker:
        summary = tracker.summary()
    found = summary.devices.get(remote.key, [])
    if not found:
        keys = ", ".join(summary.devices) or "none"
        raise MachineError(
            f"The RPC tracker at {address} has no device with the key {remote.key!r}; it has: {keys}.",
            remedy=f"Start one on the device: tuneassist serve --key {remote.key} --tracker {address}",
        )
    return f"{len(found)} devices, {summary.free.get(remote.key, 0)} of them free"


def device_threads(remote: Remote) -> int:
    """The number of threads that a device of the key runs kernels with.

    Raises:
        MachineError: None is free soon, or it does not answer.
    """
    argument = {"host": remote.host, "port": remote.port, "key": remote.key}
    try:
        (facts,) = ask("remote:facts", argument, timeout_secs=2 * _SESSION_SECS)
    except ProbeError as error:
        raise MachineError(
            f"No device with the key {remote.key!r} could be asked for its cores: {error}",
            remedy='Name them in the target: "num-cores": N.',
        ) from error
    return int(facts["threads"]) or 1


def facts(host: str, port: int, key: str) -> Iterator[dict[str, Any]]:
    """What a free device says of itself; an experiment for a probe process, since it may hang."""
    with Tracker(Address(host, port)) as tracker:
        offer = tracker.request(key, timeout_secs=_SESSION_SECS)
    yield Session(offer, timeout_secs=_SESSION_SECS).facts()
