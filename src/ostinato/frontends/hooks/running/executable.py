"""Executable hooks: the contract of files.

| variable | content |
|---|---|
| `BINDING_CONTEXT_PATH` | input: the binding contexts, a JSON array |
| `METRICS_PATH` | output: metric operations, JSON values one after another |
| `KUBERNETES_PATCH_PATH` | output: object operations, YAML or JSON documents |
| `VALIDATING_RESPONSE_PATH`, `ADMISSION_RESPONSE_PATH` | output: the answer to an AdmissionReview |
| `CONVERSION_RESPONSE_PATH` | output: the answer to a ConversionReview |

- The hook runs without arguments in its own directory, with the environment of this process.
- The files of a run are in a directory of their own, which is removed afterwards.
- After a failure the object operations are read too: those with `ignoreHookError` are executed.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ostinato.frontends.hooks.config.bindings import HookConfig
from ostinato.frontends.hooks.contexts import Rendering
from ostinato.frontends.hooks.metrics import MetricError, parse_metrics
from ostinato.frontends.hooks.running.outcome import AdmissionAnswer, ConversionAnswer, HookFailed, Outcome
from ostinato.frontends.kernel.operations.specification import (
    MOST_BYTES,
    Operation,
    OperationError,
    on_hook_error,
    parse_operations,
)
from ostinato.frontends.kernel.transport.log_lines import LogLines
from ostinato.frontends.kernel.transport.process import Command, run_process
from ostinato.world import World

A = TypeVar("A", bound=msgspec.Struct)

CONFIG_TIMEOUT: Final = 60.0
_INPUT: Final = "BINDING_CONTEXT_PATH"
_OUTPUTS: Final = {
    "METRICS_PATH": "metrics.json",
    "KUBERNETES_PATCH_PATH": "object-patch",
    "ADMISSION_RESPONSE_PATH": "admission-response.json",
    "CONVERSION_RESPONSE_PATH": "conversion-response.json",
}


class RunFiles(msgspec.Struct, frozen=True):
    """Where runs keep their files. `keep`: do not remove them, for debugging."""

    directory: Path
    keep: bool = False


class Executable:
    """A hook that is a file. `config` is set once it is known."""

    def __init__(
        self,
        path: Path,
        config: HookConfig,
        world: World,
        files: RunFiles,
        logger: logging.Logger,
        *,
        proxy: bool = False,
    ) -> None:
        self._path = path
        self._config = config
        self._world = world
        self._files = files
        self._logger = logger
        self._proxy = proxy

    async def run(self, rendering: Rendering, fields: Mapping[str, str]) -> Outcome:
        directory = self._files.directory / f"run-{self._world.ids.uid()}"
        try:
            environment = _prepared(directory, rendering.json(self._config.version))
            return await self._run(environment, fields)
        except OSError as error:
            raise HookFailed(f"cannot run: {error}") from None
        finally:
            if not self._files.keep:
                shutil.rmtree(directory, ignore_errors=True)

    async def _run(self, environment: dict[str, str], fields: Mapping[str, str]) -> Outcome:
        timeout = self._config.options.timeout
        command = Command((str(self._path),), str(self._path.parent), {**os.environ, **environment}, timeout)
        lines = LogLines(self._logger, fields, proxy=self._proxy)
        result = await run_process(command, self._world, lines)
        if result.dropped:
            self._logger.warning("output truncated hook=%s dropped_bytes=%d", fields.get("hook", ""), result.dropped)
        if not result.ok:
            raise HookFailed(result.problem(timeout), _left_operations(environment))
        try:
            return Outcome(
                operations=parse_operations(_read(environment, "KUBERNETES_PATCH_PATH")),
                metrics=parse_metrics(_read(environment, "METRICS_PATH")),
                admission=_answer(environment, "ADMISSION_RESPONSE_PATH", AdmissionAnswer),
                conversion=_answer(environment, "CONVERSION_RESPONSE_PATH", ConversionAnswer),
                usage=result.usage,
            )
        except (OperationError, MetricError) as error:
            raise HookFailed(str(error)) from None

    async def close(self) -> None:
        """Nothing is held between runs."""


async def read_config(path: Path, world: World) -> bytes:
    """Run `hook --config` and return its output. Raises HookFailed."""
    command = Command((str(path), "--config"), str(path.parent), None, CONFIG_TIMEOUT, kept=1024 * 1024)
    try:
        result = await run_process(command, world)
    except OSError as error:
        hint = "; does its first line name an interpreter that exists?" if isinstance(error, FileNotFoundError) else ""
        raise HookFailed(f"--config: cannot run: {error.strerror or error}{hint}") from None
    if not result.ok:
        raise HookFailed(f"--config: {result.problem(CONFIG_TIMEOUT)}")
    return result.stdout


def _prepared(directory: Path, contexts: bytes) -> dict[str, str]:
    directory.mkdir(mode=0o700)
    source = directory / "binding-context.json"
    source.write_bytes(contexts)
    environment = {_INPUT: str(source)}
    for variable, name in _OUTPUTS.items():
        path = directory / name
        path.touch()
        environment[variable] = str(path)
    environment["VALIDATING_RESPONSE_PATH"] = environment["ADMISSION_RESPONSE_PATH"]
    return environment


def _read(environment: Mapping[str, str], variable: str) -> bytes:
    """Read an output file. The hook may have replaced it: only a regular file of a sane size is read."""
    try:
        descriptor = os.open(environment[variable], os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise HookFailed(f"{variable}: cannot be read: {error.strerror or error}") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise HookFailed(f"{variable}: is not a regular file; write to it instead of replacing it")
        if found.st_size > MOST_BYTES:
            raise HookFailed(f"{variable}: {found.st_size} bytes; the limit is {MOST_BYTES}")
        return file.read()


def _answer(environment: Mapping[str, str], variable: str, form: type[A]) -> A | None:
    data = _read(environment, variable)
    if not data.strip():
        return None
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HookFailed(f"{variable}: {error}") from None


def _left_operations(environment: Mapping[str, str]) -> list[Operation]:
    try:
        return on_hook_error(parse_operations(_read(environment, "KUBERNETES_PATCH_PATH")))
    except (OperationError, HookFailed):
        return []
