"""The admission plugins that are off by default."""

from __future__ import annotations

from typing import Final

from ostinato.server.admission.access.owner_references import OwnerReferencesPermissionEnforcement
from ostinato.server.admission.cluster.always_deny import AlwaysDeny
from ostinato.server.admission.cluster.event_rate_limit import EventRateLimit
from ostinato.server.admission.cluster.external_ips import DenyServiceExternalIPs
from ostinato.server.admission.cluster.namespace_exists import NamespaceAutoProvision, NamespaceExists
from ostinato.server.admission.dependencies import PluginDependencies, PluginFactory
from ostinato.server.admission.pods.always_pull_images import AlwaysPullImages
from ostinato.server.admission.pods.anti_affinity import LimitPodHardAntiAffinityTopology
from ostinato.server.admission.pods.extended_resource_toleration import ExtendedResourceToleration
from ostinato.server.admission.pods.image_policy import ImagePolicyWebhook
from ostinato.server.admission.pods.node_selector import PodNodeSelector
from ostinato.server.admission.pods.toleration_restriction import ClusterTolerations, PodTolerationRestriction


def _image_policy(dependencies: PluginDependencies) -> ImagePolicyWebhook:
    policy = dependencies.settings.configuration["ImagePolicyWebhook"]
    return ImagePolicyWebhook(dependencies.world, policy, dependencies.webhooks.call)


def _node_selector(dependencies: PluginDependencies) -> PodNodeSelector:
    return PodNodeSelector(
        dependencies.kind("namespaces"), dependencies.settings.configuration.get("PodNodeSelector") or {}
    )


def _toleration_restriction(dependencies: PluginDependencies) -> PodTolerationRestriction:
    cluster = dependencies.settings.configuration.get("PodTolerationRestriction") or ClusterTolerations()
    return PodTolerationRestriction(dependencies.kind("namespaces"), cluster)


def _event_rate_limit(dependencies: PluginDependencies) -> EventRateLimit:
    return EventRateLimit(dependencies.world.clock, dependencies.settings.configuration["EventRateLimit"])


PLUGINS: Final[dict[str, PluginFactory]] = {
    "NamespaceAutoProvision": lambda m: NamespaceAutoProvision(m.kind("namespaces")),
    "NamespaceExists": lambda m: NamespaceExists(m.kind("namespaces")),
    "LimitPodHardAntiAffinityTopology": lambda _: LimitPodHardAntiAffinityTopology(),
    "AlwaysPullImages": lambda _: AlwaysPullImages(),
    "ImagePolicyWebhook": _image_policy,
    "PodNodeSelector": _node_selector,
    "PodTolerationRestriction": _toleration_restriction,
    "EventRateLimit": _event_rate_limit,
    "ExtendedResourceToleration": lambda _: ExtendedResourceToleration(),
    "OwnerReferencesPermissionEnforcement": lambda m: OwnerReferencesPermissionEnforcement(m.registry, m.authorizer),
    "DenyServiceExternalIPs": lambda _: DenyServiceExternalIPs(),
    "AlwaysDeny": lambda _: AlwaysDeny(),
}
