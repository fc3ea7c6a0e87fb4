"""Configuration files in YAML or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml


class UnreadableFileError(ValueError):
    """The message names the file, and what is wrong with it."""


def read_yaml(path: Path) -> Any:
    """Return the content of a file. Duplicate keys are errors. Raises UnreadableFileError."""
    try:
        return decode_yaml(path.read_bytes(), strict=True)
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read: {error.strerror}; correct the path or its mode") from None
    except DecodeError as error:
        raise UnreadableFileError(f"{path}: is neither YAML nor JSON: {error}") from None
