"""Plugins of MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

The dispatchers are imported with the first configuration; until then a write costs one check for configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ostinato.server.admission.chain import Plugin
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.admission.webhooks.metrics import WebhookMetrics
    from ostinato.server.admission.webhooks.mutating import MutatingDispatcher
    from ostinato.server.admission.webhooks.validating import ValidatingDispatcher
    from ostinato.server.request.context import Context
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry
    from ostinato.server.webhooks import PostReview


class WebhookDependencies(NamedTuple):
    """Dependencies of the webhook plugins."""

    registry: Registry
    namespaces: Lister
    authorizer: Authorizer
    post_review: PostReview
    metrics: WebhookMetrics


class MutatingAdmissionWebhookPlugin(Plugin):
    """`before`: the plugins that are reinvoked when a webhook changes the object."""

    validates = frozenset({"DELETE"})  # deletes have no mutating phase

    def __init__(self, configurations: Lister, dependencies: WebhookDependencies, before: Sequence[Plugin]) -> None:
        self._configurations = configurations
        self.skip_while_empty = (configurations.collection.entries,)
        self._dependencies = dependencies
        self._before = [plugin for plugin in before if type(plugin).mutate is not Plugin.mutate]
        self._webhooks: MutatingDispatcher | None = None

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        await self._dispatch(context, operation, obj, old, options)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        await self._dispatch(context, operation, obj, old, options)

    async def _dispatch(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        from ostinato.server.admission.policies.matching import Attributes  # noqa: PLC0415 - see above

        if self._webhooks is None:
            from ostinato.server.admission.webhooks.mutating import MutatingDispatcher  # noqa: PLC0415

            self._webhooks = MutatingDispatcher(self._configurations, self._dependencies, self._before)
        await self._webhooks.dispatch(Attributes(context, operation, obj, old, options))


class ValidatingAdmissionWebhookPlugin(Plugin):
    def __init__(self, configurations: Lister, dependencies: WebhookDependencies) -> None:
        self._configurations = configurations
        self.skip_while_empty = (configurations.collection.entries,)
        self._dependencies = dependencies
        self._webhooks: ValidatingDispatcher | None = None

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        from ostinato.server.admission.policies.matching import Attributes  # noqa: PLC0415 - see above

        if self._webhooks is None:
            from ostinato.server.admission.webhooks.validating import ValidatingDispatcher  # noqa: PLC0415

            self._webhooks = ValidatingDispatcher(self._configurations, self._dependencies)
        await self._webhooks.dispatch(Attributes(context, operation, obj, old, options))
