"""Retry of a function on certain errors, as client-go's `retry` package.

async def scale() -> None:
    widget = await client.get(Widget, key)   # read again on each attempt
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
    """Call `function` until it succeeds; raises the last error when the attempts are used up, others immediately."""
    steps = backoff.start(world.rng)
    while True:
        try:
            return await function()
        except Exception as error:
            if steps.left <= 1 or not retriable(error):
                raise
        await world.clock.sleep(steps.next())


async def retry_on_conflict(world: World, function: Callable[[], Awaitable[T]], backoff: Backoff = CONFLICTS) -> T:
    """Retry on `Conflict`. `function` must read the object on each attempt."""
    return await retry_on(world, lambda error: isinstance(error, Conflict), function, backoff)
