"""Checkpoint files: weights as tensors with a header, read without unpickling arbitrary objects."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tuneassist.cost_model.features import FEATURE_VERSION
from tuneassist.errors import UsageError

_FORMAT = "tuneassist cost model 1"
State = Mapping[str, npt.NDArray[np.generic]]
_REMEDY = "Name a checkpoint that this version of tuneassist wrote, or train one anew."


def write(path: str | Path, *, architecture: Mapping[str, int | float | str], state: State) -> None:
    """Write a checkpoint.

    Raises:
        UsageError: The file can't be written.
    """
    tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in state.items()}
    header = {
        "format": _FORMAT,
        "feature_version": FEATURE_VERSION,
        "architecture": dict(architecture),
        "sha256": digest(state),
    }
    try:
        torch.save({"header": json.dumps(header, sort_keys=True), "state": tensors}, str(path))
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"The checkpoint {path} can't be written: {error}", remedy="Name a folder that can be written to."
        ) from error


def header(path: str | Path) -> dict[str, Any]:
    """What a checkpoint says of itself: format, feature_version, architecture, sha256.

    Raises:
        UsageError: The file is no checkpoint.
    """
    return _open(path)[0]


def read(
    path: str | Path, *, architecture: Mapping[str, int | float | str]
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the weights of a checkpoint of that architecture.

    Raises:
        UsageError: It can't be read, is damaged, or is of another architecture or feature version.
    """
    head, tensors = _open(path)
    if head.get("feature_version") != FEATURE_VERSION:
        raise UsageError(
            f"The checkpoint {path} was trained on features of version {head.get('feature_version')}, "
            f"this is version {FEATURE_VERSION}.",
            remedy=_REMEDY,
        )
    if head.get("architecture") != dict(architecture):
        raise UsageError(
            f"The checkpoint {path} holds {head.get('architecture')}, not {dict(architecture)}.",
            remedy=_REMEDY,
        )
    state = {name: tensor.numpy() for name, tensor in tensors.items()}
    if digest(state) != head.get("sha256"):
        raise UsageError(
            f"The checkpoint {path} is damaged: its hash is not the one it names.", remedy=_REMEDY
        )
    return state


@contextmanager
def fitting(path: str | Path) -> Iterator[None]:
    """Turn the errors of weights that do not fit into a `UsageError` about the file."""
    try:
        yield
    except (KeyError, ValueError, IndexError) as error:
        raise UsageError(f"The checkpoint {path} does not fit: {error}", remedy=_REMEDY) from error


def digest(state: State) -> str:
    """SHA-256 over names, types, shapes and contents of the weights."""
    sha = hashlib.sha256()
    for name in sorted(state):
        value = np.ascontiguousarray(state[name])
        sha.update(f"{name}:{value.dtype.str}:{value.shape}:".encode())
        sha.update(value.tobytes())
    return sha.hexdigest()


def _open(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        data = torch.load(str(path), map_location="cpu", weights_only=True)
        head, tensors = json.loads(data["header"]), dict(data["state"])
        known = head.get("format") == _FORMAT and isinstance(head.get("architecture"), dict)
        if not known or not all(isinstance(t, torch.Tensor) for t in tensors.values()):
            raise ValueError("it lacks the header of one")
    except FileNotFoundError as error:
        raise UsageError(f"There is no checkpoint {path}.", remedy="Check the path.") from error
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, EOFError,
            pickle.UnpicklingError) as error:  # fmt: skip
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"{path} is no cost model checkpoint: {first[:200]}", remedy=_REMEDY) from error
    return head, tensors
