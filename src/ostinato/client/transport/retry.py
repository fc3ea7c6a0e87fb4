"""Retry: do it again while it fails in a way that passes.

async def scale() -> None:
    widget = await client.get(Widget, key)   # read again each time: that is the point
    widget.spec.replicas += 1
    await client.update(widget)

await client.retry_on_conflict(scale)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ostinato.api.errors import Conflict
from ostinato.client.transport.backoff import CONFLICTS, Backoff
from ostinato.world import World

T = TypeVar("T")


async def retry_on(
    world: World, retriable: Callable[[Exception], bool], function: Callable[[], Awaitable[T]], backoff: Backoff
) -> T:
    """What `function` returns; the last error if all tries failed, any other error at once."""
    steps = backoff.start(world.rng)
    while True:
        try:
            return await function()
        except Exception as error:
            if steps.left <= 1 or not retriable(error):
                raise
        await world.clock.sleep(steps.next())


async def retry_on_conflict(world: World, function: Callable[[], Awaitable[T]], backoff: Backoff = CONFLICTS) -> T:
    """Try again while another writer was faster. `function` must read the object anew each time."""
    return await retry_on(world, lambda error: isinstance(error, Conflict), function, backoff)
