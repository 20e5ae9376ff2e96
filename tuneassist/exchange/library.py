"""Export of the best kernel as a shared library, with a header that says how to call it."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError, UsageError
from tuneassist.exchange.header import Function, header_text
from tuneassist.exchange.output import new_file
from tuneassist.exchange.packing import argument_specs, split_packing
from tuneassist.exchange.scheduled import describe, schedule_of
from tuneassist.exchange.selection import Place, best_trial
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tvm_api import IRModule, Target, cc, tvm

_SUFFIXES = (".so", ".dylib")


def export_library(store: SqliteStore, place: Place, path: Path, *, force: bool) -> dict[str, Any]:
    """Compile the best schedule into a shared library, and write `PATH.h` beside it.

    The library's `main` takes the workload's ordinary arguments. Where the schedule packs a constant
    weight, `pack` and `main_packed` are there too: pack once, then call the kernel as it was measured.

    Raises:
        NoMeasurementError: There is no valid trial.
        MachineError: There is no C++ compiler, or it or TVM failed.
        StoreError: The trace does not apply with this TVM.
        UsageError: A file can't be written.
    """
    path = library_path(path)
    linker = compiler()
    trial = best_trial(store, place)
    module = schedule_of(place.workload, trial, place.target).mod
    parts = split_packing(module)
    functions = {"main": parts.whole}
    if parts.pack is not None:
        functions |= {"pack": parts.pack, "main_packed": parts.packed}
    header = path.with_suffix(".h")
    text = header_text(
        header.stem, path.name, describe(place, trial),
        [Function(name, argument_specs(function)) for name, function in functions.items()],
        parts.position,
    )  # fmt: skip
    with new_file(header, force=force) as header_part, new_file(path, force=force) as part:
        _compile(functions, place.target.json, part, linker)
        header_part.write_text(text, encoding="utf-8")
    return {
        "run_id": trial.run_id, "trial_id": trial.id, "ordinal": trial.ordinal, "best_secs": trial.best_of,
        "correct": trial.correct, "functions": list(functions), "header": str(header),
    }  # fmt: skip


def library_path(path: Path) -> Path:
    """The path, where it has the ending of a shared library.

    Raises:
        UsageError: It has another.
    """
    if path.suffix not in _SUFFIXES:
        raise UsageError(
            f"{path} has no ending of a shared library.", remedy=f"Name it {path.name or 'kernel'}.so."
        )
    return path


def compiler() -> str:
    """The C++ compiler that links libraries.

    Raises:
        MachineError: There is none.
    """
    found = cc.get_cc()
    if found is None or shutil.which(shlex.split(found)[0]) is None:
        raise MachineError(
            f"The C++ compiler {found!r} does not exist." if found else "There is no C++ compiler here.",
            remedy="A shared library needs one to link: install g++ or clang++, or name one in CXX. "
            "--format script and --format tvm need none.",
        )
    return str(found)


def _compile(functions: dict[str, Any], target: str, path: Path, linker: str) -> None:
    module = IRModule(
        {name: function.with_attr("global_symbol", name) for name, function in functions.items()}
    )
    try:
        tvm.compile(module, target=Target(json.loads(target))).export_library(str(path), cc=linker)
    except Exception as error:  # TVM, LLVM and the linker each raise their own
        raise library_fault(linker, error) from error


def library_fault(linker: str, error: Exception) -> MachineError:
    """The error of TVM, LLVM or the linker, as one that a user can read."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return MachineError(
        f"The library could not be built with {linker}: {lines[0]}\n" + "\n".join(lines[-5:]),
        remedy="Check that it links C++ programs, and that the target is one of this machine.",
    )
