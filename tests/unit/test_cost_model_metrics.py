"""Metrics of a cost model, against figures worked out by hand, and on degenerate input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tuneassist.cost_model import metrics
from tuneassist.cost_model.mixture import Mixture

MEASURED = [1.0, 2.0, 3.0, 4.0]


def test_perfect_prediction() -> None:
    figures = metrics.evaluate(MEASURED, MEASURED)
    assert figures == {
        "pairwise_accuracy": 1.0, "spearman": pytest.approx(1.0), "kendall": pytest.approx(1.0), "top_1": 1.0,
        "top_5": 1.0, "top_10": 1.0, "rmse_log": 0.0, "r2_log": 1.0, "mape": 0.0,
        "calibration": 1.0, "bias_log": 0.0,
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


def test_calibration_counts_both_ways() -> None:
    assert metrics.within_factor([1.4, 1.6, 0.7, 0.6], [1.0] * 4) == 0.5
    assert metrics.within_factor([], []) is None


def test_a_rare_component_cannot_hide() -> None:
    mixture = Mixture(np.array([0.1, 0.9]), np.log([1.0, 100.0]), np.array([0.3, 0.3]), 0.0, 0.0, 0.0)
    slow = np.linspace(90.0, 110.0, 18)
    measured = np.concatenate([[0.9, 1.1], slow])
    # The two fast trials are predicted slower than all others, and the wrong way round.
    predicted = np.concatenate([[300.0, 250.0], slow])
    fast, common = metrics.by_component(predicted, measured, mixture)
    assert (fast["count"], common["count"]) == (2, 18)
    assert fast["mean_secs"] == pytest.approx(1.0)
    assert fast["pairwise_accuracy"] == 0.0
    assert fast["pairwise_across"] == common["pairwise_across"] == 0.0
    assert fast["bias_log"] == pytest.approx(np.log(300 / 0.9) / 2 + np.log(250 / 1.1) / 2)
    assert common["pairwise_accuracy"] == 1.0
    overall = metrics.pairwise_accuracy(predicted, measured)
    assert overall is not None and overall > 0.7


def test_an_empty_component_has_no_figures() -> None:
    mixture = Mixture(np.array([0.5, 0.5]), np.log([1e-9, 1.0]), np.array([0.1, 0.1]), 0.0, 0.0, 0.0)
    empty, full = metrics.by_component([1.0, 1.1], [1.0, 1.2], mixture)
    assert empty["count"] == 0 and empty["pairwise_accuracy"] is None and empty["pairwise_across"] is None
    assert full["share"] == 1.0


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        metrics.spearman([1.0, 2.0], [1.0, 2.0, 3.0])
