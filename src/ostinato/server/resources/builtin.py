"""Strategies of built-in kinds; a kind without one uses the default strategy.

The package of a group is loaded when one of its kinds is first used: loading all of them would dominate the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from ostinato.api.gvk import GroupVersionKind
from ostinato.server.resources.strategy import Json, Strategy

# By group: packages with `strategy.STRATEGIES` (by resource) and `table.CELLS`.
PACKAGES: dict[str, tuple[str, ...]] = {
    "": ("core", "events"),
    "admissionregistration.k8s.io": ("admissionregistration",),
    "apiextensions.k8s.io": ("apiextensions",),
    "apiregistration.k8s.io": ("apiregistration",),
    "apps": ("apps",),
    "autoscaling": ("autoscaling",),
    "batch": ("batch",),
    "certificates.k8s.io": ("certificates",),
    "coordination.k8s.io": ("coordination",),
    "discovery.k8s.io": ("discovery",),
    "events.k8s.io": ("events",),
    "flowcontrol.apiserver.k8s.io": ("flowcontrol",),
    "networking.k8s.io": ("networking",),
    "node.k8s.io": ("node",),
    "policy": ("policy",),
    "rbac.authorization.k8s.io": ("rbac",),
    "resource.k8s.io": ("dynamic_resources",),
    "scheduling.k8s.io": ("scheduling",),
    "storage.k8s.io": ("storage",),
}
_COMMON = Strategy()


@cache
def _strategies(group: str) -> Mapping[str, Strategy]:
    """The strategies of a group, by resource."""
    found: dict[str, Strategy] = {}
    for name in PACKAGES.get(group, ()):
        module = import_module(f"ostinato.server.resources.{name}.strategy")
        strategies: dict[tuple[str, str], Strategy] = module.STRATEGIES
        found |= {resource: strategy for (_, resource), strategy in strategies.items()}
    return found


class SharedStorage(NamedTuple):
    """A resource that uses the storage of another one."""

    stored_as: GroupVersionKind
    from_storage: Callable[[Json], Json]
    to_storage: Callable[[Json], Json]
    strategy: Callable[[], Strategy]


def _lazy(package: str, name: str) -> Callable[..., Any]:
    """Return a function that loads `name` from a package's `strategy` on its first call."""

    @cache
    def found() -> Callable[..., Any]:
        what: Callable[..., Any] = getattr(import_module(f"ostinato.server.resources.{package}.strategy"), name)
        return what

    def call(*given: Any) -> Any:
        return found()(*given)

    return call


# By group, version and resource: resources whose storage version is another one.
SHARED: dict[tuple[str, str, str], SharedStorage] = {
    ("events.k8s.io", "v1", "events"): SharedStorage(
        GroupVersionKind("", "v1", "Event"),
        _lazy("events", "from_core"),
        _lazy("events", "to_core"),
        _lazy("events", "EventsEvent"),
    ),
    ("autoscaling", "v1", "horizontalpodautoscalers"): SharedStorage(
        GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        _lazy("autoscaling", "from_v2"),
        _lazy("autoscaling", "to_v2"),
        _lazy("autoscaling", "HorizontalPodAutoscalerV1"),
    ),
}

# Deprecation warnings, by group, version and resource.
DEPRECATED: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("", "v1", "componentstatuses"): ("v1 ComponentStatus is deprecated in v1.19+",),
    ("", "v1", "endpoints"): ("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",),
}


def strategy_of(group: str, version: str, resource: str) -> Strategy:
    shared = SHARED.get((group, version, resource))
    return shared.strategy() if shared else _strategies(group).get(resource, _COMMON)
