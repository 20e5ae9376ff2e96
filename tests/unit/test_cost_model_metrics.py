"""Metrics of a cost model, against figures worked out by hand, and on degenerate input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tuneassist.cost_model import metrics

MEASURED = [1.0, 2.0, 3.0, 4.0]


def test_perfect_prediction() -> None:
    figures = metrics.evaluate(MEASURED, MEASURED)
    assert figures == {
        "pairwise_accuracy": 1.0, "spearman": pytest.approx(1.0), "kendall": pytest.approx(1.0), "top_1": 1.0,
        "top_5": 1.0, "top_10": 1.0, "rmse_log": 0.0, "r2_log": 1.0, "mape": 0.0,
    }  # fmt: skip


def test_pairwise_accuracy_counts_pairs() -> None:
    # Of the six pairs only (1, 2) is the wrong way round.
    assert metrics.pairwise_accuracy([2.0, 1.0, 3.0, 4.0], MEASURED) == pytest.approx(5 / 6)
    assert metrics.pairwise_accuracy([4.0, 3.0, 2.0, 1.0], MEASURED) == 0.0
    assert metrics.pairwise_accuracy([1.0, 1.0, 1.0, 1.0], MEASURED) == 0.5


def test_pairwise_accuracy_leaves_out_noise() -> None:
    measured = [1.0, 1.03, 2.0]
    assert metrics.pairwise_accuracy([2.0, 1.0, 3.0], measured, noise=0.04) == 1.0
    assert metrics.pairwise_accuracy([2.0, 1.0, 3.0], measured, noise=0.02) == pytest.approx(2 / 3)


def test_top_k_is_the_best_of_those_ranked_first() -> None:
    predicted = [3.0, 1.0, 2.0, 4.0]
    assert metrics.top_k_score(predicted, MEASURED, 1) == 0.5
    assert metrics.top_k_score(predicted, MEASURED, 3) == 1.0
    assert metrics.top_k_score(predicted, MEASURED, 0) is None


def test_regression_figures() -> None:
    predicted = [math.e, 2.0 * math.e]
    assert metrics.rmse_log(predicted, [1.0, 2.0]) == pytest.approx(1.0)
    assert metrics.mape([2.0, 2.0], [1.0, 2.0]) == pytest.approx(0.5)
    assert metrics.r2_log([1.5, 1.5], [1.0, 2.25]) == pytest.approx(0.0)


@pytest.mark.parametrize("predicted, measured", [([], []), ([1.0], [2.0]), ([1.0, 2.0], [3.0, 3.0])])
def test_degenerate_input_has_no_rank_figures(predicted: list[float], measured: list[float]) -> None:
    figures = metrics.evaluate(predicted, measured)
    assert [figures[name] for name in ("pairwise_accuracy", "spearman", "kendall", "r2_log")] == [None] * 4


def test_failed_trials_are_left_out() -> None:
    figures = metrics.evaluate([1.0, 2.0, 9.0, np.nan], [1.0, 2.0, np.inf, 5.0])
    assert figures["pairwise_accuracy"] == 1.0
    assert figures["mape"] == 0.0


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        metrics.spearman([1.0, 2.0], [1.0, 2.0, 3.0])
