"""`ostinato page`: a new URL of a running page, for another browser. Its token works once."""

from __future__ import annotations

import sys
from pathlib import Path

from ostinato.cli.page.asking import asked, required_page
from ostinato.manager.running import new_runner
from ostinato.world import World


def page(socket: str | None, state: Path) -> int:
    found = required_page(socket, state)
    with new_runner() as runner:
        sys.stdout.write(f"{runner.run(_url(found))}\n")
    return 0


async def _url(socket: Path) -> str:
    world = World.real()
    try:
        async with asked(socket, world) as asked_page:
            return await asked_page.renew()
    finally:
        world.executor.close()
