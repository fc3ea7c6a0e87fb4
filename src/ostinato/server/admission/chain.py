"""The admission chain: mutating plugins in order, then validating plugins.

A plugin is skipped for resources and operations that it does not cover, and while the configuration objects that it
depends on do not exist, so that it costs nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Any

from ostinato.api.gvk import GroupResource
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class Plugin:
    """An admission plugin. `operation`: CREATE, UPDATE, DELETE or CONNECT; `obj`: None for a delete."""

    covers: frozenset[GroupResource] | None = None  # resources, with their subresources; None: all
    mutates: frozenset[str] = _OPERATIONS  # `mutate` is called for these
    validates: frozenset[str] = _OPERATIONS  # `validate` is called for these
    skip_while_empty: Sequence[Sized] | None = None  # skipped while all of these are empty; None: never skipped

    def applies(self, resource: GroupResource, operation: str, operations: frozenset[str]) -> bool:
        """Whether a phase applies to a request. `operations`: `mutates` or `validates`."""
        return operation in operations and (self.covers is None or resource in self.covers)

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
        # By resource and operation.
        self._mutating_for: dict[tuple[GroupResource, str], _Plugins] = {}
        self._validating_for: dict[tuple[GroupResource, str], _Plugins] = {}

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        asked = (context.resource.group_resource, operation)
        plugins = self._mutating_for.get(asked)
        if plugins is None:
            plugins = [(p, p.skip_while_empty) for p in self._mutating if p.applies(*asked, p.mutates)]
            self._mutating_for[asked] = plugins
        for plugin, skip_while_empty in plugins:
            if skip_while_empty is None or any(skip_while_empty):
                await plugin.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        asked = (context.resource.group_resource, operation)
        plugins = self._validating_for.get(asked)
        if plugins is None:
            plugins = [(p, p.skip_while_empty) for p in self._validating if p.applies(*asked, p.validates)]
            self._validating_for[asked] = plugins
        for plugin, skip_while_empty in plugins:
            if skip_while_empty is None or any(skip_while_empty):
                await plugin.validate(context, operation, obj, old, options)


_Plugins = list[tuple[Plugin, Sequence[Sized] | None]]  # with their `skip_while_empty`
