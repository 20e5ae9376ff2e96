"""TVM's RPC tracker, asked with time-outs: what answers at an address may be anything."""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tuneassist.errors import MachineError
from tuneassist.tvm_api import rpc_base

ANSWER_SECS = 5.0
"""How long a tracker may take to answer."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a tracker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Offer:
    """A device that the tracker gives, and the key that opens a session with it once."""

    host: str
    port: int
    matchkey: str

    @property
    def device(self) -> str:
        """The device's name: where it listens."""
        return str(Address(self.host, self.port))


@dataclass(frozen=True, slots=True)
class Summary:
    """What a tracker knows, by key."""

    devices: dict[str, list[str]]
    """Names of the registered devices."""
    free: dict[str, int]
    waiting: dict[str, int]
    """Requests in the queue."""


class TrackerError(MachineError):
    """The tracker can't be asked."""


class Tracker:
    """A connection to a tracker.

    Args:
        address: Where it listens.
        timeout_secs: For the connection and every answer but that to `request`.

    Raises:
        TrackerError: Nothing answers there, or it is no tracker.
    """

    def __init__(self, address: Address, *, timeout_secs: float = ANSWER_SECS) -> None:
        self._address = address
        self._timeout_secs = timeout_secs
        try:
            self._sock = socket.create_connection((address.host, address.port), timeout=timeout_secs)
        except OSError as error:
            raise TrackerError(
                f"No RPC tracker answers at {address}: {error.strerror or error}.",
                remedy="Check the address, or start one: python -m tvm.exec.rpc_tracker "
                f"--host {address.host} --port {address.port} --port-end {address.port + 1}",
            ) from error
        try:
            self._shake_hands()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a request that waits is forgotten by the tracker."""
        self._sock.close()

    def summary(self) -> Summary:
        """What the tracker knows now.

        Raises:
            TrackerError: It does not answer.
        """
        code, value = self._ask([rpc_base.TrackerCode.SUMMARY])
        if code != rpc_base.TrackerCode.SUCCESS:
            raise self._strange(f"the code {code}")
        devices: dict[str, list[str]] = {}
        for server in value["server_info"]:
            host, port = server["addr"]
            devices.setdefault(server["key"].partition(":")[2], []).append(str(Address(host, port)))
        queues = value["queue_info"]
        return Summary(
            {key: sorted(names) for key, names in sorted(devices.items())},
            Counter({key: int(queue["free"]) for key, queue in queues.items()}),
            Counter({key: int(queue["pending"]) for key, queue in queues.items()}),
        )

    def round_trip_secs(self) -> float:
        """Time of a question and its answer.

        Raises:
            TrackerError: It does not answer.
        """
        started = time.perf_counter()
        self._ask([rpc_base.TrackerCode.PING])
        return time.perf_counter() - started

    def request(self, key: str, *, timeout_secs: float | None = None) -> Offer:
        """Wait in the queue for a free device of a key.

        Raises:
            TrackerError: The tracker is gone, or the time is over.
        """
        self._sock.settimeout(timeout_secs)
        try:
            code, value = self._ask([rpc_base.TrackerCode.REQUEST, key, "", 1])
        finally:
            self._sock.settimeout(self._timeout_secs)
        if code != rpc_base.TrackerCode.SUCCESS:
            raise self._strange(f"the code {code}")
        return Offer(*value)

    def _ask(self, message: list[Any]) -> Any:
        try:
            rpc_base.sendjson(self._sock, message)
            return rpc_base.recvjson(self._sock)
        except OSError as error:
            raise TrackerError(
                f"The RPC tracker at {self._address} does not answer any more: {error}.",
                remedy="Start it again; devices register with it by themselves.",
            ) from error

    def _shake_hands(self) -> None:
        magic = struct.pack("<i", rpc_base.RPC_TRACKER_MAGIC)
        try:
            self._sock.sendall(magic)
            answer = rpc_base.recvall(self._sock, len(magic))
        except TimeoutError:
            # An HTTP server waits for the rest of a line.
            raise self._strange(f"nothing within {self._timeout_secs:.0f} s") from None
        except OSError as error:
            raise self._strange(f"by closing the connection ({error})") from error
        if answer != magic:
            raise self._strange(repr(answer))

    def _strange(self, answer: str) -> TrackerError:
        return TrackerError(
            f"What listens at {self._address} is no RPC tracker: it answers with {answer}.",
            remedy="Name the tracker's own port (9190 unless it was told otherwise), not that of a device "
            "(9090 and up) or of another service.",
        )
