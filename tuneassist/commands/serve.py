"""`tuneassist serve`: offer this machine to an RPC tracker."""

from __future__ import annotations

import os
import signal

import click

from tuneassist.commands._options import parse_address
from tuneassist.errors import UsageError
from tuneassist.targets.cores import usable_cores

_PORTS = 100


@click.command("serve")
@click.option("--key", required=True, metavar="KEY", help="What kind of device this is, such as pi4.")
@click.option("--tracker", required=True, metavar="HOST:PORT", help="The tracker to register with.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=9091, show_default=True, type=click.IntRange(1, 65535 - _PORTS),
    help=f"The first port to try; {_PORTS} are tried.",
)  # fmt: skip
@click.option(
    "--report-host",
    metavar="ADDRESS",
    help="The address under which clients reach this machine. [default: what the tracker sees]",
)
def command(key: str, tracker: str, host: str, port: int, report_host: str | None) -> None:
    """Offer this machine to an RPC tracker as a device to measure on, until Ctrl-C.

    TVM's RPC server runs whatever a client sends, and asks nobody for a password. It therefore listens on
    loopback unless --host says otherwise. To offer a device to another machine, forward both ports over
    SSH from the device:

    \b
        ssh -N -L 9190:127.0.0.1:9190 -R 9091:127.0.0.1:9091 YOU@WHERE-THE-TRACKER-IS &
        tuneassist serve --key pi4 --tracker 127.0.0.1:9190 --port 9091

    and tune there with --target 'rpc:pi4@127.0.0.1:9190/{"kind": "llvm", ...}'. A tracker is started with
    python -m tvm.exec.rpc_tracker --host 127.0.0.1 --port 9190 --port-end 9191.
    """
    host_and_port = parse_address(tracker)
    if any(character in key for character in "@/ \t\n:") or not key:
        raise UsageError(
            f"The key {key!r} can't be named in a target.", remedy="Leave out @, /, : and spaces."
        )
    _leave_on_signals()
    # As tuneassist measures on its own machine; TVM itself takes half of the cores, and binds to the first.
    os.environ.setdefault("TVM_NUM_THREADS", str(len(usable_cores())))
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    from tuneassist.targets.server import serve
    from tuneassist.targets.tracker import Address, Tracker

    address = Address(*host_and_port)
    with Tracker(address):
        pass  # Better said now than after a minute of tries.
    click.echo(
        "Warning: whoever reaches this server can run any program here; there is no authentication.", err=True
    )
    if host not in ("127.0.0.1", "::1", "localhost"):
        click.echo(f"It listens on {host}, which other machines may reach: see `serve --help`.", err=True)
    click.echo(f"Offering this machine as {key!r} to {address}; Ctrl-C ends it.", err=True)
    serve(key, address, host=host, ports=range(port, port + _PORTS), report_host=report_host)


def _leave_on_signals() -> None:
    """End at once, whatever TVM's threads do; sessions end with this process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os._exit(130 if number == signal.SIGINT else 0))
