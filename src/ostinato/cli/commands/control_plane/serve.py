"""`ostinato apiserver` and `ostinato up`: run an API server or a control plane until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from ostinato.api.text.colour import colour_enabled
from ostinato.cli.error import CommandError
from ostinato.cli.event_loop import loop_factory, tune_garbage_collection
from ostinato.cli.options.server import settings as server_options
from ostinato.cli.options.server import storage as storage_options
from ostinato.cli.processes.cores import usable_cores
from ostinato.cli.processes.division import PAGE, default_processes, divide
from ostinato.cli.processes.logs import logs
from ostinato.cli.progress import progress
from ostinato.cli.startup_errors import startup_errors
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
    if getattr(options, "workers", 1) != 1:  # `ostinato up --bare` has no workers
        _serve_with_workers(options)
        return
    from ostinato.server.standalone import Standalone  # noqa: PLC0415 - other commands of this module start faster

    chosen = server_options.settings(options)
    run(lambda world: Standalone(world, chosen), "ostinato apiserver", options.listen)


def _serve_with_workers(options: argparse.Namespace) -> None:
    from ostinato.cli.processes.workers import Workers  # noqa: PLC0415

    chosen = server_options.settings(options)
    if options.workers < 1:
        raise CommandError(f"--workers {options.workers}: want a number from 1 on")
    if chosen.etcd is None:
        raise CommandError(
            f"--workers {options.workers}: several processes need a store that they can share; use --store "
            "etcd://HOST:PORT (SQLite and memory stores belong to one process)"
        )
    given = {name: value for name, value in vars(options).items() if name != "command"}
    with logs(terminal=sys.stderr.isatty(), colour=colour_enabled(sys.stderr)):
        run(lambda world: Workers(world, chosen, given), "ostinato apiserver", options.listen, supervises=True)


def up(options: argparse.Namespace) -> None:
    _check_page(options)
    if options.bare:
        apiserver(options)
        return
    division = _division(options)
    if division:
        _supervise(options, division)
    else:
        _up_in_one_process(options)


def _check_page(options: argparse.Namespace) -> None:
    if not options.page and not options.page_writes:
        return
    from ostinato.cli.page.address import check_page  # noqa: PLC0415 - only with a page

    check_page(options.page, writes=options.page_writes)
    if options.bare:
        raise CommandError("--page excludes --bare: it shows controllers")


def _division(options: argparse.Namespace) -> Sequence[Sequence[str]]:
    processes = default_processes(usable_cores()) if options.processes is None else options.processes
    division = divide(processes, {*options.without, *(() if options.nodes else ("nodes",))})
    return [*division, [PAGE]] if division and options.page else division


def _supervise(options: argparse.Namespace, division: Sequence[Sequence[str]]) -> None:
    from ostinato.cli.processes.supervisor import Supervisor  # noqa: PLC0415
    from ostinato.plane import names  # noqa: PLC0415

    try:
        names.check(options.nodes, options.runtime, options.without)
    except ValueError as error:
        raise CommandError(str(error)) from None
    given = {name: value for name, value in vars(options).items() if name != "command"}
    state = storage_options.state(options)
    with logs(terminal=sys.stderr.isatty(), colour=colour_enabled(sys.stderr)):
        run(lambda world: Supervisor(world, state, given, division), "ostinato up", options.listen, supervises=True)


def _up_in_one_process(options: argparse.Namespace) -> None:
    from ostinato.cli.options.control_plane.plane import plane_settings  # noqa: PLC0415
    from ostinato.manager import configure_logging  # noqa: PLC0415
    from ostinato.plane.node.runtimes import UnusableRuntime  # noqa: PLC0415
    from ostinato.plane.plane import Plane  # noqa: PLC0415

    chosen = plane_settings(options)
    configure_logging(level=logging.WARNING)

    def make(world: World) -> Served:
        if not options.page:
            return Plane(world, chosen)
        from ostinato.cli.page.paged_plane import PagedPlane  # noqa: PLC0415 - only with a page

        return PagedPlane(world, chosen, options.page, writes=options.page_writes)

    try:
        run(make, "ostinato up", options.listen)
    except UnusableRuntime as error:
        raise CommandError(str(error)) from error


def run(make: Callable[[World], Served], name: str, listen: str, *, supervises: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; CommandError if the server cannot start or a component fails.

    - `make`: creates the server.
    - `name`: the command, for the line printed when the server is ready.
    - `listen`: the address of the command line, for messages.
    - `supervises`: the server runs in other processes, and a signal interrupts its start. Defaults to false.
    """
    with asyncio.Runner(loop_factory=None if supervises else loop_factory()) as runner:
        runner.run(_serve(make, name, listen, supervises=supervises))


async def _serve(make: Callable[[World], Served], name: str, listen: str, *, supervises: bool) -> None:
    world = World.real()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopping)
    served = make(world)
    if not await _start(served, listen, world, stopping if supervises else None):
        world.executor.close()
        return
    tune_garbage_collection()
    sys.stdout.write(f"{name} ready at {served.url} (kubeconfig: {served.kubeconfig})\n")
    sys.stdout.flush()
    waits = [loop.create_task(stopping.wait()), loop.create_task(served.failed())]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = task.exception()
            if isinstance(error, CommandError):
                raise error
            if error is not None:
                raise CommandError(f"{type(error).__name__}: {error}") from error
    finally:
        for task in waits:
            task.cancel()
        await served.stop()
        world.executor.close()


async def _start(served: Served, listen: str, world: World, stopping: asyncio.Event | None) -> bool:
    """Start the server; False if `stopping` is set before it is ready. Defaults to completing the start."""
    with startup_errors(listen):
        starting = asyncio.ensure_future(progress("starting the cluster", served.start(), world.clock))
        if stopping is not None:
            interrupted = asyncio.get_running_loop().create_task(stopping.wait())
            await asyncio.wait([starting, interrupted], return_when=asyncio.FIRST_COMPLETED)
            interrupted.cancel()
            if not starting.done():
                starting.cancel()
                await asyncio.wait([starting])
                return False
        await starting
    return True


def _stop(stopping: asyncio.Event) -> None:
    if stopping.is_set():  # second signal: exit without shutting down
        os._exit(130)
    stopping.set()
