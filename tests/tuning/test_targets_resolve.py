"""Target specs become targets that TVM takes, or a refusal in words."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from tuneassist.errors import MachineError, UsageError
from tuneassist.targets import catalogue, llvm, native
from tuneassist.targets.machine import cpu_flags
from tuneassist.targets.resolve import examine_target, resolve_target
from tuneassist.tvm_api import Target

pytestmark = pytest.mark.tvm

OTHER = "aarch64-linux-gnu" if platform.machine() == "x86_64" else "x86_64-linux-gnu"


def own_model() -> str:
    return str(native.detected()["mcpu"])


@pytest.mark.parametrize(
    "spec",
    [
        '{{"kind": "llvm", "mcpu": "{mcpu}", "num-cores": 1}}',
        '{{"num-cores": 1, "mcpu": "{mcpu}", "kind": "llvm"}}',
        "llvm -mcpu={mcpu} -num-cores 1",
        "llvm --num-cores=1 -mcpu {mcpu}",
    ],
)
def test_one_target_written_in_four_ways_has_one_json(spec: str) -> None:
    target = resolve_target(spec.format(mcpu=own_model()), cores=(0,))
    expected = resolve_target(json.dumps({"kind": "llvm", "mcpu": own_model(), "num-cores": 1}), cores=(0,))
    assert target.json == expected.json
    assert (target.cores, target.kind, target.note) == (1, "llvm", "")
    assert list(json.loads(target.json)) == sorted(json.loads(target.json))


def test_tvm_takes_the_json_back_unchanged() -> None:
    target = resolve_target('{"kind": "llvm", "mattr": ["+sse2"], "mcpu": "x86-64"}')
    assert catalogue.canonical_json(Target(json.loads(target.json))) == target.json


def test_missing_cores_are_filled_in_and_said() -> None:
    target = resolve_target(json.dumps({"kind": "llvm", "mcpu": own_model()}), cores=(0, 1, 4))
    assert target.cores == json.loads(target.json)["num-cores"] == 3
    assert "num-cores" in target.note


def test_more_cores_than_there_are_is_said() -> None:
    target = resolve_target(json.dumps({"kind": "llvm", "mcpu": own_model(), "num-cores": 64}), cores=(0,))
    assert target.cores == 64
    assert "64" in target.note


def test_a_missing_model_is_said() -> None:
    assert "mcpu" in resolve_target("llvm", cores=(0,)).note


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("pytorch", "'pytorch'"),
        ("nvidia/geforce-rtx-309", "nvidia/geforce-rtx-3090"),
        ("nvidia/rtx3090", "nvidia/geforce-rtx-3090"),
        ("LLVM", "Did you mean llvm"),
        ('{"kind": "lvm"}', "Did you mean llvm"),
        ('{"tag": "arm/none"}', "arm/"),
        ('{"kind": "llvm", "mcpu": "znver55"}', "znver5"),
        ('{"kind": "llvm", "num-cores": 0}', "num-cores is 0"),
        ('{"kind": "llvm", "num-cores": true}', "num-cores is True"),
        ('{"kind": "llvm", "num-cores": "4"}', "num-cores is '4'"),
        ('{"kind": "llvm", "cores": 4}', "cores"),
        ('{"kind": "llvm", "mcpu": 5}', "mcpu"),
        ('{"kind": "llvm", "mattr": "+avx2"}', "mattr"),
        ('{"kind": "llvm", "mattr": ["avx2"]}', "avx2"),
        ('{"kind": "llvm", "mattr": ["+warp-drive"]}', "+warp-drive"),
        ('{"kind": "llvm", "mattr": [""]}', "mattr"),
        ("llvm -num-cores=-2", "num-cores is -2"),
        ("llvm -warp=9", "warp"),
    ],
)
def test_bad_input_is_named_with_a_remedy(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target(spec)
    assert said in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("kind", ["opencl", "vulkan", "metal", "rocm"])
def test_kinds_that_this_tvm_lacks_name_those_it_has(kind: str) -> None:
    if kind in catalogue.kinds_available():
        pytest.skip(f"this TVM has {kind}")
    for spec in (kind, json.dumps({"kind": kind})):
        with pytest.raises(MachineError, match=kind) as caught:
            resolve_target(spec)
        assert "llvm" in caught.value.remedy


def test_another_architecture_is_shown_but_not_measured() -> None:
    spec = json.dumps({"kind": "llvm", "mtriple": OTHER})
    assert json.loads(examine_target(spec).target.json)["mtriple"] == OTHER
    with pytest.raises(MachineError, match=OTHER.partition("-")[0]):
        resolve_target(spec)


def test_features_that_the_cpu_lacks_are_named() -> None:
    missing = [name for name, has in llvm.host_features().items() if not has and name.startswith("a")]
    name = missing[0]
    with pytest.raises(MachineError, match="lacks") as caught:
        resolve_target(json.dumps({"kind": "llvm", "mcpu": own_model(), "mattr": [f"+{name}"]}))
    assert name in caught.value.message


def test_cuda_without_a_device_says_what_is_missing() -> None:
    from tuneassist.tvm_api import tvm

    if tvm.cuda(0).exist:
        pytest.skip("this machine has a CUDA device")
    for spec in ("cuda", "nvidia/geforce-rtx-3090"):
        with pytest.raises(MachineError, match=r"device|driver") as caught:
            resolve_target(spec)
        assert "native" in caught.value.remedy
    assert json.loads(examine_target("nvidia/geforce-rtx-3090").target.json)["arch"] == "sm_86"


def test_rpc_is_understood_without_a_tracker_and_refused_where_none_answers() -> None:
    spec = "rpc:pi@127.0.0.1:9/raspberry-pi/4b-aarch64"
    examined = examine_target(spec)
    assert json.loads(examined.target.json)["mcpu"] == "cortex-a72"
    with pytest.raises(MachineError, match=r"No RPC tracker answers at 127.0.0.1:9"):
        resolve_target(spec)
    with pytest.raises(UsageError, match="'warp'"):
        resolve_target("rpc:pi@127.0.0.1:9/warp")


def test_every_tag_can_be_examined() -> None:
    available = catalogue.kinds_available()
    for name, config in catalogue.tags().items():
        if config["kind"] in available:
            assert examine_target(name).target.kind == config["kind"]


def test_candidates_run_here_and_start_with_what_llvm_detects() -> None:
    candidates: list[dict[str, Any]] = native.candidates()
    assert candidates[0]["mcpu"] == llvm.host_cpu()
    labels = [native.label(config) for config in candidates]
    assert len(set(labels)) == len(labels)
    for config in candidates:
        assert llvm.missing_features(config, llvm.host_features()) == ()


def test_a_detected_model_whose_features_are_masked_loses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    if not llvm.host_features().get("avx2"):
        pytest.skip("needs a CPU with AVX2")
    flags = cpu_flags() - {"avx2"}
    monkeypatch.setattr(llvm, "cpu_flags", lambda: flags)
    assert "-avx2" in native.detected()["mattr"]
    assert "avx2" not in llvm.model_features(native.detected())
    assert [config["mcpu"] for config in native.fallbacks()][1:] == ["x86-64-v2", "x86-64"]
