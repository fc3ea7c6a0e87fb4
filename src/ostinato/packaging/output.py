"""Write the files of a package, or check that they are up to date."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ostinato.packaging.headers import HEADER, KEPT, TEMPLATE_HEADER


def write_files(files: Mapping[str, str], directory: Path) -> list[str]:
    """Update the directory; return the names of written and removed files.

    A file is replaced as a whole or not at all. Files that begin with KEPT are written once.
    """
    changed = []
    for name, text in sorted(files.items()):
        path = directory / name
        if not _differs(path, text):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
        changed.append(name)
    for name in _stale(files, directory):
        (directory / name).unlink()
        changed.append(name)
    return changed


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # two commands may run at the same time
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def check_files(files: Mapping[str, str], directory: Path) -> list[str]:
    """Return what `write_files` would change, as unified diffs."""
    problems = []
    for name, text in sorted(files.items()):
        found = _read(directory / name)
        if found is None:
            problems.append(f"{name}: missing\n")
        elif _differs(directory / name, text):
            lines = (found.splitlines(keepends=True), text.splitlines(keepends=True))
            problems.append("".join(difflib.unified_diff(*lines, f"{name} (on disk)", f"{name} (from the program)")))
    return problems + [f"{name}: no longer part of the package\n" for name in _stale(files, directory)]


def _differs(path: Path, text: str) -> bool:
    found = _read(path)
    return found != text and not (found is not None and text.startswith(KEPT))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""


def _stale(files: Mapping[str, str], directory: Path) -> list[str]:
    """Return the generated files (with our header) that are no longer part of the package.

    Only in the directories of its format: beside them there may be packages of other formats.
    """
    roots = {name.partition("/")[0] for name in files if "/" in name}
    if "base" in roots:
        roots.add("components")
    return [name for root in sorted(roots) for name in _generated(directory, root) if name not in files]


def _generated(directory: Path, root: str) -> Iterator[str]:
    for path in sorted((directory / root).rglob("*")):
        if path.is_file() and not path.is_symlink() and (_read(path) or "").startswith((HEADER, TEMPLATE_HEADER)):
            yield path.relative_to(directory).as_posix()
