"""The admission chain: mutating plugins in order, then validating plugins.

A plugin is skipped for resources and operations that it does not cover, and while the configuration objects that it
depends on do not exist, so that it costs nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from ostinato.api.gvk import GroupResource
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context


_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class Plugin:
    """An admission plugin. `operation`: CREATE, UPDATE, DELETE or CONNECT; `obj`: None for a delete."""

    covers: ClassVar[frozenset[GroupResource] | None] = None  # resources, with their subresources; None: all
    mutates: ClassVar[frozenset[str]] = _OPERATIONS  # `mutate` is called for these
    validates: ClassVar[frozenset[str]] = _OPERATIONS  # `validate` is called for these
    skip_while_empty: Sequence[Sized] | None = None  # skipped while all of these are empty; None: never skipped
    # Whether a write of a Pod's status is not mutated, and admitted depending on the contents of the object and on the
    # node that the user is alone.
    judges_status_by_content = False

    @classmethod
    def applies(cls, resource: GroupResource, operation: str, operations: frozenset[str]) -> bool:
        """Whether a phase applies to a request. `operations`: `mutates` or `validates`."""
        return operation in operations and (cls.covers is None or resource in cls.covers)

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
        self._mutating_types = tuple(map(type, self._mutating))
        self._validating_types = tuple(map(type, self._validating))
        # By resource and operation.
        self._mutating_for: dict[tuple[GroupResource, str], _Plugins] = {}
        self._validating_for: dict[tuple[GroupResource, str], _Plugins] = {}
        self._judging_status: dict[GroupResource, _Plugins] = {}  # by anything else than the content

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        asked = (context.resource.group_resource, operation)
        plugins = self._mutating_for.get(asked)
        if plugins is None:
            found = [self._mutating[number] for number in _that_mutate(self._mutating_types, *asked)]
            plugins = self._mutating_for[asked] = [(p, p.skip_while_empty) for p in found]
        for plugin, skip_while_empty in plugins:
            if skip_while_empty is None or any(skip_while_empty):
                await plugin.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        asked = (context.resource.group_resource, operation)
        plugins = self._validating_for.get(asked)
        if plugins is None:
            found = [self._validating[number] for number in _that_validate(self._validating_types, *asked)]
            plugins = self._validating_for[asked] = [(p, p.skip_while_empty) for p in found]
        for plugin, skip_while_empty in plugins:
            if skip_while_empty is None or any(skip_while_empty):
                await plugin.validate(context, operation, obj, old, options)

    def judges_status_by_content(self, resource: GroupResource) -> bool:
        """Whether all plugins do that now: then writes with the same content are admitted alike, or none of them."""
        plugins = self._judging_status.get(resource)
        if plugins is None:
            asked = (resource, "UPDATE")
            active = [p for p in self._mutating if p.applies(*asked, p.mutates)]
            active += [p for p in self._validating if p.applies(*asked, p.validates)]
            plugins = [(p, p.skip_while_empty) for p in active if not p.judges_status_by_content]
            self._judging_status[resource] = plugins
        return not any(skip_while_empty is None or any(skip_while_empty) for _, skip_while_empty in plugins)


# The numbers of the plugins that apply, which servers with the same plugins share.


@lru_cache(maxsize=1024)
def _that_mutate(types: tuple[type[Plugin], ...], resource: GroupResource, operation: str) -> list[int]:
    return [number for number, each in enumerate(types) if each.applies(resource, operation, each.mutates)]


@lru_cache(maxsize=1024)
def _that_validate(types: tuple[type[Plugin], ...], resource: GroupResource, operation: str) -> list[int]:
    return [number for number, each in enumerate(types) if each.applies(resource, operation, each.validates)]


_Plugins = list[tuple[Plugin, Sequence[Sized] | None]]  # with their `skip_while_empty`
