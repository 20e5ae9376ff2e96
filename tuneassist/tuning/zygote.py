"""The zygote: loads TVM once, never runs a kernel, and forks one process per candidate or device session.

Started by the engine as `python -m tuneassist.tuning.zygote FD KIND`. It ends, and takes every
candidate with it, when the engine's end of the socket closes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tuneassist.processes import die_with_parent
from tuneassist.tuning.inputs import load_inputs
from tuneassist.tuning.wire import WireClosedError, receive, send


def main() -> None:
    """Serve the engine until it is gone."""
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    engine = socket.socket(fileno=int(sys.argv[1]))
    from tuneassist.tuning import candidate, device
    from tuneassist.tvm_api import load_tensor_intrinsics

    load_tensor_intrinsics(sys.argv[2])
    _warm_up(sys.argv[2])
    gc.collect()
    gc.freeze()
    send(engine, {"event": "ready"})
    _Zygote(engine, {"build": candidate.run, "device": device.run}).serve()


def _warm_up(kind: str) -> None:
    """Compile, but never run, a small kernel: what the first build initialises is then inherited."""
    from tuneassist.tvm_api import Target, te, tvm

    if kind != "llvm":
        return
    a = te.placeholder((16,), name="A")
    function = te.create_prim_func([a, te.compute((16,), lambda i: a[i] * 2.0, name="B")])
    executable = tvm.compile(function, target=Target({"kind": "llvm", "num-cores": 1}))
    executable.jit()["main"]


_Task = Callable[[socket.socket, dict[str, Any], list[np.ndarray]], None]
"""What a fork does: it serves its socket, beginning with the order that came over it."""


class _Zygote:
    def __init__(self, engine: socket.socket, tasks: dict[str, _Task]) -> None:
        self._engine = engine
        self._tasks = tasks
        self._children: dict[int, str] = {}
        self._inputs: list[np.ndarray] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        engine_fd = self._engine.fileno()
        try:
            while True:
                ready, _, _ = select.select([engine_fd, self._wake_read], [], [])
                if self._wake_read in ready:
                    os.read(self._wake_read, 4096)
                    self._reap()
                if engine_fd in ready:
                    request, fds = receive(self._engine, max_fds=2)
                    self._handle(request, fds)
        except WireClosedError:
            for pid in self._children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _handle(self, request: dict[str, Any], fds: list[int]) -> None:
        if request["event"] == "inputs":
            self._inputs = load_inputs(request["path"])
        elif request["event"] == "kill":
            # Only the parent knows that the pid still is its child's: reaped ones are no longer listed.
            for pid, name in self._children.items():
                if name == request["name"]:
                    os.kill(pid, signal.SIGKILL)
        elif request["event"] == "fork":
            self._fork(request["name"], *fds)

    def _fork(self, name: str, sock_fd: int, log_fd: int) -> None:
        pid = os.fork()
        if pid:
            self._children[pid] = name
            os.close(sock_fd)
            os.close(log_fd)
            return
        # In the child: whatever happens, never return into the zygote's loop.
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._engine.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            os.dup2(log_fd, 1)
            os.dup2(log_fd, 2)
            with contextlib.suppress(WireClosedError):
                sock = socket.socket(fileno=sock_fd)
                order, _ = receive(sock)
                self._tasks[order["event"]](sock, order, self._inputs)
        finally:
            os._exit(0)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                name = self._children.pop(pid)
                code = os.waitstatus_to_exitcode(status)
                send(self._engine, {"event": "ended", "name": name, "exit_code": code})


if __name__ == "__main__":
    main()
