"""This machine's CPU as a TVM target: what LLVM says it is, what that leaves out, what to fall back on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from tuneassist.targets.llvm import cpu_models, host_cpu, host_features, missing_features, model_features

_RIVALS = {
    "x86_64": ("x86-64-v4", "x86-64-v3", "icelake-server", "sapphirerapids", "znver4", "znver5"),
    "aarch64": ("generic", "neoverse-n1", "neoverse-v1", "neoverse-n2", "neoverse-v2", "apple-m1"),
}
"""CPU models worth compiling for beside the detected one; those whose features the CPU lacks drop out."""

_LEVELS = {"x86_64": ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"), "aarch64": ("generic",)}
"""What to fall back on, best first."""

_WIDTH = "prefer-256-bit"
"""LLVM's tuning flag that keeps x86 code at half of AVX-512's width."""


def detected() -> dict[str, Any]:
    """The CPU that LLVM detects, in dict form, without the features that this machine lacks."""
    return _reduced({"kind": "llvm", "mcpu": host_cpu()})


def fallbacks() -> Iterator[dict[str, Any]]:
    """Targets to try in turn until one runs: the detected CPU, then ever plainer ones."""
    yield detected()
    features = host_features()
    for name in _LEVELS.get(architecture(), ()):
        config = {"kind": "llvm", "mcpu": name}
        if not missing_features(config, features):
            yield config


def candidates() -> list[dict[str, Any]]:
    """Targets to compare, the detected one first: models that the CPU can run, at either vector width."""
    features, known = host_features(), set(cpu_models())
    first = detected()
    found = [first]
    for name in _RIVALS.get(architecture(), ()):
        config = {"kind": "llvm", "mcpu": name}
        if name in known and name != first["mcpu"] and not missing_features(config, features):
            found.append(config)
    if features.get("avx512f"):
        found.append(_with(first, _toggled(first)))
        found.append({"kind": "llvm", "mcpu": "x86-64-v4", "mattr": [f"-{_WIDTH}"]})
    return found


def label(config: dict[str, Any]) -> str:
    """A target in a few words, such as `znver5 +prefer-256-bit`."""
    return " ".join([str(config.get("mcpu", config.get("kind"))), *config.get("mattr", ())])


def architecture() -> str:
    """`x86_64`, `aarch64`, or what the system calls another."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def _reduced(config: dict[str, Any]) -> dict[str, Any]:
    return _with(config, *(f"-{name}" for name in missing_features(config, host_features())))


def _with(config: dict[str, Any], *attributes: str) -> dict[str, Any]:
    return {**config, "mattr": [*config.get("mattr", ()), *attributes]} if attributes else config


def _toggled(config: dict[str, Any]) -> str:
    return f"-{_WIDTH}" if _WIDTH in model_features(config) else f"+{_WIDTH}"
