"""Generated files of a directory: write those that differ, remove stale ones, or report both.

A file is replaced as a whole or not at all.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def write(files: Mapping[str, str], directory: Path, stale: Iterable[str]) -> list[str]:
    """Write `files` and remove `stale` ones; return the names of written and removed files."""
    changed = []
    for name, text in sorted(files.items()):
        path = directory / name
        if read(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, text)
            changed.append(name)
    for name in stale:
        (directory / name).unlink()
        changed.append(name)
    return changed


def check(files: Mapping[str, str], directory: Path, stale: Iterable[str], *, source: str, gone: str) -> list[str]:
    """Return what `write` would change, as unified diffs.

    `source`: what the files are generated from. `gone`: why stale ones are removed.
    """
    problems = []
    for name, text in sorted(files.items()):
        found = read(directory / name)
        if found is None:
            problems.append(f"{name}: missing\n")
        elif found != text:
            lines = (found.splitlines(keepends=True), text.splitlines(keepends=True))
            problems.append("".join(difflib.unified_diff(*lines, f"{name} (on disk)", f"{name} (from {source})")))
    return problems + [f"{name}: {gone}\n" for name in stale]


def read(path: Path) -> str | None:
    """Return the text of a file; None if it does not exist, "" if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # two commands may run at the same time
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
