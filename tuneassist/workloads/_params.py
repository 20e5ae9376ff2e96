"""Parameters of operator specs: what each accepts, and the values that a spec gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

Value = int | str

LARGEST = 2**31 - 1
"""TVM indexes tensors with 32-bit integers, so no extent may be larger."""


class Values(SimpleNamespace):
    """The value of every parameter of one operator, as attributes (`values.ci`)."""

    def as_dict(self) -> dict[str, Value]:
        """The values by name, in the operator's order."""
        return dict(vars(self))


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an operator."""

    name: str
    accepts: str
    """What a value must be, for people: `a whole number from 1 up`."""
    parse: Callable[[str], Value]
    """Turn the text of a value into it; `ValueError` where it is not acceptable."""
    default: Value | None = None
    """None: the parameter must be given."""
    help: str = ""
    options: tuple[Value, ...] = ()
    """All the values it accepts, where they are few."""


def size(name: str, default: int | None = None, *, help: str = "", minimum: int = 1) -> Param:  # noqa: A002
    """A whole number from `minimum` up."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError("is not a whole number")
        digits = text.lstrip("+-0")
        if len(digits) > len(str(LARGEST)) or int(digits or 0) > LARGEST:
            raise ValueError(f"is beyond {LARGEST} in size, the largest extent of a tensor in TVM")
        if int(text) < minimum:
            raise ValueError("is too small")
        return int(text)

    return Param(name, f"a whole number from {minimum} up", parse, default, help)


def choice(name: str, options: tuple[str, ...], default: str, *, help: str = "") -> Param:  # noqa: A002
    """One of a few words."""

    def parse(text: str) -> str:
        if text not in options:
            raise ValueError("is not one of its values")
        return text

    accepts = options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"
    return Param(name, accepts, parse, default, help, options)


def number_choice(name: str, options: tuple[int, ...], default: int, *, help: str = "") -> Param:  # noqa: A002
    """One of a few whole numbers."""
    words = choice(name, tuple(map(str, options)), str(default), help=help)
    return Param(name, words.accepts, lambda text: int(words.parse(text)), default, help, options)


def flag(name: str, default: int, *, help: str = "") -> Param:  # noqa: A002
    """0 or 1."""
    return number_choice(name, (0, 1), default, help=help)


def canonical(params: tuple[Param, ...], values: Mapping[str, Value]) -> str:
    """Write values as `a=1,b=2` in the operator's order, without those at their default."""
    return ",".join(
        f"{param.name}={values[param.name]}" for param in params if values[param.name] != param.default
    )
