"""Create on update: an update or apply that creates an object also needs the verb create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import MASTERS, Authorizer
from ostinato.server.admission.chain import Plugin
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class CreateByUpdate(Plugin):
    validates = frozenset({"CREATE"})

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        route = context.route
        if route.verb == "create":
            return
        user = context.request.user
        if user is not None and MASTERS not in user.groups:
            attributes = RequestAttributes(
                "create", route.group, route.resource, route.subresource, route.namespace, route.name
            )
            await self._authorizer.check(user, attributes)
