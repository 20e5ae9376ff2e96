"""Exports appear whole or not at all, and overwrite nothing unless told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuneassist.errors import UsageError
from tuneassist.exchange.output import new_file, new_folder


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(item.name for item in folder.iterdir())


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with new_file(path, force=False) as part:
        part.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_behind_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), new_file(tmp_path / "out.csv", force=False) as part:
        part.write_text("half")
        raise error
    with pytest.raises(error), new_folder(tmp_path / "db", force=False, holds=["a"]) as part:
        (part / "a").write_text("half")
        raise error
    assert names(tmp_path) == []


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(UsageError, match="exists already"), new_file(path, force=False) as part:
        part.write_text("new")
    assert path.read_text() == "old"
    with new_file(path, force=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"


def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), new_file(path, force=True) as part:
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"


def test_a_file_that_another_process_made_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with pytest.raises(UsageError, match="exists already"), new_file(path, force=False) as part:
        part.write_text("ours")
        path.write_text("theirs")
    assert path.read_text() == "theirs"


def test_a_place_that_can_not_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written"), new_file(tmp_path / "no" / "x", force=True):
        pass
    with pytest.raises(UsageError, match="is a folder"), new_file(tmp_path, force=True):
        pass


def test_force_replaces_a_folder_of_ours_and_no_other(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    with new_folder(ours, force=False, holds=["a", "b"]) as part:  # an empty folder may be there
        (part / "a").write_text("1")
    with pytest.raises(UsageError, match="exists already"), new_folder(ours, force=False, holds=["a", "b"]):
        pass
    with new_folder(ours, force=True, holds=["a", "b"]) as part:
        (part / "b").write_text("2")
    assert names(ours) == ["b"]
    (ours / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match=r"thesis\.tex"), new_folder(ours, force=True, holds=["a", "b"]):
        pass
    assert (ours / "thesis.tex").read_text() == "precious"


def test_a_folder_is_not_made_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(UsageError, match="is a file"), new_folder(path, force=True, holds=["file"]):
        pass
    assert path.read_text() == "x"
