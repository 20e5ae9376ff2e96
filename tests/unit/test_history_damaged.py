"""History of damaged files: an error that says what to do, or what is readable; never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_rows import failed, ok, start_run

from tuneassist.commands.history import command
from tuneassist.errors import TuneAssistError
from tuneassist.records import Round, RunStatus, TrialStatus
from tuneassist.storage.maintenance import problems
from tuneassist.storage.reading import reading
from tuneassist.storage.salvage import salvage
from tuneassist.storage.sqlite import open_store

COMMANDS = (
    ["list"], ["show", "1"], ["best", "--all-machines"], ["trials", "1"], ["compare", "1", "2"],
    ["sql", "SELECT * FROM trials"],
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("store") / "t.sqlite"
    with open_store(path) as store:
        for _ in range(2):
            place = start_run(store)
            store.add_trials(ok(place, n, 1.0 / n, trace_json="[1]" * 300) for n in range(1, 40))
            store.add_trial(failed(place, 40, TrialStatus.RUN_ERROR))
            store.add_round(Round(place.run, place.task, 1, 40, 39, 0.5, 0.5, {"build": 1.0}))
            store.end_run(place.run, RunStatus.DONE, result_json="{}")
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits(sound: bytes, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    content = bytearray(sound)
    for _ in range(draw.choice((1, 20, 400))):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path = tmp_path / "t.sqlite"
    path.write_bytes(content)
    for arguments in COMMANDS:
        result = CliRunner().invoke(command, [*arguments, "--db", str(path)])
        if result.exception is not None:
            assert isinstance(result.exception, TuneAssistError), result.exc_info
            assert result.exception.remedy
    try:
        salvage(path, tmp_path / "new.sqlite")
    except TuneAssistError:
        return
    with reading(tmp_path / "new.sqlite") as conn:
        assert problems(conn) == []


def test_problems_are_found(sound: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(sound)
    with reading(path) as conn:
        assert problems(conn) == []
    middle = len(sound) // 2
    path.write_bytes(sound[:middle] + bytes(8192) + sound[middle + 8192 :])
    with reading(path) as conn:
        assert 0 < len(problems(conn)) <= 5
