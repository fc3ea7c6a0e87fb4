"""Loading: a Python file, or a module by its name, as the commands take them.

- A file is loaded as Python would run it: what is beside it can be imported. One that is in a package is loaded as a
  module of that package.
- It is imported, not run: what stands below `if __name__ == "__main__":` is left out. A manager whose `run` is called
  is run later, by the command (`ostinato.manager.hosting`).
- What is wrong with a file is a Failure that names the line; of a traceback, the user's part.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final, NamedTuple

from ostinato.cli.error import Failure
from ostinato.manager.hosting import Host, hosting

_OURS: Final = str(Path(__file__).parents[2]) + os.sep


class Found(NamedTuple):
    """What can be loaded."""

    target: str  # as it was named
    spec: ModuleSpec


def find(target: str) -> Found:
    """The file or module, which exists and has no syntax errors."""
    spec = _spec_of_file(target) if _is_path(target) else _spec_of_module(target)
    try:
        get_code = getattr(spec.loader, "get_code", None)
        if get_code is not None:
            get_code(spec.name)
    except (SyntaxError, ValueError, OSError) as error:
        raise _unreadable(target, error) from None
    return Found(target, spec)


def load(found: Found, host: Host) -> ModuleType:
    """Import it, under a host that decides about the managers in it."""
    module = module_from_spec(found.spec)
    sys.modules[found.spec.name] = module
    assert found.spec.loader is not None, "what was found has one"
    try:
        with hosting(host):
            found.spec.loader.exec_module(module)
    except SyntaxError as error:
        raise _unreadable(found.target, error) from None
    except SystemExit as error:
        raise Failure(f"{found.target} calls for an exit ({error.code}) when it is imported") from None
    except Exception as error:  # noqa: BLE001 - whatever the user's file does
        raise Failure(f"{found.target} cannot be imported:\n{_trace(error, found)}") from None
    return module


def _is_path(target: str) -> bool:
    return target.endswith(".py") or os.sep in target or not target.strip(".") or Path(target).is_file()


def _spec_of_file(target: str) -> ModuleSpec:
    path = Path(target).resolve()
    if path.is_dir():
        raise Failure(f"{target} is a directory: name a file in it, or a package without slashes")
    if not path.exists():
        raise Failure(f"{target}: there is no such file")
    name, root = path.stem, path.parent
    while (root / "__init__.py").exists():
        name, root = f"{root.name}.{name}", root.parent
    _importable_from(root)
    spec = spec_from_file_location(_free(name, path), path)
    if spec is None or spec.loader is None:
        raise Failure(f"{target} is no Python file: its name has to end with .py")
    return spec


def _spec_of_module(target: str) -> ModuleSpec:
    _importable_from(Path.cwd())
    try:
        spec = find_spec(target)
    except (ImportError, ValueError, AttributeError) as error:
        raise Failure(f"{target}: there is no such file or module: {error}") from None
    if spec is None or spec.loader is None:
        raise Failure(f"{target}: there is no such file or module")
    return spec


def _importable_from(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _free(name: str, path: Path) -> str:
    """The name of the module; another if it would hide one that the program needs, as types.py would."""
    other = sys.modules.get(name)
    hides = name in sys.stdlib_module_names or (other is not None and getattr(other, "__file__", None) != str(path))
    return f"file_{name}" if hides else name


def _unreadable(target: str, error: Exception) -> Failure:
    if not isinstance(error, SyntaxError):
        return Failure(f"{target} cannot be read: {error}")
    where = Path(error.filename) if error.filename else Path(target)
    place = target if where.name == Path(target).name else str(where)
    line = f"\n    {error.text.strip()}" if error.text else ""
    return Failure(f"{place}, line {error.lineno}: {error.msg}{line}")


def _trace(error: Exception, found: Found) -> str:
    """The error, and where in the user's code it came up: what we looked at before we raised it helps nobody."""
    told = traceback.TracebackException(type(error), error, _users_part(error.__traceback__, found))
    frames = list(told.stack)
    while len(frames) > 1 and frames[-1].filename.startswith(_OURS):
        frames.pop()
    told.stack = traceback.StackSummary.from_list(frames)
    return "".join(told.format()).rstrip()


def _users_part(trace: TracebackType | None, found: Found) -> TracebackType | None:
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != found.spec.origin:
        part = part.tb_next
    return part or trace
