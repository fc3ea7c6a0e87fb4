"""The strategies of the built-in kinds; kinds that are not here follow the common rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.resources import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apps,
    autoscaling,
    batch,
    certificates,
    coordination,
    core,
    discovery,
    dynamic_resources,
    events,
    flowcontrol,
    networking,
    node,
    policy,
    rbac,
    scheduling,
    storage,
)
from ostinato.server.resources.strategy import Json, Strategy

# By group and resource.
_STRATEGIES: dict[tuple[str, str], Strategy] = {
    **admissionregistration.STRATEGIES,
    **apiextensions.STRATEGIES,
    **apiregistration.STRATEGIES,
    **apps.STRATEGIES,
    **autoscaling.STRATEGIES,
    **batch.STRATEGIES,
    **certificates.STRATEGIES,
    **coordination.STRATEGIES,
    **discovery.STRATEGIES,
    **dynamic_resources.STRATEGIES,
    **events.STRATEGIES,
    **flowcontrol.STRATEGIES,
    **networking.STRATEGIES,
    **node.STRATEGIES,
    **policy.STRATEGIES,
    **rbac.STRATEGIES,
    **scheduling.STRATEGIES,
    **storage.STRATEGIES,
    **core.STRATEGIES,
}
_COMMON = Strategy()


class Shared(NamedTuple):
    """How a resource uses the storage of another."""

    stored_as: GroupVersionKind
    from_storage: Callable[[Json], Json]
    to_storage: Callable[[Json], Json]
    strategy: Strategy


# By group, version and resource: those that are not stored as they are served.
SHARED: dict[tuple[str, str, str], Shared] = {
    ("events.k8s.io", "v1", "events"): Shared(
        GroupVersionKind("", "v1", "Event"), events.from_core, events.to_core, events.NewEvent()
    ),
    ("autoscaling", "v1", "horizontalpodautoscalers"): Shared(
        GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        autoscaling.from_v2,
        autoscaling.to_v2,
        autoscaling.OldHorizontalPodAutoscaler(),
    ),
}

# What every answer for a deprecated kind tells, by group, version and resource.
DEPRECATED: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("", "v1", "componentstatuses"): ("v1 ComponentStatus is deprecated in v1.19+",),
    ("", "v1", "endpoints"): ("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",),
}


def strategy_of(group: str, version: str, resource: str) -> Strategy:
    shared = SHARED.get((group, version, resource))
    return shared.strategy if shared else _STRATEGIES.get((group, resource), _COMMON)
