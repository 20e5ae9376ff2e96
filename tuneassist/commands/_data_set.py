"""The data set that a command works on, and progress while it is read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tuneassist.config import assets_path
from tuneassist.errors import UsageError

SHIPPED = "dataset.sqlite.xz"
"""In the assets."""

Progress = Callable[[int, int], None]


def data_path(named: Path | None) -> str:
    """The data set named, or the shipped one.

    Raises:
        UsageError: There is no such file.
    """
    path = named if named is not None else assets_path() / SHIPPED
    if not path.is_file():
        raise UsageError(
            f"There is no data set {path}.",
            remedy="Name a tuneassist database; `tuneassist dataset collect` measures one.",
        )
    return str(path)


@contextmanager
def progress_bar(text: str) -> Iterator[Progress]:
    """A bar on stderr where that is a terminal; what is yielded takes how much of how much is done."""
    if not sys.stderr.isatty():
        yield lambda done, of: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
