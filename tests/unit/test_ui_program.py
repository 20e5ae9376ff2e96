"""Programs as the trial command prints them, laid out and compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tuneassist.errors import TuneAssistError
from tuneassist.ui.program import DiffLine, layout, read_program, side_by_side, weight_level


def text(nodes: list[tuple[int, int | None, float | None]], **more: Any) -> str:
    listed = [
        {
            "id": i,
            "parent": parent,
            "kind": "loop",
            "label": f"i{i}",
            "detail": {"extent": 4},
            "contribution": c,
        }
        for i, parent, c in nodes
    ]
    return json.dumps(
        {"trial_id": 1, "nodes": listed, "edges": [], "script": "s", "trace": "t", "constant": 1, **more}
    )


def test_a_parent_stands_over_the_middle_of_its_children() -> None:
    program = read_program(
        text([(0, None, None), (1, 0, None), (2, 0, None), (3, 0, None), (4, 3, None)]), "trial 1"
    )
    places = layout(program)
    assert [places[i].column for i in (1, 2, 4)] == [0, 1, 2]
    assert places[0].column == 1 and places[0].span == 3
    assert [places[i].level for i in range(5)] == [0, 1, 1, 1, 2]


def test_folded_nodes_hide_what_is_below() -> None:
    program = read_program(text([(0, None, None), (1, 0, None), (2, 1, None)]), "trial 1")
    assert set(layout(program, {1})) == {0, 1}


def test_a_chain_of_thousands_is_laid_out() -> None:
    chain: list[tuple[int, int | None, float | None]] = [
        (0, None, None),
        *((i, i - 1, None) for i in range(1, 4000)),
    ]
    assert layout(read_program(text(chain), "deep"))[3999].level == 3999


@pytest.mark.parametrize(
    "bad",
    ["", "[]", "{}", '{"nodes": 3}', text([(0, 1, None), (1, 0, None)]),
     text([(0, None, None), (0, None, None)]),
     text([(0, None, None)], edges=[[1]]), text([(0, None, None)], constant="x")],
)  # fmt: skip
def test_nonsense_is_refused_in_words(bad: str) -> None:
    with pytest.raises(TuneAssistError, match="trial 9"):
        read_program(bad, "trial 9")


def test_weights_go_from_nothing_to_the_heaviest() -> None:
    assert [weight_level(c, 2.0) for c in (None, 0.1, -2.0, 1.1)] == [0, 1, 4, 3]
    assert weight_level(1.0, 0.0) == 0


def test_diff_folds_long_equal_stretches_and_marks_changes() -> None:
    left = [f"line {i}" for i in range(20)]
    right = [*left[:10], "changed", *left[11:], "added"]
    lines = side_by_side("\n".join(left), "\n".join(right))
    assert lines[0] == DiffLine("⋯", "7 equal lines", "7 equal lines")
    assert DiffLine("~", "line 10", "changed") in lines
    assert lines[-1] == DiffLine("+", "", "added")


def test_equal_texts_differ_nowhere() -> None:
    assert {line.sign for line in side_by_side("a\nb", "a\nb")} == {" "}
