"""`tuneassist devices`: what a tracker offers."""

from __future__ import annotations

from typing import Any

import click

from tuneassist.commands._options import json_option, parse_address, print_json
from tuneassist.commands.targets import print_rows
from tuneassist.errors import MachineError, TuneAssistError, UsageError

_TIMEOUT_SECS = 600.0
_UNEQUAL = 1.1


@click.command("devices")
@click.argument("tracker", metavar="TRACKER")
@click.option(
    "--target",
    metavar="SPEC",
    help="What to compile the reference kernel for: a tag or a JSON object. [default: what each device "
    "says it is]",
)
@json_option
def command(tracker: str, target: str | None, as_json: bool) -> None:
    """Look at the devices behind the RPC tracker at TRACKER (HOST:PORT).

    Each free device runs the same matrix product; its time, and how much it varies, say whether devices of
    one key are equal. Devices that somebody uses are only named. `tuneassist serve` offers a machine as a
    device; --target 'rpc:KEY@HOST:PORT/TARGET' tunes on all of a key at once.
    """
    try:
        found = _survey(tracker, target)
    except TuneAssistError as error:
        if as_json:
            print_json({"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code})
        raise
    if as_json:
        print_json(found)
    else:
        _print(found)


def _survey(tracker: str, target: str | None) -> dict[str, Any]:
    from tuneassist.targets import catalogue
    from tuneassist.targets.probe import ProbeError, ask
    from tuneassist.targets.spec import Native, Remote, parse_target
    from tuneassist.targets.tracker import Address, Tracker

    host, port = parse_address(tracker)
    config = None
    if target is not None:
        parsed = parse_target(target)
        if isinstance(parsed, Native | Remote):
            raise UsageError(
                f"{target!r} does not say what a device is.", remedy="Name a tag or a JSON object."
            )
        config = catalogue.configuration(parsed)
        catalogue.check_available(str(config["kind"]))
    with Tracker(Address(host, port)):
        pass  # What is wrong with the tracker is said in its own words.
    argument = {"host": host, "port": port, "target": config}
    try:
        overview, *devices = ask("survey:devices", argument, timeout_secs=_TIMEOUT_SECS)
    except ProbeError as error:
        raise MachineError(
            f"The devices of {tracker} could not be looked at: {error}",
            remedy="Try again; `tuneassist doctor` checks this machine.",
        ) from error
    for key in overview["keys"]:
        key["devices"] = [
            {name: value for name, value in device.items() if name != "key"}
            for device in devices
            if device["key"] == key["key"]
        ]
    return {"tracker": tracker, **overview}


def _print(found: dict[str, Any]) -> None:
    rows = []
    for key in found["keys"]:
        for device in key["devices"]:
            secs, noise = device.get("reference_secs"), device.get("noise")
            rows.append(
                (
                    key["key"],
                    device["device"],
                    "free" if device["free"] else "in use",
                    device.get("cpu", ""),
                    str(device.get("threads", "")),
                    _millis(device.get("round_trip_secs")),
                    _millis(secs),
                    "" if noise is None else f"{noise:.1%}",
                    device.get("error") or ("" if device.get("correct", True) else "its output is wrong"),
                )
            )
    print_rows(("key", "device", "", "CPU", "threads", "ms away", "ms reference", "noise", ""), rows)
    click.echo(f"\nTracker {found['tracker']}: {_millis(found['round_trip_secs'])} ms away.", err=True)
    for key in found["keys"]:
        secs = [device["reference_secs"] for device in key["devices"] if device.get("reference_secs")]
        click.echo(
            f"{key['key']}: {key['total']} devices, {key['free']} free, {key['waiting']} requests waiting.",
            err=True,
        )
        if secs and max(secs) > _UNEQUAL * min(secs):
            click.echo(
                f"Devices of {key['key']} are unequal: the slowest takes {max(secs) / min(secs):.2f} times "
                "as long as the fastest.",
                err=True,
            )


def _millis(secs: float | None) -> str:
    return "" if secs is None else f"{secs * 1e3:.3g}"
