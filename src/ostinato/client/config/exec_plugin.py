"""Exec credential plugins: programs that print an ExecCredential of `client.authentication.k8s.io/v1` or `/v1beta1`.

- The request is in `KUBERNETES_EXEC_INFO`, the ExecCredential on standard output. Standard error is inherited; standard
  input is inherited only in interactive mode with a terminal.
- The credential is cached until its `expirationTimestamp`, without one indefinitely, or until the server rejects it.
- One run at a time, with bounded time and output; beyond that the program and its children are killed.
- Output of the program is never part of an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.time import Time, TimeError
from ostinato.client.config.config import Config, ExecPlugin
from ostinato.client.config.credentials import ClientCertificate, Credential, CredentialsError, bearer
from ostinato.client.config.exec_policy import find_program
from ostinato.client.config.secret import Secret
from ostinato.client.transport.metrics import EXEC_CALLS, ClientMetrics
from ostinato.world import Clock, World

log = logging.getLogger(__name__)

MAX_RUN: Final = 60.0  # seconds in non-interactive mode
MAX_INTERACTIVE_RUN: Final = 600.0  # seconds in interactive mode
MAX_OUTPUT: Final = 1024 * 1024  # bytes

_HINTS_AN_HOUR: Final = 10
_HELP: Final = (
    "\n\nIt looks like you are trying to use a credential plugin that is not installed.\n\n"
    "To learn more about this feature, consult the documentation available at:\n"
    "      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)


class ExecCredentials:
    """Credentials of an exec plugin."""

    def __init__(self, config: Config, world: World, metrics: ClientMetrics | None = None) -> None:
        assert config.exec_plugin is not None
        self._plugin = config.exec_plugin
        self._config = config
        self._world = world
        self._metrics = metrics
        self._hints = _WindowLimit(world.clock, _HINTS_AN_HOUR, 3600.0)
        self._lock = asyncio.Lock()  # one run at a time: the program may be interactive
        self._credential: Credential | None = None
        self._expires: float | None = None  # on the wall clock; None is never

    async def current(self) -> Credential:
        if self._credential is not None and not self._has_expired():
            return self._credential
        async with self._lock:
            if self._credential is None or self._has_expired():
                await self._refresh()
            assert self._credential is not None
            return self._credential

    async def rejected(self, credential: Credential) -> bool:
        async with self._lock:
            if credential is self._credential:  # otherwise it has been replaced already
                try:
                    await self._refresh()
                except CredentialsError as error:
                    log.error("cannot refresh credentials error=%s", error)
                    return False
        return True

    def _has_expired(self) -> bool:
        return self._expires is not None and self._world.clock.wall() > self._expires

    async def _refresh(self) -> None:
        plugin = self._plugin
        interactive = _is_interactive(plugin)
        if not self._config.exec_policy.permits(plugin.command):
            raise CredentialsError(
                f"exec plugin {plugin.command!r} is not permitted by the exec policy; "
                "allow it with ExecPolicy.allow(), or use other credentials"
            )
        program = find_program(plugin.command)
        if program is None:
            self._count(1, "plugin_not_found_error")
            hint = f"{_HELP}\n\n{plugin.install_hint}".rstrip() if self._hints.may() else ""
            raise CredentialsError(f"exec: executable {plugin.command} not found{hint}")
        info = await self._world.executor.run(_info, self._config, interactive)
        output = await self._run(program, _environment(plugin, info), interactive=interactive)
        self._credential, self._expires = _read_credential(output, plugin.api_version)

    async def _run(self, program: str, environment: dict[str, str], *, interactive: bool) -> bytes:
        limit = MAX_INTERACTIVE_RUN if interactive else MAX_RUN
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *self._plugin.args,
                env=environment,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=not interactive,  # a new session has no access to the terminal
            )
        except OSError as error:
            self._count(1, "client_internal_error")
            raise CredentialsError(f"exec: {self._plugin.command} cannot be started: {error.strerror}") from None
        try:
            async with self._world.clock.timeout(limit):
                output = await _read_bounded(process, self._plugin.command)
                code = await process.wait()
        except TimeoutError:
            self._count(1, "client_internal_error")
            raise CredentialsError(
                f"exec: executable {self._plugin.command} timed out after {limit:g} seconds; "
                "run it manually to see what it waits for"
            ) from None
        finally:
            await _end(process, group=not interactive)
        self._count(code, "plugin_execution_error" if code else "no_error")
        if code:
            raise CredentialsError(f"exec: executable {self._plugin.command} failed with exit code {code}")
        return output

    def _count(self, code: int, status: str) -> None:
        if self._metrics is not None:
            self._metrics.count(EXEC_CALLS, {"code": str(code), "call_status": status})


async def _read_bounded(process: asyncio.subprocess.Process, command: str) -> bytes:
    assert process.stdout is not None
    parts, size = [], 0
    while chunk := await process.stdout.read(65536):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_OUTPUT:
            raise CredentialsError(f"exec: executable {command} printed more than {MAX_OUTPUT} bytes")
    return b"".join(parts)


async def _end(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """Kill the program if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()
    transport = getattr(process, "_transport", None)
    if transport is not None:  # otherwise the pipe stays open while a grandchild has its other end
        transport.close()


def _is_interactive(plugin: ExecPlugin) -> bool:
    if plugin.interactive_mode == "Never":
        return False
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise CredentialsError(
            f"exec plugin {plugin.command!r} cannot support interactive mode: standard input is not a terminal"
        )
    return terminal


def _environment(plugin: ExecPlugin, info: str) -> dict[str, str]:
    configured = {name: value.reveal() for name, value in plugin.env}
    return {**os.environ, **configured, "KUBERNETES_EXEC_INFO": info}


def _info(config: Config, interactive: bool) -> str:
    """Return the ExecCredential request of the program, as JSON."""
    plugin = config.exec_plugin
    assert plugin is not None
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster = {
            "server": config.server,
            "tls-server-name": config.tls.server_name,
            "insecure-skip-tls-verify": config.tls.insecure,
            "certificate-authority-data": b64encode(_authority(config)).decode(),
            "proxy-url": config.proxy.reveal() if config.proxy else "",
            "disable-compression": not config.compression,
            "config": plugin.cluster_config,
        }
        spec["cluster"] = {name: value for name, value in cluster.items() if value or name == "server"}
    credential = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(credential).decode()


def _authority(config: Config) -> bytes:
    if config.tls.ca_data or config.tls.ca_file is None:
        return config.tls.ca_data
    path: Path = config.tls.ca_file
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"failed to load CA bundle for execProvider: {path}: {error.strerror}") from None


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: str | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


def _read_credential(output: bytes, api_version: str) -> tuple[Credential, float | None]:
    """Decode the output: the credential and its expiry. Errors never quote it."""
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        where = f": {error}" if isinstance(error, msgspec.ValidationError) else ""  # names field paths, not values
        raise CredentialsError(
            f"decoding stdout: the output of the exec plugin is not an ExecCredential in JSON{where}"
        ) from None
    if credential.kind != "ExecCredential":
        raise CredentialsError("decoding stdout: the output of the exec plugin is not an ExecCredential in JSON")
    if credential.api_version != api_version:
        raise CredentialsError(
            f"exec plugin is configured to use API version {api_version}, "
            f"plugin returned version {credential.api_version}"
        )
    status = credential.status
    if status is None:
        raise CredentialsError("exec plugin didn't return a status field")
    if not (status.token or status.client_certificate_data or status.client_key_data):
        raise CredentialsError("exec plugin didn't return a token or cert/key pair")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise CredentialsError("exec plugin returned only certificate or key, not both")
    certificate = None
    if status.client_certificate_data and status.client_key_data:
        certificate = ClientCertificate(status.client_certificate_data.encode(), Secret(status.client_key_data))
    return Credential(_authorization(status.token), certificate), _expiry(status.expiration_timestamp)


def _authorization(token: str | None) -> Secret | None:
    if not token:
        return None
    if not token.isprintable():
        raise CredentialsError("exec plugin returned a token with characters not allowed in a header")
    return bearer(Secret(token))


def _expiry(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return Time.parse(text).timestamp()
    except (TimeError, ValueError, OverflowError):
        raise CredentialsError(
            "decoding stdout: status.expirationTimestamp is not a time in RFC 3339, e.g. 2006-01-02T15:04:05Z"
        ) from None


class _WindowLimit:
    """Limits an action to a number of times per window."""

    def __init__(self, clock: Clock, most: int, window: float) -> None:
        self._clock = clock
        self._most = most
        self._window = window
        self._began = float("-inf")
        self._count = 0

    def may(self) -> bool:
        now = self._clock.monotonic()
        if now - self._began >= self._window:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most
