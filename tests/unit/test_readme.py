"""README says what the program says: its command reference is the help text, word for word.

After a change of the command line: `python tests/unit/test_readme.py` writes the reference anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
from click.testing import CliRunner

from tuneassist.commands import _group
from tuneassist.commands._main import cli

README = Path(__file__).parents[2] / "README.md"
_REFERENCE = re.compile(r"(?<=<!-- reference -->\n).*(?=<!-- /reference -->)", re.DOTALL)


def reference() -> str:
    """Help of the main command and of each subcommand, as README shows it."""
    shown = [_help([])]
    for name in sorted(_group.SUBCOMMANDS):
        shown.append(_help([name]))
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            shown += [_help([name, sub]) for sub in sorted(command.commands)]
    return "\n".join(shown)


def _help(path: list[str]) -> str:
    text = CliRunner().invoke(cli, [*path, "--help"], prog_name="tuneassist", terminal_width=100).output
    title = " ".join(["tuneassist", *path])
    return f"### {title}\n\n```\n{text.rstrip()}\n```\n"


def test_the_command_reference_is_the_help_text() -> None:
    found = _REFERENCE.search(README.read_text(encoding="utf-8"))
    assert found is not None
    # In a fresh process: click keeps the help option of a command that another test called on its own.
    fresh = subprocess.run([sys.executable, __file__, "--print"], capture_output=True, text=True, check=True)
    assert found.group() == fresh.stdout, "run: python tests/unit/test_readme.py"


def test_the_two_commands_come_first() -> None:
    text = README.read_text(encoding="utf-8")
    assert 0 < text.index("make tune") < text.index("make test") < 1500


if __name__ == "__main__" and "--print" in sys.argv:
    sys.stdout.write(reference())
elif __name__ == "__main__":
    README.write_text(
        _REFERENCE.sub(lambda _: reference(), README.read_text(encoding="utf-8")), encoding="utf-8"
    )
