"""From a target spec to the target that a run is measured on. Runs where TVM is loaded."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneassist.errors import MachineError, UsageError
from tuneassist.records import Machine, TargetInfo
from tuneassist.storage.base import Store
from tuneassist.targets import catalogue, native
from tuneassist.targets.cores import usable_cores
from tuneassist.targets.cpu_model import measure_cpu_model, measure_peak_gflops, versions
from tuneassist.targets.cuda import check_compiler, check_device, device_config
from tuneassist.targets.linker import linker_for
from tuneassist.targets.llvm import (
    architecture_of,
    cpu_models,
    host_features,
    missing_features,
    unknown_attributes,
)
from tuneassist.targets.machine import this_machine
from tuneassist.targets.remote import check_remote, device_threads
from tuneassist.targets.spec import Native, Remote, parse_target
from tuneassist.targets.tracker import Address

_CPU_MODEL = "cpu_model"
_PEAK = "peak_gflops"


@dataclass(frozen=True, slots=True)
class Examined:
    """A target, and why it can't be measured here if it can't."""

    target: TargetInfo
    problem: MachineError | None = None


def resolve_target(
    spec: str, *, cores: tuple[int, ...] | None = None, store: Store | None = None
) -> TargetInfo:
    """The target of a spec, ready to be measured on here.

    Args:
        spec: As the user wrote it; `spec.FORMS` lists the forms.
        cores: Ids of the cores to use; None: all that this process may use.
        store: Keeps and gives what was measured once on this machine. Without one, `native` is the
            detected CPU, checked by running a kernel but not compared with other CPU models.

    Raises:
        UsageError: The spec can't be understood.
        MachineError: This machine or this TVM can't run code for it.
    """
    examined = examine_target(spec, cores=cores, store=store)
    if examined.problem is not None:
        raise examined.problem
    return examined.target


def examine_target(
    spec: str, *, cores: tuple[int, ...] | None = None, store: Store | None = None
) -> Examined:
    """Like `resolve_target`, for a target that need not run here.

    Raises:
        UsageError: The spec can't be understood.
        MachineError: This TVM can't compile for that kind; or `native` was asked for and no kernel runs.
    """
    ids = usable_cores() if cores is None else cores
    parsed = parse_target(spec)
    if isinstance(parsed, Native):
        catalogue.check_available("llvm")
        config, note = _native(ids, store)
        return Examined(_info(spec, {**config, "num-cores": len(ids)}, len(ids), note))
    if isinstance(parsed, Remote):
        return _examined_remote(spec, parsed)
    config, notes = _completed(catalogue.configuration(parsed), ids)
    catalogue.check_available(str(config["kind"]))
    # TVM checks the names and types of all options; what follows relies on them.
    catalogue.make_target(config)
    problem: MachineError | None = None
    try:
        if config["kind"] == "llvm":
            notes += _check_cpu(config)
        elif config["kind"] == "cuda":
            check_device()
            config = {**device_config(), **config}
            check_compiler()
    except MachineError as error:
        problem = error
    return Examined(_info(spec, config, _cores_of(config, len(ids)), "; ".join(notes)), problem)


def _examined_remote(spec: str, remote: Remote) -> Examined:
    config, notes = _completed(catalogue.configuration(remote.target), None)
    catalogue.check_available(str(config["kind"]))
    catalogue.make_target(config)
    problem: MachineError | None = None
    try:
        notes.append(check_remote(remote))
        if config["kind"] == "llvm" and "num-cores" not in config:
            config["num-cores"] = device_threads(remote)
            notes.append(f"num-cores was missing: filled in {config['num-cores']}, the device's threads")
    except MachineError as error:
        problem = error
    if config["kind"] == "llvm" and "num-cores" not in config:
        assert problem is not None
        raise MachineError(
            f"The target of the device names no num-cores, and the device can't be asked: {problem.message}",
            remedy=f'Add "num-cores": N to it, or: {problem.remedy}',
        )
    notes.append(linker_for(config).note)
    return Examined(_info(spec, config, _cores_of(config, 0), "; ".join(notes)), problem)


def peak_gflops(target: TargetInfo, store: Store, machine_id: int) -> float | None:
    """The machine's measured float32 peak on the target's cores, taken from the store where it is kept.

    None for a target that is no CPU or elsewhere, or where it can't be measured.
    """
    if target.kind != "llvm" or isinstance(parse_target(target.spec), Remote):
        return None
    kept = _kept(store, machine_id, _PEAK) or {"versions": versions(), "gflops": {}}
    if target.json not in kept["gflops"]:
        cores = usable_cores()[: target.cores]
        kept["gflops"][target.json] = measure_peak_gflops(json.loads(target.json), cores)
        store.set_machine_fact(machine_id, _PEAK, kept)
    value: float | None = kept["gflops"][target.json]
    return value


def cpu_model_fact(
    store: Store, machine_id: int, cores: Sequence[int], *, renew: bool = False
) -> dict[str, Any]:
    """What was measured of CPU models on this machine, measured now where it is not kept or out of date.

    Raises:
        MachineError: No kernel runs here.
    """
    kept = None if renew else _kept(store, machine_id, _CPU_MODEL)
    if kept is not None:
        return kept
    fact = measure_cpu_model(cores)
    store.set_machine_fact(machine_id, _CPU_MODEL, fact)
    target = _info("native", {**fact["config"], "num-cores": len(cores)}, len(cores), "")
    peaks = {"versions": versions(), "gflops": {target.json: fact["gflops"]}}
    store.set_machine_fact(machine_id, _PEAK, peaks)
    return fact


def _kept(store: Store, machine_id: int, name: str) -> dict[str, Any] | None:
    """A fact of this TVM, LLVM and CPU."""
    fact = store.machine_fact(machine_id, name)
    return fact if isinstance(fact, dict) and fact.get("versions") == versions() else None


def measuring_machine(cores: Sequence[int] | None = None) -> Machine:
    """This machine with the cores that a run uses: the row that measured facts belong to."""
    machine = this_machine()
    return machine if cores is None else replace(machine, cores=len(cores))


def farm_machine(remote: Remote, target: TargetInfo) -> Machine:
    """The devices of a key as one machine: what was measured there is kept apart from all else."""
    name = f"{remote.key}@{Address(remote.host, remote.port)}"
    return Machine(name, native.label(json.loads(target.json)), target.cores)


def _native(cores: Sequence[int], store: Store | None) -> tuple[dict[str, Any], str]:
    if store is None:
        fact = measure_cpu_model((), compare=False)
    else:
        fact = cpu_model_fact(store, store.machine_id(measuring_machine(cores)), cores)
    return fact["config"], fact["note"]


def _completed(config: dict[str, Any], cores: Sequence[int] | None) -> tuple[dict[str, Any], list[str]]:
    """Check `num-cores`, and fill it in where a CPU target lacks it (`cores` None: another machine's)."""
    given = config.get("num-cores")
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
        raise UsageError(
            f"The target's num-cores is {given!r}.", remedy="It takes a whole number of at least 1."
        )
    if config.get("kind") != "llvm" or cores is None:
        return config, []
    if given is None:
        filled = {**config, "num-cores": len(cores)}
        return filled, [f"num-cores was missing: filled in {len(cores)}, the cores this process may use"]
    if given > len(cores):
        return config, [f"the target names {given} cores; this process may use {len(cores)}"]
    return config, []


def _check_cpu(config: Mapping[str, Any]) -> list[str]:
    """Compare a CPU target with this CPU.

    Returns:
        What a user should know.

    Raises:
        UsageError: LLVM knows no such model or feature.
        MachineError: This CPU can't run its code.
    """
    theirs, ours = architecture_of(config), native.architecture()
    if theirs is not None and theirs != ours:
        raise MachineError(
            f"The target compiles for {theirs}; this machine is {ours}.",
            remedy="Run tuneassist on such a machine, or choose --target native.",
        )
    model = config.get("mcpu")
    if model is not None and model not in cpu_models():
        near = difflib.get_close_matches(str(model), cpu_models(), n=3, cutoff=0.5)
        raise UsageError(
            f"LLVM knows no CPU model {model!r}.",
            remedy=f"Did you mean {', '.join(near)}?"
            if near
            else "`tuneassist targets native` shows this machine's.",
        )
    if unknown := unknown_attributes(config.get("mattr", ())):
        raise UsageError(
            f"The target's mattr holds {', '.join(unknown)}, which LLVM does not know.",
            remedy="Each entry is + or - and the name of a feature, such as +avx2.",
        )
    if missing := missing_features(config, host_features()):
        raise MachineError(
            f"The target {native.label(dict(config))} uses {', '.join(missing[:6])}, which this CPU lacks.",
            remedy=f'Choose --target native, or take them out with "mattr": ["-{missing[0]}", ...].',
        )
    if model is None:
        return ["no mcpu is named, so LLVM compiles for the plainest CPU"]
    return []


def _cores_of(config: Mapping[str, Any], otherwise: int) -> int:
    host = config.get("host")
    if config.get("kind") != "llvm" and isinstance(host, dict):
        return int(host.get("num-cores", otherwise))
    return int(config.get("num-cores", otherwise))


def _info(spec: str, config: dict[str, Any], cores: int, note: str) -> TargetInfo:
    target = catalogue.make_target(config)
    return TargetInfo(spec, catalogue.canonical_json(target), cores, str(target.kind.name), note)
