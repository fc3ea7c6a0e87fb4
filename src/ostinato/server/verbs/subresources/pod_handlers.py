"""The subresources of Pods that are no objects: who answers which."""

from __future__ import annotations

from functools import partial

from ostinato.api.schema import builtin_schemas
from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.node_agents.endpoint import Nodes
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Strategy
from ostinato.server.schema import builtin
from ostinato.server.verbs.subresources.binding import binds
from ostinato.server.verbs.subresources.eviction import EVICTION, evicts
from ostinato.server.verbs.subresources.pod_connect import connects


def install(registry: Registry, nodes: Nodes, authorizer: Authorizer) -> None:
    """Let the Pods of a server be bound, evicted and connected to."""
    pods, bindings = _resource(registry, "", "pods"), _resource(registry, "", "bindings")
    bind = binds(pods, bindings)
    bindings.handlers["", "create"] = bind
    pods.handlers["binding", "create"] = bind
    budgets = _resource(registry, "policy", "poddisruptionbudgets")
    pods.handlers["eviction", "create"] = evicts(_evictions(pods), budgets)
    resource = _resource(registry, "", "nodes")
    pods.handlers["log", "get"] = connects(resource, nodes, authorizer, "log")
    for what in ("exec", "attach", "portforward"):
        pods.handlers[what, "get"] = pods.handlers[what, "create"] = connects(resource, nodes, authorizer, what)


def _resource(registry: Registry, group: str, name: str) -> Resource:
    found = registry.get(group, "v1", name)
    assert found is not None
    return found


def _evictions(pods: Resource) -> Resource:
    """Evictions, as a resource: they have a body, but no storage."""
    made = Resource(
        gvr=pods.gvr,
        gvk=EVICTION,
        namespaced=True,
        verbs=(),
        strategy=Strategy(),
        schema=builtin_schemas().of(EVICTION),
        collection=None,
    )
    made.read = partial(builtin.read, builtin.model_of(EVICTION))
    return made
