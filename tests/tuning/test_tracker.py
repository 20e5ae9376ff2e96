"""What listens at a tracker's address may be anything, or nothing."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator

import pytest
from farm_tools import free_port

from tuneassist.targets.tracker import Address, Tracker, TrackerError

pytestmark = pytest.mark.tvm


@pytest.fixture
def http_port() -> Iterator[int]:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_nothing_listens_there() -> None:
    port = free_port()
    with pytest.raises(TrackerError, match=f"No RPC tracker answers at 127.0.0.1:{port}"):
        Tracker(Address("127.0.0.1", port))


def test_a_web_server_is_no_tracker(http_port: int) -> None:
    with pytest.raises(TrackerError, match="is no RPC tracker"):
        Tracker(Address("127.0.0.1", http_port), timeout_secs=1.0)


def test_a_tracker_that_hangs_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(TrackerError, match="nothing within 1 s"):
            Tracker(address, timeout_secs=1.0)


def test_addresses_read_as_they_are_written() -> None:
    assert str(Address("::1", 9190)) == "[::1]:9190"
    assert str(Address("pi.local", 9190)) == "pi.local:9190"
