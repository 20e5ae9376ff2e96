"""The grammar of target specs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneassist.errors import UsageError
from tuneassist.targets.spec import (
    Described,
    Named,
    Native,
    OldStyle,
    Remote,
    TargetSpec,
    parse_target,
    translate,
)

TYPES = {"num-cores": "int", "mattr": "Array<str>", "fast-math": "bool", "mcpu": "str"}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("native", Native()),
        (" native ", Native()),
        ("cuda", Named("cuda")),
        ("nvidia/geforce-rtx-3090", Named("nvidia/geforce-rtx-3090")),
        ('{"kind": "llvm", "num-cores": 4}', Described({"kind": "llvm", "num-cores": 4})),
        ('{"tag": "arm/rasp4b"}', Described({"tag": "arm/rasp4b"})),
        ("llvm -mcpu=znver4", OldStyle("llvm", (("mcpu", "znver4"),))),
        ("rpc:pi@10.0.0.2:9190/cuda", Remote("pi", "10.0.0.2", 9190, Named("cuda"))),
        ("rpc:pi@[::1]:1/arm/rasp4b", Remote("pi", "::1", 1, Named("arm/rasp4b"))),
        ('rpc:k@h:65535/{"kind":"llvm"}', Remote("k", "h", 65535, Described({"kind": "llvm"}))),
    ],
)
def test_forms(text: str, spec: TargetSpec) -> None:
    assert parse_target(text) == spec


def test_an_old_style_string_in_every_spelling_of_its_options() -> None:
    old = parse_target("llvm -mcpu=znver4 -num-cores 4 --mattr=+avx2,-fma -fast-math")
    assert isinstance(old, OldStyle)
    assert translate(old, TYPES) == {
        "kind": "llvm",
        "mcpu": "znver4",
        "num-cores": 4,
        "mattr": ["+avx2", "-fma"],
        "fast-math": True,
    }


def test_a_minus_that_starts_a_value_is_no_option() -> None:
    old = parse_target("llvm -num-cores -3")
    assert isinstance(old, OldStyle)
    assert translate(old, TYPES)["num-cores"] == -3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llvm -num-cores=four", "'four'"),
        ("llvm -num-cores", "no value"),
        ("llvm -fast-math=maybe", "'maybe'"),
        ("llvm -mcpu=a -mcpu=b", "twice"),
    ],
)
def test_values_that_an_option_does_not_take(text: str, said: str) -> None:
    old = parse_target(text)
    assert isinstance(old, OldStyle)
    with pytest.raises(UsageError, match=said) as caught:
        translate(old, TYPES)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ('{"kind": "llvm",}', "line 1, column 1"),
        ('{"kind":\n"llvm" "mcpu"}', "line 2, column 8"),
        ('{"num-cores": 4}', "kind"),
        ('{"kind": 7}', "kind"),
        ('{"kind": "llvm", "num-cores": NaN}', "NaN"),
        ('{"kind": "llvm", "kind": "cuda"}', "'kind' twice"),
        ("[1, 2]", "not an object"),
        ('"llvm"', "not an object"),
        ('{"a":' * 100_000, "JSON"),
        ("llvm 'open", "can't be read"),
        ("llvm znver4", "'znver4'"),
        ("rpc:h:9190/llvm", "rpc:KEY@HOST:PORT/TARGET"),
        ("rpc:k@h/llvm", "rpc:KEY@HOST:PORT/TARGET"),
        ("rpc:k@h:0/llvm", "port 0"),
        ("rpc:k@h:70000/llvm", "port 70000"),
        ("rpc:k@h:1/native", "'native'"),
        ("rpc:k@h:1/rpc:k@h:1/llvm", "device"),
    ],
)
def test_nonsense_is_refused_with_its_place_and_a_remedy(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert said in caught.value.message
    assert caught.value.remedy
    assert len(caught.value.message) < 300


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_any_json_object_with_a_kind_is_kept_as_it_is(options: dict[str, Any]) -> None:
    config = {**options, "kind": "llvm"}
    assert parse_target(json.dumps(config)) == Described(config)


@given(st.text(max_size=40))
def test_any_text_is_understood_or_refused_in_words(text: str) -> None:
    try:
        parse_target(text)
    except UsageError as error:
        assert error.remedy
