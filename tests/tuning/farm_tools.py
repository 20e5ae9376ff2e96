"""A tracker and devices on loopback, which end with the test, however that ends."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tuneassist.errors import MachineError
from tuneassist.targets.tracker import Address, Summary, Tracker

KEY = "test-device"
_MORTAL = "import sys; from tuneassist.processes import die_with_parent; die_with_parent(); "
_TRACKER = (
    _MORTAL + "import tuneassist.tvm_api; from tvm.rpc.tracker import PopenTrackerServerState; "
    "port = int(sys.argv[1]); PopenTrackerServerState('127.0.0.1', port, port + 1).thread.join()"
)
_DEVICE = _MORTAL + "from tuneassist.__main__ import main; sys.exit(main())"
_START_SECS = 150.0


class Farm:
    """A tracker with devices, each a process that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.address = Address("127.0.0.1", free_port())
        self._log = (folder / "farm.log").open("ab")
        self._tracker = self._start(_TRACKER, str(self.address.port))
        self._devices: dict[int, subprocess.Popen[bytes]] = {}
        self._wait(lambda summary: True)

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports of the devices that run."""
        return tuple(self._devices)

    def add(self, count: int) -> list[int]:
        """Start so many devices, wait until they are registered, and return their ports."""
        ports = [free_port() for _ in range(count)]
        for port in ports:
            self.start(port)
        self.wait_for(len(self._devices))
        return ports

    def start(self, port: int) -> None:
        """Start a device, or start it again."""
        self._devices[port] = self._start(
            _DEVICE, "serve", "--key", KEY, "--tracker", str(self.address), "--port", str(port)
        )

    def kill(self, port: int) -> None:
        """Kill a device with everything that it does."""
        process = self._devices.pop(port)
        process.kill()
        process.wait()

    def wait_for(self, devices: int) -> None:
        """Wait until so many devices are registered."""
        self._wait(lambda summary: len(summary.devices.get(KEY, [])) == devices)

    def close(self) -> None:
        """End everything."""
        for process in (*self._devices.values(), self._tracker):
            process.kill()
            process.wait()
        self._log.close()

    def _start(self, code: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=self._log, stderr=self._log)

    def _wait(self, done: Callable[[Summary], bool]) -> None:
        deadline = time.monotonic() + _START_SECS
        while True:
            try:
                with Tracker(self.address) as tracker:
                    if done(tracker.summary()):
                        return
            except MachineError:
                if time.monotonic() > deadline:
                    raise
            assert time.monotonic() < deadline, f"the farm did not start in {_START_SECS:.0f} s"
            time.sleep(0.1)


@contextmanager
def farm_of(devices: int, folder: Path) -> Iterator[Farm]:
    """A farm with so many devices, which ends with the block."""
    farm = Farm(folder)
    try:
        farm.add(devices)
        yield farm
    finally:
        farm.close()


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
