"""The strategies of the built-in kinds, by group and resource; kinds that are not here follow the common rules."""

from __future__ import annotations

from ostinato.server.resources import apiextensions, apps, batch, core
from ostinato.server.resources.strategy import Strategy

STRATEGIES: dict[tuple[str, str], Strategy] = {
    **core.STRATEGIES,
    **apps.STRATEGIES,
    **batch.STRATEGIES,
    **apiextensions.STRATEGIES,
}

# Resources that share the storage of another: (group, version, resource) -> (group, version) of the stored kind.
STORED_AS: dict[tuple[str, str, str], tuple[str, str]] = {
    ("events.k8s.io", "v1", "events"): ("", "v1"),
    ("autoscaling", "v1", "horizontalpodautoscalers"): ("autoscaling", "v2"),
}
