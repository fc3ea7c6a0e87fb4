"""Node authorizer: allows a kubelet what the Pods bound to its node need.

Applies to users `system:node:NAME` in the group `system:nodes`:

- Secrets, ConfigMaps, claims and volumes may be read if a Pod bound to the node references them.
- Pods may be listed and watched only with a field selector for the node.
- Writes are restricted further by the admission plugin NodeRestriction.
- Other resources are allowed by the bootstrap rules of the ClusterRole `system:node`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import ALLOWED, NO_OPINION, Decision, ResolvedRules
from ostinato.server.access.authorization.node_graph import NodeGraph
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry

NODES: Final = "system:nodes"
PREFIX: Final = "system:node:"
LEASES: Final = "kube-node-lease"

_READING = frozenset({"get", "list", "watch"})
_OWN = frozenset({"get", "create", "update", "patch", "delete"})
_SELECTED = frozenset({"list", "watch", "deletecollection"})


def node_of(user: User) -> str | None:
    """The node name of a kubelet's user; "" if the name is missing, None if the user is not a node."""
    if not user.name.startswith(PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(PREFIX)


class NodeAuthorizer:
    """Node mode."""

    def __init__(self, registry: Registry, rules: Callable[[], list[Rule]]) -> None:
        """`rules`: returns the rules of the ClusterRole `system:node`; called with the first request of a node."""
        self._graph = NodeGraph(registry)
        self._read_rules = rules
        self._rules: list[Rule] | None = None
        self._by_resource: dict[tuple[str, str], Callable[[str, RequestAttributes], Decision]] = {
            ("", "secrets"): self._read_namespaced,
            ("", "configmaps"): self._read_namespaced,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("storage.k8s.io", "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._service_account,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
            ("certificates.k8s.io", "podcertificaterequests"): lambda _node, _attributes: NO_OPINION,
        }

    def decide_now(self, user: User, attributes: RequestAttributes) -> Decision:
        if not user.name.startswith(PREFIX):
            return NO_OPINION
        node = node_of(user)
        if node is None:
            return NO_OPINION
        if not node:
            return _no_opinion(f"unknown node for user {quote(user.name)}")
        if attributes.path is None:
            decide_resource = self._by_resource.get((attributes.group, attributes.resource))
            if decide_resource is not None:
                return decide_resource(node, attributes)
        if self._rules is None:
            self._rules = self._read_rules()
        return ALLOWED if any(rule.allows(attributes) for rule in self._rules) else NO_OPINION

    async def decide(self, user: User, attributes: RequestAttributes) -> Decision:
        return self.decide_now(user, attributes)

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        if node_of(user) is None:
            return ResolvedRules([])
        return ResolvedRules([], incomplete=True, error="node authorizer does not support user rule resolution")

    def _related(self, node: str, attributes: RequestAttributes) -> Decision:
        if not attributes.name:
            return _no_opinion("No Object name found")
        if self._graph.needs(node, attributes.resource, attributes.namespace, attributes.name):
            return ALLOWED
        return _unrelated(node)

    def _read_namespaced(self, node: str, attributes: RequestAttributes) -> Decision:
        if attributes.verb not in _READING:
            return _no_opinion("can only read resources of this type")
        if attributes.subresource:
            return _no_opinion("cannot read subresource")
        if not attributes.namespace:
            return _no_opinion("can only read namespaced object of this type")
        return self._related(node, attributes)

    def _get(self, node: str, attributes: RequestAttributes) -> Decision:
        if attributes.verb != "get":
            return _no_opinion("can only get individual resources of this type")
        if attributes.subresource:
            return _no_opinion("cannot get subresource")
        return self._related(node, attributes)

    def _claim(self, node: str, attributes: RequestAttributes) -> Decision:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _no_opinion("can only get/update/patch this type")
        return self._related(node, attributes)

    def _service_account(self, node: str, attributes: RequestAttributes) -> Decision:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read_namespaced(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _no_opinion("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no_opinion("can only create token subresource of serviceaccount")
        needed = self._graph.needs(node, "serviceaccounts", attributes.namespace, attributes.name)
        return ALLOWED if needed else _unrelated(node)

    def _slice(self, node: str, attributes: RequestAttributes) -> Decision:
        if attributes.subresource:
            return _no_opinion("cannot authorize ResourceSlice subresources")
        if attributes.verb == "create":
            return ALLOWED
        if attributes.verb in _OWN:
            return self._related(node, attributes)
        if attributes.verb in _SELECTED:
            if _selects(attributes, node):
                return ALLOWED
            return _no_opinion("can only list/watch/deletecollection resourceslices with nodeName field selector")
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return _no_opinion(f"only the following verbs are allowed for a ResourceSlice: {verbs}")

    def _pod(self, node: str, attributes: RequestAttributes) -> Decision:
        verb = attributes.verb
        if not attributes.subresource:
            if verb == "get":
                return self._get(node, attributes)
            if verb in ("list", "watch"):
                if _selects(attributes, node):
                    return ALLOWED
                if attributes.name:
                    return self._related(node, attributes)
                return _no_opinion("can only list/watch pods with spec.nodeName field selector")
        return ALLOWED if (attributes.subresource, verb) in _POD_WRITES else NO_OPINION


# Allowed Pod writes by subresource and verb; NodeRestriction restricts them to the node's own Pods.
_POD_WRITES = frozenset(
    {("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create")}
)
_NODE_WRITES = frozenset({("", "create"), ("", "update"), ("", "patch"), ("status", "update"), ("status", "patch")})


def _node(node: str, attributes: RequestAttributes) -> Decision:
    if (attributes.subresource, attributes.verb) in _NODE_WRITES:
        return ALLOWED
    if attributes.subresource or attributes.verb not in _READING:
        return NO_OPINION
    if attributes.name == node:
        return ALLOWED
    what = f"'{attributes.name}'" if attributes.name else "all nodes"
    return _no_opinion(f"node '{node}' cannot read {what}, only its own Node object")


def _lease(node: str, attributes: RequestAttributes) -> Decision:
    if attributes.verb not in _OWN:
        return _no_opinion("can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != LEASES:
        return _no_opinion(f"can only access leases in the {quote(LEASES)} system namespace")
    if attributes.verb != "create" and attributes.name != node:
        return _no_opinion("can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: str, attributes: RequestAttributes) -> Decision:
    if attributes.verb not in _OWN:
        return _no_opinion("can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return _no_opinion("cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return _no_opinion("can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _selects(attributes: RequestAttributes, node: str) -> bool:
    """Whether the field selector restricts the request to the node."""
    return any(
        term.field == "spec.nodeName" and term.value == node and not term.negated for term in attributes.field_selector
    )


def _unrelated(node: str) -> Decision:
    return _no_opinion(f"no relationship found between node '{node}' and this object")


def _no_opinion(reason: str) -> Decision:
    return Decision(allowed=False, reason=reason)
