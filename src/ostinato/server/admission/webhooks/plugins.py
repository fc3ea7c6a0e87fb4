"""Admission webhooks: writes are shown to the servers that configurations name, which may change or refuse them.

What that takes is loaded when there is a first configuration; until then, a write pays one look at whether there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ostinato.server.admission.chain import Plugin
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.admission.webhooks.mutating import MutatingWebhooks
    from ostinato.server.admission.webhooks.validating import ValidatingWebhooks
    from ostinato.server.request.context import Context
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry
    from ostinato.server.webhooks import Ask


class Parts(NamedTuple):
    """What webhooks are asked with."""

    registry: Registry
    namespaces: Lister
    authorizer: Authorizer
    ask: Ask


class MutatingWebhook(Plugin):
    """`before`: the plugins that are asked again when a webhook has changed something."""

    def __init__(self, configurations: Lister, parts: Parts, before: Sequence[Plugin]) -> None:
        self._configurations = configurations
        self.goes_by = (configurations.collection.entries,)
        self._parts = parts
        self._before = [plugin for plugin in before if type(plugin).mutate is not Plugin.mutate]
        self._webhooks: MutatingWebhooks | None = None

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        await self._ask(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation == "DELETE":  # which has nothing to change: this is when it is asked about
            await self._ask(context, operation, obj, old, options)

    async def _ask(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        from ostinato.server.admission.policies.matching import Attributes  # noqa: PLC0415 - see above

        if self._webhooks is None:
            from ostinato.server.admission.webhooks.mutating import MutatingWebhooks  # noqa: PLC0415

            self._webhooks = MutatingWebhooks(self._configurations, self._parts, self._before)
        await self._webhooks.ask(Attributes(context, operation, obj, old, options))


class ValidatingWebhook(Plugin):
    def __init__(self, configurations: Lister, parts: Parts) -> None:
        self._configurations = configurations
        self.goes_by = (configurations.collection.entries,)
        self._parts = parts
        self._webhooks: ValidatingWebhooks | None = None

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        from ostinato.server.admission.policies.matching import Attributes  # noqa: PLC0415 - see above

        if self._webhooks is None:
            from ostinato.server.admission.webhooks.validating import ValidatingWebhooks  # noqa: PLC0415

            self._webhooks = ValidatingWebhooks(self._configurations, self._parts)
        await self._webhooks.ask(Attributes(context, operation, obj, old, options))
