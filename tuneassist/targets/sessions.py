"""A session with a device behind an RPC tracker. Every call may hang: use it in a process of its own."""

from __future__ import annotations

import os
from typing import Any

from tuneassist.targets.tracker import Offer
from tuneassist.tvm_api import rpc

DIED = "the device's session was killed by"
"""What `tuneassist serve` answers when a kernel kills the session's process, with the signal's name."""


class SessionLostError(Exception):
    """The device is gone, does not let us in, or speaks another version of the protocol."""


class Session:
    """A device that is ours until the session is closed.

    Args:
        offer: From the tracker.
        timeout_secs: After which the device ends the session by itself.

    Raises:
        SessionLostError: It does not let us in.
    """

    def __init__(self, offer: Offer, *, timeout_secs: float) -> None:
        try:
            self._session = rpc.connect(offer.host, offer.port, offer.matchkey, session_timeout=timeout_secs)
        except Exception as error:
            raise SessionLostError(f"{offer.device} does not open a session: {_last_line(error)}") from error

    def facts(self) -> dict[str, Any]:
        """What the device says of itself: `cpu` (LLVM's name, empty if it has no LLVM) and `threads`."""
        return {
            "cpu": str(self._asked("tvm.codegen.llvm.GetHostCPUName") or ""),
            "triple": str(self._asked("tvm.codegen.llvm.GetDefaultTargetTriple") or ""),
            "threads": int(self._asked("runtime.NumThreads") or 0),
        }

    def alive(self) -> bool:
        """Whether the device still answers."""
        try:
            self._session.get_function("tvm.rpc.server.workpath")
        except Exception:
            return False
        return True

    def device(self, kind: str) -> Any:
        """The device of a target kind."""
        return self._session.device("cpu" if kind == "llvm" else kind, 0)

    def load(self, path: str) -> Any:
        """Send an exported kernel and load it there."""
        self._session.upload(path)
        return self._session.load_module(os.path.basename(path))

    def _asked(self, function: str) -> Any:
        """The answer of a global function of the device; None where it has none of that name."""
        try:
            return self._session.get_function(function)()
        except Exception as error:
            if self.alive():
                return None
            raise SessionLostError(f"The device does not answer: {_last_line(error)}") from error


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
