"""The admission chain: mutating plugins in order, then validating plugins.

A plugin is skipped for resources that it does not cover, and while the configuration objects that it depends on do not
exist, so that it costs nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Any

from ostinato.api.gvk import GroupResource
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


class Plugin:
    """An admission plugin. `operation`: CREATE, UPDATE, DELETE or CONNECT; `obj`: None for a delete."""

    covers: frozenset[GroupResource] | None = None  # resources, with their subresources; None: all
    skip_while_empty: Sequence[Sized] | None = None  # skipped while all of these are empty; None: never skipped

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        """Mutate the object in place; APIError to reject the request."""

    async def reinvoke(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        """Mutate again after a webhook changed the object. Defaults to `mutate`."""
        await self.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        """Validate the object; APIError to reject the request."""


def resources(*names: str) -> frozenset[GroupResource]:
    """Parse resources for `Plugin.covers`: `resources("pods", "ingresses.networking.k8s.io")`."""
    return frozenset(map(GroupResource.parse, names))


class AdmissionChain:
    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._mutating = [p for p in plugins if type(p).mutate is not Plugin.mutate]
        self._validating = [p for p in plugins if type(p).validate is not Plugin.validate]
        self._by_resource: dict[GroupResource, tuple[_Plugins, _Plugins]] = {}  # mutating, validating

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        for plugin, skip_while_empty in self._plugins_for(context.resource.group_resource)[0]:
            if skip_while_empty is None or any(skip_while_empty):
                await plugin.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        for plugin, skip_while_empty in self._plugins_for(context.resource.group_resource)[1]:
            if skip_while_empty is None or any(skip_while_empty):
                await plugin.validate(context, operation, obj, old, options)

    def _plugins_for(self, resource: GroupResource) -> tuple[_Plugins, _Plugins]:
        covering = self._by_resource.get(resource)
        if covering is None:
            mutating, validating = (
                [
                    (plugin, plugin.skip_while_empty)
                    for plugin in plugins
                    if plugin.covers is None or resource in plugin.covers
                ]
                for plugins in (self._mutating, self._validating)
            )
            covering = self._by_resource[resource] = (mutating, validating)
        return covering


_Plugins = list[tuple[Plugin, Sequence[Sized] | None]]  # with their `skip_while_empty`
