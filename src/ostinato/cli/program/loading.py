"""Load a program: Python files, modules by name, packages by name or directory.

- A file can import the modules beside it, as when Python runs it. A file in a package is loaded as its module.
- A package is all of its modules, except `__main__` and tests.
- A module that another one has imported is not loaded again.
- It is imported, not run: the block below `if __name__ == "__main__":` is not executed. If the module calls
  `Manager.run`, the command runs that manager later (`ostinato.manager.hosting`).
- Errors in a file are CommandErrors with the line, and with the user's part of the traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType, TracebackType
from typing import Final, NamedTuple

from ostinato.cli.error import CommandError
from ostinato.controllers.failures.hints import hint_for
from ostinato.controllers.failures.trace import shorten
from ostinato.controllers.guards.program import relative
from ostinato.manager.hosting import Host, hosting

_PACKAGE: Final = str(Path(__file__).parents[2]) + os.sep


class Found(NamedTuple):
    """A module that exists and compiles."""

    target: str  # the command's argument
    spec: ModuleSpec


def find(target: str) -> Found:
    """Find a file, module or package and compile it; CommandError if it is missing or has a syntax error."""
    spec = _spec_of_path(target) if is_path(target) else _spec_of_module(target)
    _compile(target, spec)
    for part in _parts(spec.submodule_search_locations or ()):
        _compile(target, spec_from_file_location(part.stem, part) or spec)
    return Found(target, spec)


def load(found: Found, host: Host) -> ModuleType:
    """Load a file or module alone. `host`: collects and configures the managers that it creates."""
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
        text = _trace(error, found)
        shorten(error)
        hint = hint_for(error)
        raise CommandError(f"{found.target}: import failed:\n{text}" + (f"; {hint}" if hint else "")) from None
    return module


def load_all(found: Iterable[Found], host: Host) -> list[ModuleType]:
    """Load files, modules, and packages with all of their modules."""
    before = set(sys.modules)
    modules: list[ModuleType] = []
    for each in found:
        modules += _load_below(each, host, before)
    return modules


def _load_below(found: Found, host: Host, before: set[str]) -> Iterator[ModuleType]:
    name = found.spec.name
    loaded = sys.modules.get(name) if name not in before else None
    module = load(found, host) if loaded is None else loaded
    yield module
    for part in iter_modules(getattr(module, "__path__", ()), f"{name}."):
        if not _is_excluded(part.name.rpartition(".")[2]):
            yield from _load_below(Found(found.target, _spec_of_module(part.name)), host, before)


def _parts(locations: Iterable[str]) -> Iterator[Path]:
    """Return the files of the modules of a package."""
    for location in locations:
        for path in sorted(Path(location).glob("*")):
            if path.suffix == ".py" and not _is_excluded(path.stem):
                yield path
            elif (path / "__init__.py").is_file() and not _is_excluded(path.name):
                yield from _parts([str(path)])


def syntax_error(file: Path) -> CommandError | None:
    """Return the error of a file that does not compile; None if it does, or does not exist."""
    try:
        compile(file.read_bytes(), file, "exec", dont_inherit=True)
    except FileNotFoundError:
        return None
    except (SyntaxError, ValueError, OSError) as error:
        return _unreadable(relative(str(file)), error)
    return None


def _is_excluded(name: str) -> bool:
    return name in ("__main__", "tests", "conftest") or name.startswith("test_") or name.endswith("_test")


def _compile(target: str, spec: ModuleSpec) -> None:
    get_code = getattr(spec.loader, "get_code", None)
    try:
        if get_code is not None:
            get_code(spec.name)
    except (SyntaxError, ValueError, OSError) as error:
        raise _unreadable(target, error) from None


def is_path(target: str) -> bool:
    """Whether a target is a path rather than the name of a module."""
    return target.endswith(".py") or os.sep in target or not target.strip(".") or Path(target).is_file()


def _spec_of_path(target: str) -> ModuleSpec:
    path = Path(target).resolve()
    if path.is_dir():
        if not (path / "__init__.py").is_file():
            raise CommandError(f"{target} is a directory without __init__.py; name a file in it, or a package")
        path /= "__init__.py"
    if not path.exists():
        raise CommandError(f"{target}: no such file")
    name, root = path.stem, path.parent
    while (root / "__init__.py").exists():
        name, root = f"{root.name}.{name}", root.parent
    add_to_path(root)
    if path.name == "__init__.py":
        package = _spec_of_module(name.removesuffix(".__init__"))
        if package.origin != str(path):
            raise CommandError(f"{target}: another module has the name {package.name}; rename the package")
        return package
    spec = spec_from_file_location(_module_name(name, path), path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{target} is not a Python file; the name must end with .py")
    return spec


def _spec_of_module(target: str) -> ModuleSpec:
    add_to_path(Path.cwd())
    try:
        spec = find_spec(target)
    except (ImportError, ValueError, AttributeError) as error:
        raise CommandError(f"{target}: no such file or module: {error}") from None
    if spec is None or spec.loader is None:
        raise CommandError(f"{target}: no such file or module")
    return spec


def add_to_path(directory: Path) -> None:
    """Import modules from this directory too, first."""
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _module_name(name: str, path: Path) -> str:
    """Return the module's name, with a prefix if it would hide another module, as types.py would."""
    other = sys.modules.get(name)
    hides = name in sys.stdlib_module_names or (other is not None and getattr(other, "__file__", None) != str(path))
    return f"file_{name}" if hides else name


def _unreadable(target: str, error: Exception) -> CommandError:
    if not isinstance(error, SyntaxError) or error.lineno is None:
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
