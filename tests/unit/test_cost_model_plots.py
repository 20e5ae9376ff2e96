"""Plots are files of the kind asked for, or an error that says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tuneassist.cost_model.mixture import fit_mixture
from tuneassist.cost_model.plots import (
    Distribution,
    Predicted,
    plot_ablation,
    plot_distributions,
    plot_predictions,
)
from tuneassist.errors import UsageError

SECS = np.exp(np.random.default_rng(0).normal(-6, 1, 40))


def panels(count: int) -> list[Predicted]:
    return [Predicted(f"w{i}", SECS * 1.1, SECS, np.arange(40) % 3, note=f"panel {i}") for i in range(count)]


def svg_text(path: Path) -> str:
    """Comments of an SVG say what each text drawn as a path reads."""
    return path.read_text(encoding="utf-8")


def test_each_workload_gets_a_panel_with_its_name(tmp_path: Path) -> None:
    plot_predictions(panels(5), tmp_path / "p.svg", title="held out")
    text = svg_text(tmp_path / "p.svg")
    assert all(f"<!-- w{i}" in text for i in range(5))
    assert "held out" in text and "measured, ms" in text


def test_predictions_that_are_no_times_are_left_out(tmp_path: Path) -> None:
    odd = Predicted("odd", np.array([np.nan, 0.0, -1.0]), np.array([1.0, 1.0, 1.0]))
    plot_predictions([odd], tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_ablation_names_each_variant_with_its_figure(tmp_path: Path) -> None:
    plot_ablation({"all": 0.85, "no edges": 0.81}, {"all": 0.01}, tmp_path / "a.svg", metric="pairwise")
    text = svg_text(tmp_path / "a.svg")
    assert all(f"<!-- {word} -->" in text for word in ("all", "no edges", "0.850", "0.810", "pairwise"))


def test_distributions_are_drawn_with_and_without_a_mixture(tmp_path: Path) -> None:
    drawn = [Distribution("fitted", SECS, fit_mixture(np.log(SECS))), Distribution("few", SECS[:3], None)]
    plot_distributions(drawn, tmp_path / "d.svg")
    text = svg_text(tmp_path / "d.svg")
    assert "<!-- fitted -->" in text and "<!-- few -->" in text and "<!-- mixture of" in text


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to plot"):
        plot_predictions([], tmp_path / "p.png")
    with pytest.raises(UsageError, match="no kind of picture"):
        plot_predictions(panels(1), tmp_path / "p.doc")
    with pytest.raises(UsageError, match=r"can't be written: No such file"):
        plot_predictions(panels(1), tmp_path / "absent" / "p.png")


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, tuneassist.cost_model.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
