"""TVM's target kinds and tags, and which of them this TVM can compile for."""

from __future__ import annotations

import difflib
import json
from functools import cache
from typing import Any

from tuneassist.errors import MachineError, UsageError
from tuneassist.targets.spec import FORMS, Described, Named, OldStyle, translate
from tuneassist.tvm_api import Target, tvm

_BUILD_FLAGS = {
    "llvm": "USE_LLVM",
    "cuda": "USE_CUDA",
    "opencl": "USE_OPENCL",
    "vulkan": "USE_VULKAN",
    "metal": "USE_METAL",
    "rocm": "USE_ROCM",
    "hexagon": "USE_HEXAGON",
}
"""Kinds that kernels can be tuned for, and the option of TVM's build that brings each."""


@cache
def kinds_available() -> tuple[str, ...]:
    """Target kinds that this TVM was built for."""
    options = tvm.support.libinfo()
    return tuple(
        kind
        for kind, flag in _BUILD_FLAGS.items()
        if str(options.get(flag, "OFF")).upper() not in ("OFF", "NOT-FOUND", "0", "FALSE")
    )


@cache
def tags() -> dict[str, dict[str, Any]]:
    """Every target tag of TVM with its target in dict form, by name."""
    found: dict[Any, Any] = tvm.target.list_tags() or {}
    return {
        str(name): as_dict(target) for name, target in sorted(found.items(), key=lambda item: str(item[0]))
    }


def as_dict(target: Any) -> dict[str, Any]:
    """A TVM target in dict form."""
    config: dict[str, Any] = json.loads(str(target))
    return config


def canonical_json(target: Any) -> str:
    """TVM's target as JSON with sorted keys: equal targets give equal text."""
    return json.dumps(as_dict(target), sort_keys=True)


def configuration(spec: Named | Described | OldStyle) -> dict[str, Any]:
    """The dict form of a parsed spec.

    Raises:
        UsageError: It names no kind or tag of TVM, or a value has the wrong type.
    """
    if isinstance(spec, Described):
        config = dict(spec.config)
        if "kind" not in config:
            return {**_tag(str(config.pop("tag"))), **config}
        check_kind(config["kind"])
        return config
    if isinstance(spec, OldStyle):
        check_kind(spec.kind)
        return translate(spec, _option_types(spec.kind))
    if "/" in spec.name or spec.name in tags():
        return _tag(spec.name)
    check_kind(spec.name)
    return {"kind": spec.name}


def check_kind(kind: object) -> None:
    """Refuse what TVM does not know as a target kind.

    Raises:
        UsageError: It is none; the nearest kinds and tags are named.
    """
    known = known_kinds()
    if kind in known:
        return
    near = _nearest(str(kind), ("native", *known, *tags()))
    raise UsageError(
        f"TVM knows no target kind or tag {kind!r}.",
        remedy=f"Did you mean {', '.join(near)}?" if near else FORMS,
    )


def check_available(kind: str) -> None:
    """Refuse a kind that this TVM can't compile for.

    Raises:
        MachineError: This TVM was built without it, or it is nothing to tune for.
    """
    available = kinds_available()
    if kind in available:
        return
    why = "was built without it" if kind in _BUILD_FLAGS else "can't measure kernels for it"
    raise MachineError(
        f"The target kind {kind!r} can't be used: this TVM {why}.",
        remedy=f"Kinds available here: {', '.join(available) or 'none'}.",
    )


def make_target(config: dict[str, Any]) -> Any:
    """TVM's target of a dict form.

    Raises:
        UsageError: TVM refuses it; its reason is kept.
    """
    try:
        return Target(config)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        text = str(error).strip()
        kind = str(config.get("kind"))
        raise UsageError(
            f"TVM refuses the target {json.dumps(config)}: {text.split('. Target creation')[0]}",
            remedy=f"Options of {kind}: {', '.join(sorted(_option_types(kind)))}.",
        ) from error


def _tag(name: str) -> dict[str, Any]:
    known = tags()
    if name in known:
        return known[name]
    near = _nearest(name, tuple(known))
    raise UsageError(
        f"TVM knows no target tag {name!r}.",
        remedy=f"Did you mean {', '.join(near)}?" if near else "`tuneassist targets` lists the tags.",
    )


def _nearest(name: str, known: tuple[str, ...]) -> list[str]:
    """Up to three known names: those that hold the name's last part, else those spelled most like it."""
    part = _plain(name.rpartition("/")[2])
    holding = [candidate for candidate in known if part and part in _plain(candidate)]
    return holding[:3] or difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


@cache
def known_kinds() -> tuple[str, ...]:
    """Every target kind that TVM has a name for, available here or not."""
    return tuple(sorted(str(kind) for kind in tvm.get_global_func("target.ListTargetKinds")()))


def _option_types(kind: str) -> dict[str, str]:
    if kind not in known_kinds():
        return {}
    options = tvm.get_global_func("target.ListTargetKindOptionsFromName")(kind)
    return {str(name): str(type_name) for name, type_name in options.items()}
