"""Changes of a project's files: a three-way merge of what was generated, what is there, and what is generated now.

- Edits are never lost: they are merged, or kept between conflict markers. Deleted files stay deleted.
- All new texts are on disk before the first file is replaced; the record is replaced last. A command that dies half-way
  leaves every file as it was or as it should be, and can be repeated.
- Only regular files below the project's directory are read or written; a symbolic link on the way is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from ostinato.scaffold.error import ScaffoldError
from ostinato.scaffold.merge import has_markers, merge
from ostinato.scaffold.project import RECORD, Project

Action = Literal["create", "update", "conflict", "delete", "keep"]


class Change(NamedTuple):
    action: Action
    path: str
    text: str | None = None  # new contents; None for files that are not written
    note: str = ""


class Versions(NamedTuple):
    """What was generated, and what is generated now, by path."""

    old: Mapping[str, str]
    new: Mapping[str, str]


def plan(root: Path, versions: Versions, label: str) -> list[Change]:
    """Return the changes of the files, sorted by path. `label`: name of the generated side in conflict markers."""
    paths = sorted({*versions.old, *versions.new})
    changes = (_change(path, _read(root, path), versions, label) for path in paths)
    return [each for each in changes if each is not None]


def _change(path: str, ours: str | None, versions: Versions, label: str) -> Change | None:
    old, new = versions.old.get(path), versions.new.get(path)
    if new in (old, ours):
        return None
    if new is None:
        if ours is None:
            return None
        return Change("delete", path) if ours == old else Change("keep", path, note="no longer generated, but edited")
    if ours is None:
        return Change("keep", path, note="deleted in the project") if old is not None else Change("create", path, new)
    if has_markers(ours):
        raise ScaffoldError(f"{path} has conflict markers; resolve them first")
    merged = merge(old or "", ours.replace("\r\n", "\n"), new, labels=("yours", label))
    text = merged.text.replace("\n", "\r\n") if "\r\n" in ours else merged.text
    if text == ours:
        return None
    return Change("conflict" if merged.conflicts else "update", path, text)


def apply(root: Path, changes: Sequence[Change], project: Project) -> None:
    """Write the changes and the project's record; ScaffoldError if a file cannot be written."""
    record = Change("update", RECORD, project.encode())
    staged: list[tuple[Path, Path]] = []
    try:
        for change in (*changes, record):
            if change.text is not None:
                staged.append(_stage(root, change.path, change.text))  # noqa: PERF401 - kept if a later one fails
        for change in changes:
            if change.action == "delete":
                (root / change.path).unlink()
        for temporary, target in staged:
            temporary.replace(target)
    except OSError as error:
        raise ScaffoldError(f"cannot write {error.filename or root}: {error.strerror}") from None
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def existing(root: Path, paths: Mapping[str, str]) -> list[str]:
    """Return those of the paths that exist with other contents."""
    return sorted(path for path, text in paths.items() if _read(root, path) not in (None, text))


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Exclude other commands from the project; ScaffoldError if one is at work."""
    import fcntl  # noqa: PLC0415 - not on Windows, where the other commands must be importable

    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ScaffoldError(f"another ostinato command is changing {root}; try again when it has ended") from None
    finally:
        os.close(descriptor)


def _read(root: Path, path: str) -> str | None:
    target = _checked(root, path)
    try:
        return target.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise ScaffoldError(f"{target} is not UTF-8 text; convert it, or move it away") from None
    except OSError as error:
        raise ScaffoldError(f"cannot read {target}: {error.strerror}") from None


def _checked(root: Path, path: str) -> Path:
    """Return the path of a file; ScaffoldError if it leads through a symbolic link."""
    target = root
    for part in Path(path).parts:
        target /= part
        if target.is_symlink():
            raise ScaffoldError(f"{target} is a symbolic link; replace it by what it points to")
    return target


def _stage(root: Path, path: str, text: str) -> tuple[Path, Path]:
    """Write a text beside its file, durably; return the temporary and the final path."""
    target = _checked(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.ostinato-new")
    temporary.unlink(missing_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o777 if text.startswith("#!") else 0o666
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary, target
