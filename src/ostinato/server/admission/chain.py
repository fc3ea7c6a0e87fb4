"""The chain: every plugin in its order, first those that may change the object, then those that only look.

A plugin that says which resources it is about is not asked of others, so that it costs their writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ostinato.api.gvk import GroupResource
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.verbs.context import Context


class Plugin:
    """One admission plugin. `operation` is CREATE, UPDATE, DELETE or CONNECT; `obj` is None on a delete."""

    about: frozenset[GroupResource] | None = None  # the resources that it is about, subresources included; None: all

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        """May change the object in place, or raise an APIError."""

    async def mutate_again(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        """The same, when a webhook has changed the object since."""
        await self.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        """May raise an APIError."""


def resources(*names: str) -> frozenset[GroupResource]:
    """What a plugin is about: `resources("pods", "ingresses.networking.k8s.io")`."""
    return frozenset(map(GroupResource.parse, names))


class Admission:
    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._mutating = [p for p in plugins if type(p).mutate is not Plugin.mutate]
        self._validating = [p for p in plugins if type(p).validate is not Plugin.validate]
        self._asked: dict[GroupResource, tuple[list[Plugin], list[Plugin]]] = {}  # by resource, those that are about it

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        for plugin in self._about(context.resource.group_resource)[0]:
            await plugin.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        for plugin in self._about(context.resource.group_resource)[1]:
            await plugin.validate(context, operation, obj, old, options)

    def _about(self, resource: GroupResource) -> tuple[list[Plugin], list[Plugin]]:
        asked = self._asked.get(resource)
        if asked is None:
            mutating, validating = (
                [plugin for plugin in plugins if plugin.about is None or resource in plugin.about]
                for plugins in (self._mutating, self._validating)
            )
            asked = self._asked[resource] = (mutating, validating)
        return asked
