"""Write the files of a package, or check that they are up to date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ostinato.crd.generated_files import check, read, write
from ostinato.packaging.headers import HEADER, KEPT, TEMPLATE_HEADER


def write_files(files: Mapping[str, str], directory: Path) -> list[str]:
    """Update the directory; return the names of written and removed files.

    Files that begin with KEPT are written once.
    """
    return write(_wanted(files, directory), directory, _stale(files, directory))


def check_files(files: Mapping[str, str], directory: Path) -> list[str]:
    """Return what `write_files` would change, as unified diffs."""
    wanted, stale = _wanted(files, directory), _stale(files, directory)
    return check(wanted, directory, stale, source="the program", gone="no longer part of the package")


def _wanted(files: Mapping[str, str], directory: Path) -> Mapping[str, str]:
    return {name: text for name, text in files.items() if not (text.startswith(KEPT) and (directory / name).exists())}


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
        if path.is_file() and not path.is_symlink() and (read(path) or "").startswith((HEADER, TEMPLATE_HEADER)):
            yield path.relative_to(directory).as_posix()
