"""TVM's RPC server, made to outlive what runs in it.

Two repairs of `tvm.rpc.server`, made at run time; on a TVM that needs neither they change nothing that a
client sees:

1. A session whose process dies (a kernel crashes, a client is cut off) ends the thread that accepts
   sessions, so that the device is lost until somebody restarts it. Here the client is told what killed the
   session, and the server goes on.
2. Sessions are forked from this process and outlive it; here they die with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import socket
import threading
import time
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.processes import die_with_parent
from tuneassist.targets.sessions import DIED
from tuneassist.targets.tracker import Address
from tuneassist.tvm_api import rpc

_server: Any = rpc.server
_RESTART_SECS = 5.0


def serve(key: str, tracker: Address, *, host: str, ports: range, report_host: str | None) -> None:
    """Offer this machine to a tracker until the process is ended; it registers again if the tracker was away.

    Args:
        key: What kind of device it is.
        tracker: Where to register.
        host: The address to listen on.
        ports: The first free one of them is listened on.
        report_host: The address under which clients reach this machine; None: the one the tracker sees.

    Raises:
        MachineError: No port is free, or the address is not this machine's.
    """
    _repair()
    while True:
        try:
            state = _server.PopenRPCServerState(
                host, ports.start, ports.stop, tracker_addr=(tracker.host, tracker.port), key=key,
                custom_addr=report_host,
            )  # fmt: skip
        except (ValueError, OSError) as error:
            raise MachineError(
                f"It can not listen on {host}, ports {ports.start} to {ports.stop - 1}: {error}.",
                remedy="Name other ports (--port), or an address of this machine (--host).",
            ) from error
        state.thread.join()
        # The thread gives up after a minute without a tracker.
        state.sock.close()
        time.sleep(_RESTART_SECS)


def _repair() -> None:
    serving, serve_loop = _server._serving, _server._serve_loop
    folder = os.getcwd()
    threading.excepthook = lambda failure: _server.logger.warning("%s", failure.exc_value)

    def careful_serving(sock: socket.socket, addr: Any, opts: dict[str, Any], load_library: Any) -> None:
        try:
            serving(sock, addr, opts, load_library)
        except RuntimeError as error:
            cause = _cause(str(error))
            _server.logger.warning("session of %s: %s", addr, cause)
            with contextlib.suppress(Exception):
                _server._ffi_api.ReturnException(sock.fileno(), f"SessionDiedError: {cause}")
            with contextlib.suppress(OSError):
                sock.close()
        finally:
            # Else it stays in the session's folder, which is gone.
            os.chdir(folder)

    def mortal_serve_loop(sock: socket.socket, load_library: Any, work_path: Any) -> None:
        die_with_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A kernel that hangs is ended by SIGTERM: no handler of this process may keep that.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        logging.disable()
        try:
            serve_loop(sock, load_library, work_path)
        except Exception as error:
            # A client that was cut off; the next session is another process.
            _server.logger.warning("%s", str(error).strip().splitlines()[-1:])

    _server._serving = careful_serving
    _server._serve_loop = mortal_serve_loop


def _cause(text: str) -> str:
    """What TVM's message (`... with error code -4`) says, with the signal's name."""
    code = text.rpartition(" ")[2]
    if code.startswith("-") and code[1:].isdigit():
        with contextlib.suppress(ValueError):
            return f"{DIED} {signal.Signals(int(code[1:])).name}"
    return f"{DIED} {text}"
