"""Handlers of the subresources of Pods."""

from __future__ import annotations

from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.node_agents.endpoint import NodeAgents
from ostinato.server.request.context import Handler, HandlerKey, Handlers
from ostinato.server.resources.body_resource import BodyResource
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.verbs.subresources.binding import binding_handler
from ostinato.server.verbs.subresources.eviction import EVICTION, eviction_handler
from ostinato.server.verbs.subresources.pod_connect import connect_handler


def pod_handlers(registry: Registry, nodes: NodeAgents, authorizer: Authorizer) -> Handlers:
    """Handlers of binding, eviction and the connect subresources."""
    pods, bindings = _resource(registry, "", "pods"), _resource(registry, "", "bindings")
    budgets, all_nodes = _resource(registry, "policy", "poddisruptionbudgets"), _resource(registry, "", "nodes")
    bind = binding_handler(pods, bindings)
    found: dict[HandlerKey, Handler] = {
        ("", "bindings", "", "create"): bind,
        ("", "pods", "binding", "create"): bind,
        ("", "pods", "eviction", "create"): eviction_handler(BodyResource(pods.gvr, EVICTION), budgets),
        ("", "pods", "log", "get"): connect_handler(all_nodes, nodes, authorizer, "log"),
    }
    for what in ("exec", "attach", "portforward"):
        for verb in ("get", "create"):
            found["", "pods", what, verb] = connect_handler(all_nodes, nodes, authorizer, what)
    return found


def _resource(registry: Registry, group: str, name: str) -> Resource:
    found = registry.get(group, "v1", name)
    assert found is not None
    return found
