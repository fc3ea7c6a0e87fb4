"""`ostinato apiserver` and `ostinato up`: run an API server or a control plane until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import settings as server_options
from ostinato.cli.progress import progress
from ostinato.server.access.authentication.settings import AuthenticationSettingsError
from ostinato.server.standalone import Standalone
from ostinato.server.state import StateError
from ostinato.server.store.records import UnusableStore
from ostinato.world import World


class Served(Protocol):
    """A server that is started once and then stopped: `Standalone`, `Plane`, `JoinedNode`."""

    @property
    def url(self) -> str: ...

    @property
    def kubeconfig(self) -> Path: ...

    async def start(self) -> None: ...

    async def failed(self) -> None:
        """Wait until a component fails and raise its error."""

    async def stop(self) -> None: ...


def apiserver(options: argparse.Namespace) -> None:
    chosen = server_options.settings(options)
    run(lambda world: Standalone(world, chosen), "ostinato apiserver", options.listen)


def up(options: argparse.Namespace) -> None:
    if options.bare:
        apiserver(options)
        return
    from ostinato.manager import configure_logging  # noqa: PLC0415 - not needed with --bare
    from ostinato.plane.node import pod_networking  # noqa: PLC0415
    from ostinato.plane.node.runtimes import ProcessOptions, UnusableRuntime  # noqa: PLC0415
    from ostinato.plane.plane import Plane, PlaneSettings  # noqa: PLC0415

    try:
        chosen = PlaneSettings(
            server=server_options.settings(options),
            without=frozenset(options.without),
            nodes=options.nodes,
            runtime=options.runtime,
            containerd=Path(options.containerd),
            processes=ProcessOptions(
                exposed=[Path(each) for each in options.expose],
                insecure=options.insecure_processes,
                network=pod_networking.parse(options.pod_network_cidr),
            ),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    configure_logging(level=logging.WARNING)
    try:
        run(lambda world: Plane(world, chosen), "ostinato up", options.listen)
    except UnusableRuntime as error:
        raise CommandError(str(error)) from error


def run(make: Callable[[World], Served], name: str, listen: str) -> None:
    """Serve until SIGTERM or SIGINT; CommandError if the server cannot start or a component fails.

    - `make`: creates the server.
    - `name`: the command, for the line printed when the server is ready.
    - `listen`: the address of the command line, for messages.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(make, name, listen))
    except (StateError, AuthenticationSettingsError, UnusableStore) as error:
        raise CommandError(str(error)) from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(make: Callable[[World], Served], name: str, listen: str) -> None:
    world = World.real()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopping)
    served = make(world)
    await _start(served, listen, world)
    # The objects loaded so far live as long as the process: exempt them from garbage collection.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    sys.stdout.write(f"{name} ready at {served.url} (kubeconfig: {served.kubeconfig})\n")
    sys.stdout.flush()
    waits = [loop.create_task(stopping.wait()), loop.create_task(served.failed())]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if (error := task.exception()) is not None:
                raise CommandError(f"{type(error).__name__}: {error}") from error
    finally:
        for task in waits:
            task.cancel()
        await served.stop()
        world.executor.close()


async def _start(served: Served, listen: str, world: World) -> None:
    try:
        await progress("starting the cluster", served.start(), world.clock)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            host, port = server_options.address(listen)
            message = f"port {port} on {host} is in use; choose another with --listen, or port 0 for a free one"
            raise CommandError(message) from error
        raise CommandError(f"cannot listen on {listen}: {error.strerror or error}") from error


def _stop(stopping: asyncio.Event) -> None:
    if stopping.is_set():  # second signal: exit without shutting down
        os._exit(130)
    stopping.set()
