"""The grammar of target specs. Pure: what TVM knows of kinds and tags is asked elsewhere."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tuneassist.errors import UsageError

FORMS = (
    "Write native, a tag such as nvidia/geforce-rtx-3090, a JSON object such as "
    '{"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4}, cuda, or rpc:KEY@HOST:PORT/TARGET.'
)
_RPC = re.compile(
    r"rpc:(?P<key>[^@/\s]+)@(?P<host>\[[0-9A-Fa-f:.]+\]|[^@/:\s\[\]]+):(?P<port>\d+)/(?P<target>.+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Native:
    """This machine's CPU, as LLVM names it and as it measures best."""


@dataclass(frozen=True, slots=True)
class Named:
    """A tag or a kind, which of the two TVM decides."""

    name: str


@dataclass(frozen=True, slots=True)
class Described:
    """A target in TVM's dict form."""

    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OldStyle:
    """A target in the command line form that TVM no longer reads."""

    kind: str
    options: tuple[tuple[str, str | None], ...]
    """Name and value, in order; None for a bare flag."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A target on a device behind an RPC tracker."""

    key: str
    host: str
    port: int
    target: Named | Described | OldStyle


TargetSpec = Native | Named | Described | OldStyle | Remote


def parse_target(spec: str) -> TargetSpec:
    """Read a target spec.

    Raises:
        UsageError: It has none of the forms that `FORMS` lists.
    """
    text = spec.strip()
    if not text:
        raise UsageError("The target is empty.", remedy=FORMS)
    if text == "native":
        return Native()
    if text.startswith("rpc:"):
        return _remote(text)
    if text[0] in "{[\"'":
        return Described(_json_object(text))
    kind, *words = _words(text)
    return OldStyle(kind, _options(text, words)) if words else Named(kind)


def translate(old: OldStyle, option_types: Mapping[str, str]) -> dict[str, Any]:
    """Put an old-style target in dict form.

    Args:
        old: The parsed string.
        option_types: TVM's type of each option of the kind: `int`, `bool`, `str` or `Array<str>`.

    Returns:
        TVM's dict form. An option that TVM does not know stays text, for TVM to refuse.

    Raises:
        UsageError: A value is not of the option's type, or an option is given twice.
    """
    config: dict[str, Any] = {"kind": old.kind}
    for name, value in old.options:
        if name in config:
            raise UsageError(f"The target gives -{name} twice.", remedy="Give it once.")
        config[name] = _typed(name, value, option_types.get(name, "str"))
    return config


def _typed(name: str, value: str | None, kind: str) -> Any:
    if kind == "bool":
        if (value or "true").lower() in ("1", "true"):
            return True
        if value in ("0", "false", "False"):
            return False
        raise UsageError(f"The target option -{name} has the value {value!r}.", remedy="It takes 1 or 0.")
    if value is None:
        raise UsageError(f"The target option -{name} has no value.", remedy=f"Write -{name}=VALUE.")
    if kind == "int":
        try:
            return int(value)
        except ValueError:
            raise UsageError(
                f"The target option -{name} has the value {value!r}.", remedy="It takes a whole number."
            ) from None
    if kind.startswith("Array"):
        return [part for part in value.split(",") if part]
    return value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The target {text!r} can't be read: {error}.", remedy=FORMS) from None


def _options(text: str, words: list[str]) -> tuple[tuple[str, str | None], ...]:
    """Pair names with values: `-a=1`, `-a 1`, `--a=1` and the bare flag `-a` are all in use."""
    options: list[tuple[str, str | None]] = []
    while words:
        word = words.pop(0)
        if not re.match(r"--?[A-Za-z]", word):
            raise UsageError(f"The target {text!r} holds {word!r} where an option is due.", remedy=FORMS)
        name, equals, value = word.lstrip("-").partition("=")
        if equals:
            options.append((name, value))
        elif words and not re.match(r"--?[A-Za-z]", words[0]):
            options.append((name, words.pop(0)))
        else:
            options.append((name, None))
    return tuple(options)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"The target is no valid JSON: {error.msg} at line {error.lineno}, column {error.colno} "
            f"(near {text[max(0, error.pos - 10) : error.pos + 10]!r}).",
            remedy=FORMS,
        ) from None
    except RecursionError:
        raise UsageError("The target's JSON is nested too deeply.", remedy=FORMS) from None
    except ValueError as error:
        raise UsageError(f"The target is no valid JSON: {error}.", remedy=FORMS) from None
    if not isinstance(value, dict):
        raise UsageError(f"The target is the JSON value {text[:60]}, not an object.", remedy=FORMS)
    if not isinstance(value.get("kind", value.get("tag")), str):
        raise UsageError(
            f'The target {text[:60]} names no "kind".',
            remedy=f'Add "kind": "llvm" or "kind": "cuda". {FORMS}',
        )
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"it gives {repeated[0]!r} twice")
    return dict(pairs)


def _remote(text: str) -> Remote:
    match = _RPC.fullmatch(text)
    if match is None:
        raise UsageError(
            f"The target {text!r} is not of the form rpc:KEY@HOST:PORT/TARGET.",
            remedy='For example rpc:pi4@192.168.1.5:9190/{"kind": "llvm", "mcpu": "cortex-a72"}.',
        )
    port = int(match["port"])
    if not 1 <= port <= 65535:
        raise UsageError(f"The target {text!r} names port {port}.", remedy="Ports go from 1 to 65535.")
    target = parse_target(match["target"])
    if isinstance(target, Native | Remote):
        raise UsageError(
            f"The remote target {match['target']!r} does not say what the device is.",
            remedy="After the slash, name the device's own target as a tag or a JSON object.",
        )
    return Remote(match["key"], match["host"].strip("[]"), port, target)
