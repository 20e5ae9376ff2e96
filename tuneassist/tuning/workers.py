"""The engine's side of the zygote: one object per forked candidate process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.processes import module_command
from tuneassist.targets.cuda import compile_environment
from tuneassist.tuning.wire import WireClosedError, receive, send

_LOG_CHARS = 2000
_READY_TIMEOUT_SECS = 120.0
_END_TIMEOUT_SECS = 5.0


class ZygoteLostError(Exception):
    """The zygote died: its candidates died with it and a new one is needed."""


@dataclass(slots=True)
class Worker:
    """A candidate process, from fork to end."""

    name: str
    sock: socket.socket
    log_fd: int
    deadline: float = float("inf")
    ended: bool = field(default=False)

    def ask(self, message: dict[str, Any], *, timeout_secs: float) -> None:
        """Send an order; the answer is due within `timeout_secs`."""
        self.deadline = time.monotonic() + timeout_secs
        with contextlib.suppress(WireClosedError):
            # A dead process shows as a closed socket on the answer, where its log is at hand.
            send(self.sock, message)

    def log_tail(self) -> str:
        """The last that the process wrote to its stdout and stderr."""
        size = os.fstat(self.log_fd).st_size
        text = os.pread(self.log_fd, _LOG_CHARS, max(0, size - _LOG_CHARS))
        return text.decode(errors="replace").strip()

    def close(self) -> None:
        """Drop the socket (an idle process then ends) and the log."""
        if not self.ended:
            self.ended = True
            self.sock.close()
            os.close(self.log_fd)


class Workers:
    """Starts and stops the zygote, and forks candidate processes from it.

    Args:
        target_kind: TVM's target kind, which decides what the zygote loads.
        cores: CPU ids that candidates may use.
        log: File that takes what the zygote prints.
    """

    def __init__(self, target_kind: str, cores: tuple[int, ...], log: Path) -> None:
        self._kind = target_kind
        self._cores = cores
        self._log = log
        self._count = 0
        self._inputs: Path | None = None
        self._ended: dict[str, int] = {}
        self._zygote: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None

    @property
    def inputs(self) -> Path | None:
        """The file of inputs that candidates get."""
        return self._inputs

    def start(self) -> None:
        """Start the zygote; `wait_ready` returns when it has loaded TVM."""
        ours, theirs = socket.socketpair()
        environment = {
            **os.environ,
            **compile_environment(),
            "TVM_NUM_THREADS": str(len(self._cores)),
            # TVM would bind its threads to the first cores of the machine, allowed to us or not.
            "TVM_BIND_THREADS": "0",
            "OMP_NUM_THREADS": "1",
        }
        with self._log.open("ab") as log:
            self._zygote = subprocess.Popen(
                module_command("tuneassist.tuning.zygote", str(theirs.fileno()), self._kind),
                pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        theirs.close()
        self._sock = ours

    def wait_ready(self) -> None:
        """Wait until the zygote has loaded TVM.

        Raises:
            MachineError: It died or took too long.
        """
        sock = self._socket()
        sock.settimeout(_READY_TIMEOUT_SECS)
        try:
            receive(sock)
        except WireClosedError as error:
            raise MachineError(
                f"The process that loads TVM for the candidates did not start ({error}).",
                remedy=f"Run `tuneassist doctor`; what it printed is in {self._log}.",
            ) from error
        sock.settimeout(None)
        if self._inputs is not None:
            self.set_inputs(self._inputs)

    def restart(self) -> None:
        """Start a new zygote in place of one that died, with the same inputs."""
        self.stop()
        self.start()
        self.wait_ready()

    def set_inputs(self, path: Path) -> None:
        """Have candidates forked from now on use the inputs in that file (see `inputs.py`)."""
        self._inputs = path
        self._tell({"event": "inputs", "path": str(path)})

    def fork(self, order: dict[str, Any], *, timeout_secs: float) -> Worker:
        """Fork a candidate process and give it its `build` order."""
        self._count += 1
        name = str(self._count)
        ours, theirs = socket.socketpair()
        log_fd = os.memfd_create(f"candidate-{name}")
        try:
            self._tell({"event": "fork", "name": name}, (theirs.fileno(), log_fd))
        except ZygoteLostError:
            ours.close()
            os.close(log_fd)
            raise
        finally:
            theirs.close()
        worker = Worker(name, ours, log_fd)
        worker.ask(order, timeout_secs=timeout_secs)
        return worker

    def kill(self, worker: Worker) -> None:
        """Kill the candidate's process at once."""
        with contextlib.suppress(ZygoteLostError):
            self._tell({"event": "kill", "name": worker.name})

    def cause_of_death(self, worker: Worker) -> str:
        """Why a process whose socket closed ended, with the end of its log."""
        deadline = time.monotonic() + _END_TIMEOUT_SECS
        while worker.name not in self._ended and time.monotonic() < deadline:
            self._collect(0.1)
        code = self._ended.pop(worker.name, None)
        if code is None:
            cause = "The process ended without an answer"
        elif code < 0:
            name = signal.Signals(-code).name
            hint = " (killed from outside; perhaps the machine is out of memory)" if -code == 9 else ""
            cause = f"Killed by {name}{hint}"
        else:
            cause = f"The process ended with exit code {code} and no answer"
        log = worker.log_tail()
        if "out of memory" in log.lower() or "bad_alloc" in log:
            cause = f"Out of memory: {cause[0].lower()}{cause[1:]}"
        return f"{cause}: {log}" if log else cause

    def stop(self) -> None:
        """End the zygote and with it every candidate; safe to call twice."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote.wait()
            self._zygote = None
        self._ended.clear()

    def forget_ended(self) -> None:
        """Take in what the zygote reported of processes that nobody asks about."""
        self._collect(0.0)
        self._ended.clear()

    def _collect(self, timeout_secs: float) -> None:
        sock = self._socket()
        while select.select([sock], [], [], timeout_secs)[0]:
            try:
                message, _ = receive(sock)
            except WireClosedError as error:
                raise ZygoteLostError(str(error)) from error
            self._ended[message["name"]] = message["exit_code"]
            timeout_secs = 0.0

    def _tell(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        try:
            send(self._socket(), message, fds)
        except WireClosedError as error:
            raise ZygoteLostError(str(error)) from error

    def _socket(self) -> socket.socket:
        if self._sock is None:
            raise ZygoteLostError("not started")
        return self._sock
