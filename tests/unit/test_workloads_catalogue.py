"""The catalogue, and listing it."""

from __future__ import annotations

import pytest

from tuneassist.errors import UsageError
from tuneassist.workloads.catalogue import CATALOGUE
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.spec import list_workloads, parse_workload

RESNET18_FLOPS = {
    "c1": 236_027_904, "c2": 231_211_008, "c3": 25_690_112, "c4": 115_605_504, "c5": 12_845_056,
    "c6": 231_211_008, "c7": 115_605_504, "c8": 12_845_056, "c9": 231_211_008, "c10": 115_605_504,
    "c11": 12_845_056, "c12": 231_211_008,
}  # fmt: skip
"""The field's standard convolutions, counted by hand in its papers."""


@pytest.mark.parametrize(("name", "flops"), RESNET18_FLOPS.items())
def test_resnet18_convolutions_have_the_known_flops(name: str, flops: int) -> None:
    assert parse_workload(f"resnet18.{name}").flops == flops


def test_catalogue_is_broad() -> None:
    found = list_workloads()
    assert len(found) >= 90
    assert {info.op for info in found} >= set(OPERATORS) - {"relu"}
    networks = {
        "resnet18",
        "resnet50",
        "mobilenet-v2",
        "efficientnet-b0",
        "bert-base",
        "gpt2",
        "vit-b16",
        "llama-7b",
    }
    assert {info.network for info in found} >= networks


def test_no_two_names_are_the_same_workload() -> None:
    specs = [info.spec for info in list_workloads()]
    assert len(specs) == len(set(specs))


def test_one_call_of_each_stays_small() -> None:
    assert max(info.flops for info in list_workloads()) < 50e9


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("resnet18.c1?", {"resnet18.c10", "resnet18.c11", "resnet18.c12"}),
        ("LAYER_NORM", {"bert-base.layer-norm", "gpt2.layer-norm", "vit-b16.layer-norm"}),
        ("resnet18.c1", {"resnet18.c1"}),
        ("unet", {"unet.up1"}),
        ("resnet18.c2:layout=NHWC", {"resnet18.c2:layout=NHWC"}),
        ("matmul:m=8,n=8,k=8", {"matmul:m=8,n=8,k=8"}),
        ("nothing-like-it", set()),
    ],
)
def test_filter(wanted: str, names: set[str]) -> None:
    assert {info.name for info in list_workloads(wanted)} == names


def test_filter_that_is_a_bad_spec_raises() -> None:
    with pytest.raises(UsageError, match="m=0"):
        list_workloads("matmul:m=0,n=1,k=1")


def test_blank_filter_lists_all_in_order() -> None:
    assert [info.name for info in list_workloads("  ")] == list(CATALOGUE)
