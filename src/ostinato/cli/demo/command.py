"""Run the demo on a terminal or into a pipe, and return the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.text.colour import colour_enabled
from ostinato.cli.demo.changes import ChangeWatcher
from ostinato.cli.demo.cluster import NAMESPACE, connect, demo_cluster
from ostinato.cli.demo.picture import svg
from ostinato.cli.demo.scenario import STEP_TIMEOUT, Scenario
from ostinato.cli.demo.screen import STRONG, Screen, Span
from ostinato.cli.error import CommandError
from ostinato.cli.page.address import check_page
from ostinato.cli.page.paged_plane import PagedPlane
from ostinato.client import TransportError
from ostinato.manager import configure_logging
from ostinato.manager.running import new_runner
from ostinato.server.state import StateError
from ostinato.world import World

_PAUSE: Final = 1.5  # seconds between steps on a terminal, to read
_OPENED: Final = 60.0  # seconds until the demo begins without a page
_ERRORS: Final = (APIError, TransportError, OSError, StateError, TimeoutError)


def demo(picture: str | None, page: str = "", *, page_writes: bool = False) -> int:
    """Run the demo once and return the exit code.

    - `picture`: SVG file to write with the output, or None.
    - `page`: address of a live page. With one, the demo stays until it is interrupted. Defaults to "", none.
    """
    check_page(page, writes=page_writes)
    target = _writable(picture) if picture else None
    terminal = sys.stdout.isatty()
    screen = Screen(sys.stdout, colour=colour_enabled(sys.stdout))
    configure_logging(level=logging.ERROR)
    try:
        with new_runner() as runner:
            runner.run(_run(screen, _PAUSE if terminal or page else 0.0, page, page_writes=page_writes))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except _ERRORS as error:
        raise CommandError(str(error) or f"step timed out after {STEP_TIMEOUT:g} s") from error
    if target is not None:
        target.write_text(svg(screen.lines, "ostinato demo"), encoding="utf-8")
    return 0


async def _run(screen: Screen, pause: float, page: str, *, page_writes: bool) -> None:
    world = World.real()
    clock = world.clock
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    began = clock.monotonic()
    try:
        async with (
            demo_cluster(world, page, page_writes=page_writes) as (plane, paged),
            connect(plane, world) as client,
            asyncio.TaskGroup() as group,
        ):
            screen.show(
                Span("Ostinato: ", STRONG), "API server, controllers, scheduler and a node, all in this process"
            )
            started = clock.monotonic() - began
            if paged is not None:
                await _opened(paged, screen, world)
            watcher = ChangeWatcher(client, NAMESPACE, clock)
            beside = [group.create_task(watcher.run()), group.create_task(plane.failed())]
            await Scenario(client, watcher, screen, pause).run(started)
            if paged is not None:
                screen.show(Span("The page stays open; press Ctrl+C to end.", STRONG))
                await asyncio.get_running_loop().create_future()
            for each in beside:
                each.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    finally:
        world.executor.close()


async def _opened(paged: PagedPlane, screen: Screen, world: World) -> None:
    """Wait a while until the page is opened, so that it shows all steps."""
    screen.show("Open the page in a browser; the demo begins then.")
    with suppress(TimeoutError):
        async with world.clock.timeout(_OPENED):
            await paged.opened()


def _writable(picture: str) -> Path:
    """Return the path; CommandError if it cannot be written, before the demo runs."""
    path = Path(picture)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"--picture {picture}: cannot write this file")
    return path


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
