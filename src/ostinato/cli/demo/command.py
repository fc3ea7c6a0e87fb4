"""The command itself: where it is shown, how fast, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ostinato.api.errors import APIError
from ostinato.cli.demo.picture import svg
from ostinato.cli.demo.play import PATIENCE, Play
from ostinato.cli.demo.screen import STRONG, Screen, Span
from ostinato.cli.demo.stage import NAMESPACE, connected, stage
from ostinato.cli.demo.story import Story
from ostinato.cli.error import Failure
from ostinato.client import TransportError
from ostinato.manager import configure_logging
from ostinato.manager.running import new_runner
from ostinato.server.state import StateError
from ostinato.world import World

_PAUSE: Final = 1.5  # seconds between steps, for those who watch
_TROUBLE: Final = (APIError, TransportError, OSError, StateError, TimeoutError)


def demo(picture: str | None) -> int:
    """Play once; the exit code. `picture`: a file for an SVG of what was shown. A Failure if it cannot be played."""
    target = _writable(picture) if picture else None
    terminal = sys.stdout.isatty()
    screen = Screen(sys.stdout, colour=terminal and understands_colour(os.environ))
    configure_logging(level=logging.ERROR)
    try:
        with new_runner() as runner:
            runner.run(_play(screen, _PAUSE if terminal else 0.0))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except _TROUBLE as error:
        raise Failure(str(error) or f"a step took more than {PATIENCE:g} s") from error
    if target is not None:
        target.write_text(svg(screen.lines, "ostinato demo"), encoding="utf-8")
    return 0


def understands_colour(environment: Mapping[str, str]) -> bool:
    """Whether a terminal does, and its user wants it: https://no-color.org."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


async def _play(screen: Screen, pause: float) -> None:
    world = World.real()
    clock = world.clock
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    began = clock.monotonic()
    try:
        async with stage(world) as plane, connected(plane, world) as client, asyncio.TaskGroup() as group:
            screen.show(
                Span("Ostinato: ", STRONG), "API server, controllers, scheduler and a node, all in this process"
            )
            story = Story(client, NAMESPACE, clock)
            beside = [group.create_task(story.listen()), group.create_task(plane.failed())]
            await Play(client, story, screen, pause).run(clock.monotonic() - began)
            for each in beside:
                each.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    finally:
        world.executor.close()


def _writable(picture: str) -> Path:
    """Refuse before the play what would fail after it."""
    path = Path(picture)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Failure(f"--picture {picture}: no file can be written there")
    return path


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
