"""The models and doctor screens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ui_fakes import FakeCommands, FakeReader, fake_services, screen_text, until

from tuneassist.errors import MachineError
from tuneassist.storage.models import ModelRow
from tuneassist.ui.app import TuneAssistApp

CHECKS = {
    "ok": False,
    "checks": [
        {"id": "tvm", "status": "ok", "seen": "0.27.0.post1"},
        {"id": "noise", "status": "warning", "seen": "12 % spread", "remedy": "Close other programs."},
        {"id": "disk", "status": "error", "seen": "3 MB free", "remedy": "Free space."},
    ],
}
METRICS = {"pairwise": 0.81, "top": {"1": 0.7}, "splits": "by workload"}


async def test_checks_are_listed_worst_first_with_what_to_do(tmp_path: Path) -> None:
    app = TuneAssistApp(fake_services(tmp_path, commands=FakeCommands({"doctor": CHECKS})))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("c")
        await until(pilot, lambda: "✗ error" in screen_text(app) and "Free space." in screen_text(app))
        text = screen_text(app)
        assert text.index("disk") < text.index("noise") < text.index("tvm")
        await pilot.press("down")
        await until(pilot, lambda: "Close other programs." in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: len(app.services.commands.calls) == 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "words"),
    [(MachineError("`tuneassist doctor` took too long.", remedy="Run it in a shell."), "Run it in a shell"),
     ("no json", "can't be read"), ({"checks": [{"status": "ok"}]}, "can't be read")],
)  # fmt: skip
async def test_a_doctor_that_fails_says_why(tmp_path: Path, answer: Any, words: str) -> None:
    app = TuneAssistApp(fake_services(tmp_path, commands=FakeCommands({"doctor": answer})))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("c")
        await until(pilot, lambda: words in screen_text(app))


async def test_models_show_their_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gcn.pt").write_bytes(b"weights")
    (tmp_path / "gcn.json").write_text(json.dumps({"kind": "gcn", "trained_on": "measured set", **METRICS}))
    (tmp_path / "odd.pt").write_bytes(b"weights")
    (tmp_path / "odd.json").write_text("not json")
    monkeypatch.setattr("tuneassist.storage.models.assets_path", lambda: tmp_path)
    stored = ModelRow("mlp", "/data/mlp.pt", "f" * 64, "run 3", 1_760_000_000.0, {"rmse": 0.2})
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader(model_rows=[stored])))
    async with app.run_test(size=(220, 24), notifications=True) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: "measured set" in screen_text(app) and "rmse" in screen_text(app))
        assert "odd.pt" in screen_text(app)
        await pilot.press("down")
        await until(pilot, lambda: "top.1" in screen_text(app) and "0.81" in screen_text(app))
        await pilot.press("c")
        assert app.clipboard == str(tmp_path / "gcn.pt")


async def test_no_model_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneassist.storage.models.assets_path", lambda: tmp_path / "absent")
    app = TuneAssistApp(fake_services(tmp_path))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: "No checkpoint yet" in screen_text(app))


ABOUT = {"path": "/data/mlp.pt", "usable": False, "problem": "another architecture", "feature_version": 7}
GONE = {"error": "There is no checkpoint /data/mlp.pt.", "remedy": "Name a file.", "exit_code": 2}


@pytest.mark.parametrize(
    ("answer", "words"),
    [(ABOUT, "another architecture"), (GONE, "Name a file."), ("no json", "can't be read")],
)
async def test_enter_opens_a_checkpoint_and_says_whether_it_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    monkeypatch.setattr("tuneassist.storage.models.assets_path", lambda: tmp_path / "absent")
    stored = ModelRow("mlp", "/data/mlp.pt", "f" * 64, "run 3", 1_760_000_000.0, {"rmse": 0.2})
    commands = FakeCommands({"model info /data/mlp.pt --json": answer})
    app = TuneAssistApp(fake_services(tmp_path, reader=FakeReader(model_rows=[stored]), commands=commands))
    async with app.run_test(size=(160, 24), notifications=True) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: "/data/mlp.pt (gone)" in screen_text(app) and "rmse" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: words in screen_text(app))
