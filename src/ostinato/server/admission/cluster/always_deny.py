"""AlwaysDeny: rejects every write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import forbidden
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class AlwaysDeny(Plugin):
    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        raise forbidden(context, obj or old, "admission control is denying all modifications")

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        raise forbidden(context, obj or old, "admission control is denying all modifications")
