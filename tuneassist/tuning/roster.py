"""What a run knows of the devices behind a tracker: which may be used, which rest, how they compare."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuneassist.errors import MachineError
from tuneassist.targets.tracker import Address, Tracker, TrackerError

_ASK_EVERY_SECS = 2.0
_REST_SECS = (5.0, 60.0)
"""How long a device that failed is left alone, the first time and at most."""
_UNEQUAL = 1.1

Say = Callable[[str, str], None]
"""Tells the user something; the first argument is `info`, `warning` or `error`."""


@dataclass(slots=True)
class _Known:
    """A device that was met."""

    rest_secs: float = _REST_SECS[0]
    rests_until: float = 0.0
    checked: bool = False
    reference_secs: float | None = None
    refused: str = ""
    """Why it can't run this run's kernels at all."""


class Roster:
    """The devices of one key.

    Args:
        address: The tracker.
        key: The devices' key.
        say: Tells the user what happens to devices.
    """

    def __init__(self, address: Address, key: str, say: Say) -> None:
        self.address = address
        self.key = key
        self._say = say
        self._known: dict[str, _Known] = {}
        self._registered: list[str] = []
        self._trouble = ""
        self._asked_at = -_ASK_EVERY_SECS

    @property
    def where(self) -> str:
        """The key and the tracker, for people."""
        return f"key {self.key!r} at the tracker {self.address}"

    def refresh(self) -> None:
        """Ask the tracker which devices there are, if that was not done just now.

        Raises:
            MachineError: No device is left that can run this run's kernels, and others can't be hoped for.
        """
        if time.monotonic() < self._asked_at + _ASK_EVERY_SECS:
            return
        try:
            with Tracker(self.address) as tracker:
                self._registered = tracker.summary().devices.get(self.key, [])
            self._trouble = ""
        except TrackerError as error:
            self._registered, self._trouble = [], error.message
        self._asked_at = time.monotonic()
        refused = {name: self._of(name).refused for name in self._registered}
        if refused and all(refused.values()):
            name, why = next(iter(refused.items()))
            raise MachineError(
                f"No device with the {self.where} can run this target's kernels: {name}: {why}.",
                remedy="Name the device's own CPU in the target: `tuneassist devices "
                f"{self.address}` shows what each says of itself.",
            )

    def usable(self) -> int:
        """How many devices may be asked for."""
        return sum(not self.rests(name) for name in self._registered)

    def why_none(self) -> str:
        """Why no device may be asked for."""
        if self._trouble:
            return self._trouble
        if not self._registered:
            return f"None with the {self.where} is registered."
        if not self.usable():
            return f"All with the {self.where} are set aside: {', '.join(self._registered)}."
        return f"{len(self._registered)} with the {self.where} are registered, and none becomes free."

    def rests(self, name: str) -> bool:
        """Whether the device is set aside."""
        known = self._of(name)
        return bool(known.refused) or time.monotonic() < known.rests_until

    def set_aside(self, name: str, why: str) -> None:
        """Leave a device alone for a while, the longer the more often; it is then checked again."""
        known = self._of(name)
        known.checked = False
        known.rests_until = time.monotonic() + known.rest_secs
        self._say("warning", f"Device {name} is set aside for {known.rest_secs:.0f} s: {why}")
        known.rest_secs = min(2 * known.rest_secs, _REST_SECS[1])

    def refuse(self, name: str, why: str) -> None:
        """Never use a device in this run."""
        self._of(name).refused = why
        self._say("warning", f"Device {name} is not used: {why}")

    def checked(self, name: str) -> bool:
        """Whether the device has run the reference kernel since it was last set aside."""
        return self._of(name).checked

    def admit(self, name: str, run_secs: Sequence[float], says: str) -> None:
        """Take in that the device ran the reference kernel, and tell of unequal devices.

        Args:
            name: The device.
            run_secs: Repeats of the reference kernel; empty where there is none for the target.
            says: What the device says of itself.
        """
        known = self._of(name)
        new = known.reference_secs is None
        known.checked = True
        known.rest_secs = _REST_SECS[0]
        if not run_secs:
            return
        known.reference_secs = statistics.median(run_secs)
        if not new:
            return
        self._say(
            "info", f"Device {name} ({says}): {known.reference_secs * 1e3:.3g} ms for the reference kernel."
        )
        secs = {other: at.reference_secs for other, at in self._known.items() if at.reference_secs}
        fastest, slowest = min(secs, key=secs.__getitem__), max(secs, key=secs.__getitem__)
        if name in (fastest, slowest) and secs[slowest] > _UNEQUAL * secs[fastest]:
            self._say(
                "warning",
                f"The devices are unequal: the reference kernel takes {secs[slowest] / secs[fastest]:.2f} "
                f"times as long on {slowest} as on {fastest}, so times from different devices do not compare "
                "well (each trial says which device measured it).",
            )

    def _of(self, name: str) -> _Known:
        return self._known.setdefault(name, _Known())
