"""Dependencies of admission plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ostinato.server.admission.chain import Plugin
from ostinato.server.resources.lister import Lister

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.admission.settings import AdmissionSettings
    from ostinato.server.admission.webhooks.metrics import WebhookMetrics
    from ostinato.server.resources.registry import Registry
    from ostinato.server.webhooks import Webhooks
    from ostinato.world import World


class PluginDependencies(NamedTuple):
    world: World
    registry: Registry
    authorizer: Authorizer
    webhooks: Webhooks
    webhook_metrics: WebhookMetrics
    settings: AdmissionSettings
    before: Sequence[Plugin] = ()  # the plugins before the one that is built

    def kind(self, resource: str, group: str = "") -> Lister:
        return Lister(self.registry, group, "v1", resource)


PluginFactory = Callable[[PluginDependencies], Plugin]
