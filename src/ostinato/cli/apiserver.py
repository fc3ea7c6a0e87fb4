"""`ostinato apiserver`: runs an API server until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from ostinato.server.access.authenticate import TokenFileError
from ostinato.server.standalone import Settings, Standalone
from ostinato.server.state import StateError
from ostinato.server.store.index import UnusableStore
from ostinato.world import World


class Failure(Exception):  # noqa: N818 - told to the operator as it is
    """The server cannot run; the message says why, and what to do."""


def settings(listen: str, state: str | None, store: str, token_file: str | None) -> Settings:
    """The options, checked."""
    host, port = _address(listen)
    if store not in ("", "memory") and not store.startswith("sqlite:"):
        raise Failure(f"--store {store}: want sqlite:PATH or memory")
    if store == "sqlite:":
        raise Failure("--store sqlite: names no file: want sqlite:PATH")
    return Settings(
        state=Path(state) if state else _default_state(),
        host=host,
        port=port,
        store=store,
        token_file=Path(token_file) if token_file else None,
    )


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise Failure(f"--listen {listen}: an IPv6 address goes in brackets: [::1]:6443")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise Failure(f"--listen {listen}: want HOST:PORT, with a port from 0 to 65535")
    return host, int(port)


def _default_state() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "ostinato"


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; Failure if that cannot begin."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(settings))
    except (StateError, TokenFileError, UnusableStore) as error:
        raise Failure(str(error)) from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(settings: Settings) -> None:
    world = World.real()
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, told)
    server = Standalone(world, settings)
    await _start(server, settings)
    # What is there now stays: the collector need not look at it again, and has less to do with what comes.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    sys.stdout.write(f"ostinato apiserver ready at {server.url} (kubeconfig: {server.kubeconfig})\n")
    sys.stdout.flush()
    try:
        await told.wait()
    finally:
        await server.stop()
        world.executor.close()


async def _start(server: Standalone, settings: Settings) -> None:
    try:
        await server.start()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Failure(
                f"port {settings.port} of {settings.host} is in use; choose another with --listen, or 0 for any"
            ) from error
        raise Failure(f"cannot listen at {settings.host}:{settings.port}: {error.strerror or error}") from error


def _stop(told: asyncio.Event) -> None:
    if told.is_set():  # told twice: at once, whatever is under way
        os._exit(130)
    told.set()
