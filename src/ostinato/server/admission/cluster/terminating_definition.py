"""Rejects creates of custom resources whose CustomResourceDefinition is terminating."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Forbidden
from ostinato.server.admission.chain import Plugin
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class TerminatingDefinition(Plugin):
    mutates = frozenset({"CREATE"})

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if context.resource.terminating:
            name = obj["metadata"].get("name", "") if obj else ""
            why = "create not allowed while custom resource definition is terminating"
            raise Forbidden.of(context.resource.group_resource, name, why)
