"""Files and folders that appear whole or not at all, and overwrite nothing unless told to."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from tuneassist.errors import UsageError


@contextlib.contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A path beside `path` to write to, which becomes `path` when the block ends without an error.

    Raises:
        UsageError: `path` exists and `force` is not set, is a folder, or can't be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", remedy="Name a file with -o PATH.")
    with _beside(path) as scratch:
        _refuse_existing(path, force=force)
        part = scratch / path.name
        yield part
        # Again: another process may have made it meanwhile.
        _refuse_existing(path, force=force)
        os.replace(part, path)


@contextlib.contextmanager
def new_folder(path: Path, *, force: bool, holds: Collection[str]) -> Iterator[Path]:
    """A folder beside `path` to fill, which becomes `path` when the block ends without an error.

    An empty folder may be there already. `force` replaces a folder only if it holds nothing but files of
    the names in `holds`: what is not ours is never deleted.

    Raises:
        UsageError: `path` exists and may not be replaced, or can't be written.
    """
    with _beside(path) as scratch:
        _refuse_foreign(path, force=force, holds=holds)
        part = scratch / "new"
        part.mkdir()
        yield part
        _refuse_foreign(path, force=force, holds=holds)
        if path.exists():
            os.rename(path, scratch / "old")
        os.rename(part, path)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A scratch folder on the same file system, so that a rename moves; gone after the block."""
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", dir=path.parent))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield scratch
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{path} can't be written: {error.strerror or error}.",
        remedy="Name a place in an existing folder that you may write to, with enough room.",
    )


def _refuse_existing(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise UsageError(f"{path} exists already.", remedy="Add --force to replace it, or name another.")


def _refuse_foreign(path: Path, *, force: bool, holds: Collection[str]) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"{path} is a file.", remedy="This format makes a folder: name a new one.")
    names = sorted(item.name for item in path.iterdir())
    if not names:
        return
    if others := [name for name in names if name not in holds]:
        raise UsageError(
            f"The folder {path} holds other files, such as {others[0]}.", remedy="Name a new folder."
        )
    _refuse_existing(path, force=force)
