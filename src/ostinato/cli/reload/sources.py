"""The sources of a program: the Python files beside it, and those in the packages beside it.

Of an installed package, its own files. Other files, such as those of installed dependencies, are not watched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import add_to_path, is_path, syntax_error

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class Stamp(NamedTuple):
    """The state of a file; a write changes it."""

    modified: int
    size: int
    inode: int


class Sources:
    def __init__(self, targets: Iterable[str]) -> None:
        """`targets`: files, modules and packages. CommandError if one does not exist."""
        self._roots = sorted({_root(each) for each in targets})
        self._seen = dict(self._files())

    def changed(self) -> list[Path]:
        """Return the files that were written, created or removed since the last call."""
        before, self._seen = self._seen, dict(self._files())
        return [Path(each) for each in sorted({name for name, _ in before.items() ^ self._seen.items()})]

    def _files(self) -> Iterator[tuple[str, Stamp]]:
        for root in self._roots:
            installed = not _INSTALLED.isdisjoint(root.parts)
            yield from _stamps(root, everywhere=installed)


def syntax_errors(files: Iterable[Path]) -> list[str]:
    """Return the syntax errors of the files, one message each. Files that were removed have none."""
    return [str(error) for each in files if (error := syntax_error(each)) is not None]


def _root(target: str) -> Path:
    """Return the directory to watch: of the import path or, of an installed package, the package's."""
    if is_path(target):
        path = Path(target).resolve()
        path = path / "__init__.py" if path.is_dir() else path
        if not path.exists():
            raise CommandError(f"{target}: no such file")
    else:
        add_to_path(Path.cwd())
        package = target.partition(".")[0]
        spec = find_spec(package) if package else None
        if spec is None or spec.origin is None:
            raise CommandError(f"{target}: no such file or module")
        path = Path(spec.origin)
    directory = path.parent
    if _INSTALLED.isdisjoint(directory.parts):
        while (directory / "__init__.py").exists():
            directory = directory.parent
    return directory


def _stamps(directory: Path, *, everywhere: bool) -> Iterator[tuple[str, Stamp]]:
    """Return the Python files of a directory and of the packages in it; `everywhere`: of all directories in it."""
    try:
        entries = [*os.scandir(directory)]
    except OSError:  # removed meanwhile
        return
    for entry in entries:
        try:
            if entry.name.endswith(".py") and entry.is_file():
                status = entry.stat()
                yield entry.path, Stamp(status.st_mtime_ns, status.st_size, status.st_ino)
            elif entry.name[0] not in "._" and entry.is_dir():
                path = Path(entry.path)
                if everywhere or (path / "__init__.py").exists():
                    yield from _stamps(path, everywhere=everywhere)
        except OSError:
            continue
