"""`tuneassist model list` and `info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from tuneassist.commands._main import cli
from tuneassist.cost_model import checkpoint
from tuneassist.cost_model.registry import create_cost_model
from tuneassist.errors import UsageError
from tuneassist.storage.sqlite import open_store


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "assets"
    folder.mkdir()
    monkeypatch.setattr("tuneassist.storage.models.assets_path", lambda: folder)
    return folder


@pytest.fixture
def gcn(tmp_path: Path) -> Path:
    path = tmp_path / "gcn.pt"
    create_cost_model("gcn").save(path)
    return path


def model(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["model", *arguments])


def info(path: Path | str, code: int = 0) -> dict[str, Any]:
    result = model("info", str(path), "--json")
    assert result.exit_code == code, result.output
    about: dict[str, Any] = json.loads(result.stdout)
    return about


def test_no_model_is_said(assets: Path) -> None:
    result = model("list")
    assert result.exit_code == 0 and result.stdout == ""
    assert "No checkpoint is known" in result.stderr
    assert json.loads(model("list", "--json").stdout)["models"] == []


def test_stored_and_packaged_models_are_listed(assets: Path, gcn: Path, tmp_path: Path) -> None:
    gcn.rename(assets / "gnn.pt")
    (assets / "gnn.json").write_text(json.dumps({"kind": "gnn", "trained_on": "the shipped data"}))
    db = tmp_path / "s.sqlite"
    with open_store(db) as store:
        store.connection.execute(
            "INSERT INTO cost_models (kind, path, sha256, trained_on, metrics_json, created_at)"
            " VALUES ('mlp', '/gone/mlp.pt', 'abc', 'run 3', '{\"pairwise\": 0.8}', 1760000000)"
        )
        store.connection.commit()
    rows = json.loads(model("list", "--db", str(db), "--json").stdout)["models"]
    assert [(row["kind"], row["from"], row["exists"]) for row in rows] == [
        ("mlp", "database", False), ("gnn", "installation", True),
    ]  # fmt: skip
    text = model("list", "--db", str(db)).stdout
    assert "/gone/mlp.pt (gone)" in text and "the shipped data" in text


def test_info_tells_header_and_figures(assets: Path, gcn: Path) -> None:
    about = info(gcn)
    assert about["usable"] and about["kind"] == "gcn" and about["problem"] is None
    assert about["sha256"] == checkpoint.header(gcn)["sha256"]
    gcn.with_suffix(".json").write_text(json.dumps({"trained_on": "12 workloads", "pairwise": 0.8}))
    about = info(gcn)
    assert about["trained_on"] == "12 workloads" and about["metrics"]["pairwise"] == 0.8
    assert "metrics.pairwise             0.8" in model("info", str(gcn)).stdout


def test_pretrained_names_the_packaged_model(assets: Path, gcn: Path) -> None:
    result = CliRunner().invoke(cli, ["model", "info", "pretrained"], standalone_mode=False)
    assert isinstance(result.exception, UsageError) and "without a pretrained model" in str(result.exception)
    gcn.rename(assets / "gcn.pt")
    assert info("pretrained")["path"] == str(assets / "gcn.pt")


def test_what_this_version_cannot_use_is_shown_with_the_reason(gcn: Path) -> None:
    data = torch.load(gcn, weights_only=True)
    name = next(name for name, value in data["state"].items() if value.numel() > 1)
    data["state"][name].view(-1)[0] += 1
    torch.save(data, gcn.with_name("changed.pt"))
    assert "its hash is not" in info(gcn.with_name("changed.pt"), code=2)["problem"]
    head = json.loads(data["header"])
    for change, words in (
        ({"feature_version": 99}, "features of version 99"),
        ({"architecture": {**head["architecture"], "0.width": 8}}, "'0.width': 8"),
        ({"architecture": {"kind": "oracle"}}, "oracle"),
    ):
        torch.save({**data, "header": json.dumps({**head, **change})}, gcn.with_name("other.pt"))
        about = info(gcn.with_name("other.pt"), code=2)
        assert not about["usable"] and words in about["problem"]
    torch.save({**data, "header": json.dumps({**head, "architecture": None})}, gcn.with_name("none.pt"))
    assert "lacks the header" in model("info", str(gcn.with_name("none.pt")), "--json").stdout


def test_what_is_no_checkpoint_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no checkpoint")
    result = model("info", str(tmp_path / "text.pt"), "--json")
    assert json.loads(result.stdout)["exit_code"] == 2
    assert isinstance(result.exception, UsageError)
    assert "There is no checkpoint" in json.loads(model("info", "absent.pt", "--json").stdout)["error"]
