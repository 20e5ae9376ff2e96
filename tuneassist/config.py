"""Where things are kept, and the settings file.

A setting comes from a flag, else the environment, else the TOML file in the user's config folder, else
its default. `config_path()` names the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import platformdirs

from tuneassist.errors import UsageError

_APP = "tuneassist"


@dataclass(frozen=True, slots=True)
class Config:
    """What the settings file may hold; None means that it says nothing."""

    db: str | None = None
    target: str | None = None
    trials: int | None = None
    cost_model: str | None = None
    seed: int | None = None
    theme: str | None = None


def config_path() -> Path:
    """The settings file, whether or not it exists (`TUNEASSIST_CONFIG` names another)."""
    named = os.environ.get("TUNEASSIST_CONFIG")
    return Path(named) if named else Path(platformdirs.user_config_dir(_APP)) / "config.toml"


def load_config() -> Config:
    """Read the settings file; an absent one is empty.

    Raises:
        UsageError: It is not TOML, or holds an unknown or ill-typed setting.
    """
    path = config_path()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The settings file {path} can't be read: {error}", remedy="Correct it, or move it away."
        ) from error
    return _checked(path, data)


def _checked(path: Path, data: dict[str, Any]) -> Config:
    types = {f.name: int if f.name in ("trials", "seed") else str for f in fields(Config)}
    for key, value in data.items():
        if key not in types:
            raise UsageError(
                f"The settings file {path} holds {key!r}, which is no setting.",
                remedy=f"Known settings: {', '.join(types)}.",
            )
        if not isinstance(value, types[key]) or isinstance(value, bool):
            raise UsageError(
                f"The settings file {path} has {key} = {value!r}.",
                remedy=f"{key} takes {'a whole number' if types[key] is int else 'text'}.",
            )
    return Config(**data)


def database_path(flag: str | None) -> Path:
    """The database: the flag, else `TUNEASSIST_DB`, else the settings file, else the user's data folder."""
    if flag == "":
        raise UsageError("--db names no file.", remedy="Name one, or leave --db out for the default.")
    named = flag or os.environ.get("TUNEASSIST_DB") or load_config().db
    if named:
        return Path(named).expanduser()
    return Path(platformdirs.user_data_dir(_APP)) / "tuneassist.sqlite"


def assets_path() -> Path:
    """The folder with the pretrained model and the measured data set: in the wheel, or the checkout."""
    packaged = Path(__file__).parent / "assets"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "assets"


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `90`, `90s`, `10m` or `1.5h`.

    Raises:
        UsageError: It is none, or not positive.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip(), re.ASCII)
    secs = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
    if not secs > 0:
        raise UsageError(
            f"{text!r} is no duration.", remedy="Write a positive number with its unit: 90s, 10m or 2h."
        )
    return secs
