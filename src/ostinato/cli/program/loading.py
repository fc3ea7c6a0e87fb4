"""Load a program: a Python file, or a module by name.

- A file can import the modules beside it, as when Python runs it. A file in a package is loaded as its module.
- It is imported, not run: the block below `if __name__ == "__main__":` is not executed. If the module calls
  `Manager.run`, the command runs that manager later (`ostinato.manager.hosting`).
- Errors in a file are CommandErrors with the line, and with the user's part of the traceback.
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

from ostinato.cli.error import CommandError
from ostinato.manager.hosting import Host, hosting

_PACKAGE: Final = str(Path(__file__).parents[2]) + os.sep


class Found(NamedTuple):
    """A module that exists and compiles."""

    target: str  # the command's argument
    spec: ModuleSpec


def find(target: str) -> Found:
    """Find a file or module and compile it; CommandError if it is missing or has a syntax error."""
    spec = _spec_of_file(target) if _is_path(target) else _spec_of_module(target)
    try:
        get_code = getattr(spec.loader, "get_code", None)
        if get_code is not None:
            get_code(spec.name)
    except (SyntaxError, ValueError, OSError) as error:
        raise _unreadable(target, error) from None
    return Found(target, spec)


def load(found: Found, host: Host) -> ModuleType:
    """Import the module. `host`: collects and configures the managers that it creates."""
    module = module_from_spec(found.spec)
    sys.modules[found.spec.name] = module
    assert found.spec.loader is not None, "find() returns specs with a loader"
    try:
        with hosting(host):
            found.spec.loader.exec_module(module)
    except SyntaxError as error:
        raise _unreadable(found.target, error) from None
    except SystemExit as error:
        raise CommandError(
            f"{found.target}: exits with {error.code} on import; guard that call with `if __name__ == '__main__':`"
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever the user's file does
        raise CommandError(f"{found.target}: import failed:\n{_trace(error, found)}") from None
    return module


def _is_path(target: str) -> bool:
    return target.endswith(".py") or os.sep in target or not target.strip(".") or Path(target).is_file()


def _spec_of_file(target: str) -> ModuleSpec:
    path = Path(target).resolve()
    if path.is_dir():
        raise CommandError(f"{target} is a directory; name a file in it, or the package without slashes")
    if not path.exists():
        raise CommandError(f"{target}: no such file")
    name, root = path.stem, path.parent
    while (root / "__init__.py").exists():
        name, root = f"{root.name}.{name}", root.parent
    _add_to_path(root)
    spec = spec_from_file_location(_module_name(name, path), path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{target} is not a Python file; the name must end with .py")
    return spec


def _spec_of_module(target: str) -> ModuleSpec:
    _add_to_path(Path.cwd())
    try:
        spec = find_spec(target)
    except (ImportError, ValueError, AttributeError) as error:
        raise CommandError(f"{target}: no such file or module: {error}") from None
    if spec is None or spec.loader is None:
        raise CommandError(f"{target}: no such file or module")
    return spec


def _add_to_path(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _module_name(name: str, path: Path) -> str:
    """Return the module's name, with a prefix if it would hide another module, as types.py would."""
    other = sys.modules.get(name)
    hides = name in sys.stdlib_module_names or (other is not None and getattr(other, "__file__", None) != str(path))
    return f"file_{name}" if hides else name


def _unreadable(target: str, error: Exception) -> CommandError:
    if not isinstance(error, SyntaxError):
        return CommandError(f"{target}: cannot be read: {error}")
    where = Path(error.filename) if error.filename else Path(target)
    place = target if where.name == Path(target).name else str(where)
    line = f"\n    {error.text.strip()}" if error.text else ""
    return CommandError(f"{place}, line {error.lineno}: {error.msg}{line}")


def _trace(error: Exception, found: Found) -> str:
    """Format the traceback without this package's own frames at its end."""
    report = traceback.TracebackException(type(error), error, _users_part(error.__traceback__, found))
    frames = list(report.stack)
    while len(frames) > 1 and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    report.stack = traceback.StackSummary.from_list(frames)
    return "".join(report.format()).rstrip()


def _users_part(trace: TracebackType | None, found: Found) -> TracebackType | None:
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename != found.spec.origin:
        part = part.tb_next
    return part or trace
