"""The chain: every plugin in its order, first those that may change the object, then those that only look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.verbs.context import Context


class Plugin:
    """One admission plugin. `operation` is CREATE, UPDATE, DELETE or CONNECT; `obj` is None on a delete."""

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        """May change the object in place, or raise an APIError."""

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        """May raise an APIError."""


class Admission:
    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._mutating = [p for p in plugins if type(p).mutate is not Plugin.mutate]
        self._validating = [p for p in plugins if type(p).validate is not Plugin.validate]

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        for plugin in self._mutating:
            await plugin.mutate(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        for plugin in self._validating:
            await plugin.validate(context, operation, obj, old, options)
