"""Mixtures fitted to log times."""

from __future__ import annotations

import numpy as np
import pytest

from tuneassist.cost_model.mixture import fit_mixture
from tuneassist.errors import UsageError


def test_two_modes_are_found_with_their_shares() -> None:
    random = np.random.default_rng(1)
    logs = np.concatenate([random.normal(-7.0, 0.2, 60), random.normal(-4.0, 0.4, 240)])
    mixture = fit_mixture(logs)
    assert mixture.components == 2
    assert mixture.weights == pytest.approx([0.2, 0.8], abs=0.02)
    assert mixture.means == pytest.approx([-7.0, -4.0], abs=0.1)
    assert mixture.stds == pytest.approx([0.2, 0.4], abs=0.06)
    assert mixture.bic < mixture.normal_bic - 50
    assert mixture.normality_p < 1e-3
    assert mixture.component([-7.1, -3.9, -20.0, 50.0]).tolist() == [0, 1, 1, 1]
    at = np.linspace(-9, -1, 2001)
    assert np.trapezoid(mixture.densities(at).sum(axis=1), at) == pytest.approx(1.0, abs=1e-3)


def test_one_normal_distribution_stays_one() -> None:
    mixture = fit_mixture(np.random.default_rng(2).normal(-6.0, 0.5, 300))
    assert mixture.components == 1
    assert mixture.bic == mixture.normal_bic
    assert mixture.normality_p > 0.05


@pytest.mark.parametrize(
    ("logs", "words"),
    [([], "0 valid trials"), ([-6.0] * 19, "19 valid trials"), ([-6.0] * 40, "same time, 0.00248 s"),
     ([np.nan] * 30, "0 valid trials")],
)  # fmt: skip
def test_what_has_no_distribution_is_refused(logs: list[float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fit_mixture(logs)


def test_components_are_no_narrower_than_the_noise_of_repeats() -> None:
    mixture = fit_mixture([-6.0] * 15 + [-5.0] * 15)
    assert mixture.components == 2
    assert mixture.means == pytest.approx([-6.0, -5.0], abs=0.01)
    assert mixture.stds == pytest.approx([0.04, 0.04])
