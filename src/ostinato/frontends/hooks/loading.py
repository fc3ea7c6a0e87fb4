"""Loading: hooks from the files of a directory, each with its configuration.

A file that cannot be loaded is reported with its name and the reason; the others are loaded.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.cache.client import CachedClient
from ostinato.controllers.loop import ControllerError
from ostinato.frontends.hooks.config.fields import ConfigError
from ostinato.frontends.hooks.config.loading import load_config
from ostinato.frontends.hooks.discovery import HookFile, find_hooks
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.native import HookFunction
from ostinato.frontends.hooks.running.executable import Executable, RunFiles, read_config
from ostinato.frontends.hooks.running.function import FunctionProgram
from ostinato.frontends.hooks.running.outcome import HookFailed
from ostinato.world import World

_CONCURRENT: Final = 4  # runs of --config


class HooksError(ControllerError):
    """Hooks cannot be loaded; the message names each file and its problem."""


class LoadOptions(NamedTuple):
    """`proxy`: pass JSON lines of hooks on as they are. `time_zone`: of schedules."""

    files: RunFiles
    proxy: bool = False
    time_zone: str = "UTC"


class Loaded(NamedTuple):
    """`failed`: the paths of files that cannot be loaded; `problems` says why."""

    hooks: list[Hook]
    problems: list[str]
    warnings: list[str]
    failed: frozenset[str] = frozenset()


class Loader:
    def __init__(self, world: World, client: CachedClient | None, logger: logging.Logger, options: LoadOptions) -> None:
        self._world = world
        self._client = client
        self._logger = logger
        self._options = options

    async def load(self, directory: Path) -> Loaded:
        """Load all hooks of a directory."""
        try:
            found = find_hooks(directory)
        except OSError as error:
            return Loaded([], [f"{directory}: {error.strerror or error}"], [])
        limit = asyncio.Semaphore(_CONCURRENT)

        async def load(file: HookFile) -> list[Hook] | str:
            async with limit:
                try:
                    return await self._load(file)
                except (HookFailed, ConfigError) as error:
                    return f"{directory / file.name}: {error}"

        results = await asyncio.gather(*map(load, found.hooks))
        hooks = [hook for each in results if not isinstance(each, str) for hook in each]
        problems = [each for each in results if isinstance(each, str)]
        failed = [str(file.path) for file, each in zip(found.hooks, results, strict=True) if isinstance(each, str)]
        return Loaded(hooks, problems, found.warnings, frozenset(failed))

    def function(self, declared: HookFunction, name: str = "", path: str = "") -> Hook:
        """Return the hook of a function."""
        program = FunctionProgram(declared, self._world, self._client, self._logger)
        return Hook(name or declared.name, declared.config, program, path=path)

    async def _load(self, file: HookFile) -> list[Hook]:
        if file.in_process:
            return self._functions(file)
        config = load_config(await read_config(file.path, self._world), self._options.time_zone)
        program = Executable(
            file.path, config, self._world, self._options.files, self._logger, proxy=self._options.proxy
        )
        return [Hook(file.name, config, program, path=str(file.path))]

    def _functions(self, file: HookFile) -> list[Hook]:
        declared = _declared(file.path)
        if not declared:
            raise HookFailed("imports the decorators, but declares no hook; write @hook(...) above a function")
        if len(declared) == 1:
            return [self.function(declared[0], file.name, str(file.path))]
        return [self.function(each, f"{file.name}:{each.name}", str(file.path)) for each in declared]


def _declared(path: Path) -> list[HookFunction]:
    """Import a file, under a name that no other module has, and return its hooks."""
    name = f"ostinato_hooks_{abs(hash(str(path))):x}_{path.stem.replace('-', '_').replace('.', '_')}"
    spec = spec_from_file_location(name, path)
    assert spec is not None, "the name ends with .py"
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise HookFailed(f"line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        line = _line(error, str(path))
        raise HookFailed(f"{f'line {line}: ' if line else ''}{type(error).__name__}: {error}") from error
    found = [value for value in vars(module).values() if isinstance(value, HookFunction)]
    return [each for each in dict.fromkeys(found) if each.function.__module__ == name]


def _line(error: BaseException, path: str) -> int:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
