"""Token cleaner: deletes expired bootstrap tokens."""

from __future__ import annotations

from typing import Final

from ostinato.api.errors import Conflict
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.core_v1 import Secret
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.bootstrap import tokens as bootstrap

NAME: Final = "token-cleaner-controller"


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    manager.build(NAME).watch_for(Secret, settings=bootstrap.SECRETS).complete(TokenCleaner())


class TokenCleaner:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        secret = await ctx.client.live.get(Secret, request, missing=None)
        if secret is None or secret.type != bootstrap.TYPE:
            return None
        left = bootstrap.seconds_left(secret, ctx.world.clock.now())
        if left is None:
            return None
        if left > 0:
            return Result(requeue_after=left)
        try:
            await ctx.client.delete(secret, missing_ok=True)
        except Conflict:  # the new object enqueues it again
            return None
        return None
