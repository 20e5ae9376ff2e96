"""What is measured of this machine: whether code runs, which CPU model is fastest, the peak."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tuneassist.errors import MachineError
from tuneassist.storage.memory import memory_store
from tuneassist.targets import cpu_model, llvm, native, resolve
from tuneassist.targets.characterise import choose
from tuneassist.targets.probe import ProbeError, ask

pytestmark = pytest.mark.tvm

APX = ["+egpr", "+ndd", "+push2pop2", "+ppx"]
"""Instructions of a CPU that is yet to come: a kernel that uses them dies of SIGILL."""


def broken() -> dict[str, Any]:
    if llvm.host_features().get("egpr") or native.architecture() != "x86_64":
        pytest.skip("needs an x86 CPU without APX")
    return {**native.detected(), "mattr": [*native.detected().get("mattr", ()), *APX]}


def comparison(finals: dict[str, float | None], noise: float | None = 0.01) -> dict[str, Any]:
    def result(name: str, ratio: float | None) -> dict[str, Any]:
        return {"config": {"kind": "llvm", "mcpu": name}, "ratio": ratio, "ratios": {}, "error": ""}

    results = [result("detected", 1.0), *(result(name, ratio) for name, ratio in finals.items())]
    return {"results": results, "finals": results[1:], "noise": noise, "secs": 1.0}


@pytest.mark.parametrize(
    ("finals", "noise", "chosen"),
    [
        ({"a": 0.7, "b": 0.6}, 0.01, "b"),
        ({"a": 0.97}, 0.01, "detected"),
        ({"a": 0.9}, 0.01, "a"),
        ({"a": 0.9}, 0.05, "detected"),
        ({"a": None, "b": 1.2}, None, "detected"),
    ],
)
def test_only_a_clear_win_replaces_what_llvm_detects(
    finals: dict[str, float | None], noise: float | None, chosen: str
) -> None:
    config, note = choose(comparison(finals, noise))
    assert config["mcpu"] == chosen
    assert "detected" in note and (chosen in note)


def test_nothing_to_compare_with_keeps_the_detected_model() -> None:
    compared = {**comparison({}), "finals": []}
    assert choose(compared)[0]["mcpu"] == "detected"


def test_a_target_whose_code_crashes_is_left_for_the_next() -> None:
    configs = [broken(), native.detected()]
    first, second = ask("experiments:verify", {"configs": configs}, timeout_secs=120)
    assert "SIGILL" in first["error"]
    assert (second["config"], second["error"]) == (configs[1], "")


def test_native_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [broken(), native.detected()]
    monkeypatch.setattr(native, "fallbacks", lambda: iter(configs))
    fact = cpu_model.measure_cpu_model(())
    assert fact["config"] == configs[1]
    assert "SIGILL" in fact["note"]
    json.dumps(fact)


def test_no_kernel_runs_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [broken()]
    monkeypatch.setattr(native, "fallbacks", lambda: iter(configs))
    with pytest.raises(MachineError, match="SIGILL") as caught:
        resolve.resolve_target("native")
    assert "doctor" in caught.value.remedy


def test_a_crash_during_the_comparison_drops_that_model_only() -> None:
    configs = [native.detected(), broken(), {"kind": "llvm", "mcpu": "x86-64"}]
    (compared,) = ask("experiments:compare", {"configs": configs, "budget_secs": 2.0}, timeout_secs=120)
    first, second, third = compared["results"]
    assert first["ratio"] == 1.0
    assert second["ratio"] is None and "SIGILL" in second["error"]
    assert third["ratio"] > 0 and set(third["ratios"]) == set(first["ratios"])


def test_facts_are_measured_once_and_again_when_tvm_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store()
    target = resolve.resolve_target("native", store=store)
    assert native.detected()["mcpu"] in target.note
    machine_id = store.machine_id(resolve.measuring_machine())
    peak = resolve.peak_gflops(target, store, machine_id)
    assert peak is not None and peak > 0.1

    def measured_again(*args: object, **kwargs: object) -> None:
        raise AssertionError("measured again")

    for name in ("measure_cpu_model", "measure_peak_gflops"):
        monkeypatch.setattr(resolve, name, measured_again)
    assert resolve.resolve_target("native", store=store) == target
    assert resolve.peak_gflops(target, store, machine_id) == peak
    monkeypatch.setattr(resolve, "versions", lambda: {"tvm": "another"})
    with pytest.raises(AssertionError, match="measured again"):
        resolve.resolve_target("native", store=store)
    store.close()


def test_wider_code_is_not_slower_than_the_plainest() -> None:
    features = llvm.host_features()
    if not features.get("avx2"):
        pytest.skip("needs a CPU with AVX2")
    configs = [native.detected(), {"kind": "llvm", "mcpu": "x86-64"}]
    (compared,) = ask("experiments:compare", {"configs": configs, "budget_secs": 2.0}, timeout_secs=120)
    assert compared["results"][1]["ratio"] > 1.0


def test_an_experiment_that_fails_ends_in_words() -> None:
    with pytest.raises(ProbeError, match="no_such_thing"):
        list(ask("experiments:no_such_thing", {}, timeout_secs=60))
    with pytest.raises(ProbeError, match="longer than 0 s"):
        list(ask("experiments:verify", {"configs": [native.detected()]}, timeout_secs=0.05))
