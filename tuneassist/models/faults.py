"""What is wrong with a model, found before and while it is loaded."""

from __future__ import annotations

import psutil

from tuneassist.errors import UsageError

_COPIES = 6
"""The file's bytes, the importer's weights, TVM's, folded and packed ones, and those of the references."""


def check_memory(name: str, weight_bytes: int) -> None:
    """Refuse a model that would not fit into memory.

    Raises:
        UsageError: Loading it would take more than is available now.
    """
    available = psutil.virtual_memory().available
    if _COPIES * weight_bytes > available:
        raise UsageError(
            f"{name} is too large for memory: its weights take {weight_bytes / 2**30:.1f} GiB, loading and "
            f"comparing it about {_COPIES} times that, and {available / 2**30:.1f} GiB are available.",
            remedy="Take a smaller model, part of it (a block), or free memory.",
        )


def cause(error: BaseException, limit: int = 300) -> str:
    """The line of a foreign error that says most, without a traceback and its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines and "Traceback" in lines[0] else (lines[0] if lines else type(error).__name__)
    text = text.rstrip(".")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
