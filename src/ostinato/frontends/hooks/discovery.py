"""Discovery: the hooks in a directory.

- A file is a hook if an execute bit is set, or if it is a Python file that imports `ostinato.frontends.hooks`: such a
  file is loaded into this process.
- Skipped: hidden files and directories, directories called `lib`, and the endings .yaml, .json, .md and .txt. Symbolic
  links to files are followed, as in mounted ConfigMaps; those to directories are not.
- Hooks are sorted by their path relative to the directory, which is their name.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_ENDINGS: Final = (".yaml", ".json", ".md", ".txt")
_LIBRARY: Final = "lib"
_PACKAGE: Final = "ostinato.frontends.hooks"


class HookFile(NamedTuple):
    name: str
    path: Path
    in_process: bool = False


class Found(NamedTuple):
    """`warnings`: files that look like hooks and are none."""

    hooks: list[HookFile]
    warnings: list[str]


def find_hooks(directory: Path) -> Found:
    """Search a directory. Raises OSError if it cannot be read."""
    os.scandir(directory).close()  # os.walk ignores errors
    hooks: list[HookFile] = []
    warnings: list[str] = []
    for path, in_library in _files(directory.resolve()):
        name = path.relative_to(directory.resolve()).as_posix()
        executable = bool(path.stat().st_mode & 0o111)
        if in_library:
            if executable:
                warnings.append(f"{name}: executable, but in a directory called lib, so not a hook")
        elif path.suffix == ".py" and imports_decorators(path):
            hooks.append(HookFile(name, path, in_process=True))
        elif executable:
            hooks.append(HookFile(name, path))
        elif path.suffix not in _ENDINGS:
            warnings.append(f"{name}: not executable, so not a hook; run chmod +x on it if it is one")
    return Found(sorted(hooks), warnings)


def fingerprint(directory: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return what identifies the state of each file, by path: inode, size, time and mode."""
    found = {}
    for path, _ in _files(directory.resolve(), everything=True):
        try:
            state = path.stat()
        except OSError:  # removed meanwhile
            continue
        found[str(path)] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_mode)
    return found


def _files(directory: Path, *, everything: bool = False) -> Iterator[tuple[Path, bool]]:
    """Yield the files, and whether each is in a library."""
    for root, directories, names in os.walk(directory):
        directories[:] = sorted(each for each in directories if not each.startswith(".") and each != "__pycache__")
        in_library = _LIBRARY in Path(root).relative_to(directory).parts
        for name in sorted(names):
            path = Path(root, name)
            skipped = name.startswith(".") or (not everything and path.suffix in _ENDINGS)
            if not skipped and path.is_file():
                yield path, in_library


def imports_decorators(path: Path) -> bool:
    """Return whether a Python file imports the decorators of hooks."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        if _PACKAGE not in text:
            return False
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return True  # loading it reports the error
    except OSError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            return True
        if isinstance(node, ast.Import) and any(alias.name.startswith(_PACKAGE) for alias in node.names):
            return True
    return False
