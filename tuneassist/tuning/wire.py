"""Length-prefixed JSON over a Unix socket: how engine, zygote and candidate processes talk."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_HEADER = struct.Struct("!I")


class WireClosedError(Exception):
    """The other end is gone."""


def send(sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message, with file descriptors where given.

    Raises:
        WireClosedError: The other end is gone.
    """
    body = json.dumps(message).encode()
    frame = _HEADER.pack(len(body)) + body
    try:
        sent = socket.send_fds(sock, [frame], list(fds)) if fds else 0
        sock.sendall(frame[sent:])
    except OSError as error:
        raise WireClosedError(str(error)) from error


def receive(sock: socket.socket, max_fds: int = 0) -> tuple[dict[str, Any], list[int]]:
    """Receive one message and the file descriptors that came with it.

    Raises:
        WireClosedError: The other end is gone, at a message border or in the middle of one.
    """
    try:
        fds: list[int] = []
        if max_fds:
            header, fds, _, _ = socket.recv_fds(sock, _HEADER.size, max_fds)
        else:
            header = sock.recv(_HEADER.size)
        header += _exactly(sock, _HEADER.size - len(header)) if header else b""
        if not header:
            raise WireClosedError("closed")
        body = _exactly(sock, _HEADER.unpack(header)[0])
    except OSError as error:
        raise WireClosedError(str(error)) from error
    message: dict[str, Any] = json.loads(body)
    return message, fds


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = sock.recv(min(size, 1 << 20))
        if not part:
            raise WireClosedError("closed in the middle of a message")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
