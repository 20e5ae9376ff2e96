"""What LLVM, as TVM brings it, knows of CPUs: names, features, and which of them this machine has."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tuneassist.targets.machine import cpu_flags
from tuneassist.tvm_api import Target, tvm

_X86_CODE = re.compile(
    r"(sse|ssse|avx|amx|fma|xop|tbm|bmi|f16c|popcnt|lzcnt|movbe|gfni|vaes|sha|sm[34]$|vpclmul|pclmul|aes"
    r"|cmov|crc32|cx16|egpr|ndd|ccmp|nf$|zu$|cf$|push2pop2)"
)
"""Features that change which instructions LLVM emits; the rest (cache hints, virtualisation) never crash."""
_KERNEL_NAMES = {
    "bmi": "bmi1",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "sha": "sha_ni",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}
_COMPARED = re.compile(r"(sse|ssse|avx|fma|f16c|amx|bmi)")


def llvm_version() -> int | None:
    """LLVM's major version, or None where this TVM has none."""
    version = _function("target.llvm_version_major")
    return None if version is None else int(version())


def host_cpu() -> str:
    """LLVM's name for this machine's CPU, such as `znver5`."""
    return str(tvm.get_global_func("tvm.codegen.llvm.GetHostCPUName")())


def host_features() -> dict[str, bool]:
    """Whether this machine has each instruction set feature that LLVM can detect.

    A vector feature that the kernel does not list is off: the kernel may forbid what CPUID reports.
    """
    features = {
        str(k): bool(v) for k, v in tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")().items()
    }
    flags = {_plain(flag) for flag in cpu_flags()}
    if _is_x86() and flags:
        for name in features:
            if _COMPARED.match(name) and _plain(_KERNEL_NAMES.get(name, name)) not in flags:
                features[name] = False
    return features


def cpu_models() -> tuple[str, ...]:
    """Every CPU model that LLVM knows for this machine's architecture."""
    return tuple(sorted(str(name) for name in tvm.target.codegen.llvm_get_cpu_archlist(Target("llvm"))))


def model_features(config: Mapping[str, Any]) -> frozenset[str]:
    """Features that LLVM turns on for a target in dict form, tuning flags among them."""
    return frozenset(str(name) for name in tvm.target.codegen.llvm_get_cpu_features(Target(dict(config))))


def missing_features(config: Mapping[str, Any], features: Mapping[str, bool]) -> tuple[str, ...]:
    """Features that the target's code may use and this machine lacks, sorted.

    Args:
        config: A target in dict form.
        features: From `host_features()`.
    """
    return tuple(
        sorted(
            name for name in model_features(config) if not features.get(name, True) and _changes_code(name)
        )
    )


def architecture_of(config: Mapping[str, Any]) -> str | None:
    """The architecture of a target's `mtriple`, such as `aarch64`; None where it names none."""
    triple = config.get("mtriple")
    name = str(triple or "").partition("-")[0].lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name) or None


def unknown_attributes(attributes: Iterable[str]) -> tuple[str, ...]:
    """Those of a target's `mattr` that LLVM would ignore with a warning: no sign, or no such feature."""
    return tuple(
        text
        for text in attributes
        if text[:1] not in ("+", "-")
        or text[1:] not in model_features({"kind": "llvm", "mattr": [f"+{text[1:]}"]})
    )


def _changes_code(name: str) -> bool:
    return bool(_X86_CODE.match(name)) if _is_x86() else True


def _plain(name: str) -> str:
    return re.sub(r"[._-]", "", name)


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def _function(name: str) -> Any:
    return tvm.get_global_func(name, allow_missing=True)
