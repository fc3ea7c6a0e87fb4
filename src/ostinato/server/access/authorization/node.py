"""The Node authorizer: a node may do what its Pods need, and no more.

For users `system:node:NAME` of the group `system:nodes`. Reads of Secrets, ConfigMaps, claims, volumes and so on are
allowed where a Pod that is bound to the node refers to them; lists and watches of Pods only with the field selector
that leaves the node's own; writes are narrowed further by the admission plugin NodeRestriction. What is not divided
among nodes is allowed by the rules of the ClusterRole `system:node` as Kubernetes ships it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import Asked
from ostinato.server.access.authorization.decision import ALLOWED, NO_OPINION, Decision, Granted
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
    """The name of the node that a user is; "" if it has none, None if the user is not a node."""
    if not user.name.startswith(PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(PREFIX)


class NodeAuthorizer:
    """A mode."""

    def __init__(self, registry: Registry, rules: Callable[[], list[Rule]]) -> None:
        """`rules`: those of the ClusterRole `system:node`, read when a node asks for the first time."""
        self._graph = NodeGraph(registry)
        self._read_rules = rules
        self._rules: list[Rule] | None = None
        self._divided: dict[tuple[str, str], Callable[[str, Asked], Decision]] = {
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
            ("certificates.k8s.io", "podcertificaterequests"): lambda _node, _asked: NO_OPINION,
        }

    def decide_now(self, user: User, asked: Asked) -> Decision:
        if not user.name.startswith(PREFIX):
            return NO_OPINION
        node = node_of(user)
        if node is None:
            return NO_OPINION
        if not node:
            return _no(f"unknown node for user {quote(user.name)}")
        if asked.path is None:
            divided = self._divided.get((asked.group, asked.resource))
            if divided is not None:
                return divided(node, asked)
        if self._rules is None:
            self._rules = self._read_rules()
        return ALLOWED if any(rule.allows(asked) for rule in self._rules) else NO_OPINION

    async def decide(self, user: User, asked: Asked) -> Decision:
        return self.decide_now(user, asked)

    def granted(self, user: User, namespace: str) -> Granted:
        if node_of(user) is None:
            return Granted([])
        return Granted([], incomplete=True, error="node authorizer does not support user rule resolution")

    def _related(self, node: str, asked: Asked) -> Decision:
        if not asked.name:
            return _no("No Object name found")
        if self._graph.needs(node, asked.resource, asked.namespace, asked.name):
            return ALLOWED
        return _unrelated(node)

    def _read_namespaced(self, node: str, asked: Asked) -> Decision:
        if asked.verb not in _READING:
            return _no("can only read resources of this type")
        if asked.subresource:
            return _no("cannot read subresource")
        if not asked.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, asked)

    def _get(self, node: str, asked: Asked) -> Decision:
        if asked.verb != "get":
            return _no("can only get individual resources of this type")
        if asked.subresource:
            return _no("cannot get subresource")
        return self._related(node, asked)

    def _claim(self, node: str, asked: Asked) -> Decision:
        if asked.subresource != "status":
            return self._get(node, asked)
        if asked.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, asked)

    def _service_account(self, node: str, asked: Asked) -> Decision:
        if asked.verb == "get" and not asked.subresource:
            return self._read_namespaced(node, asked)
        if asked.verb != "create" or not asked.name:
            return _no("can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        needed = self._graph.needs(node, "serviceaccounts", asked.namespace, asked.name)
        return ALLOWED if needed else _unrelated(node)

    def _slice(self, node: str, asked: Asked) -> Decision:
        if asked.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        if asked.verb == "create":
            return ALLOWED
        if asked.verb in _OWN:
            return self._related(node, asked)
        if asked.verb in _SELECTED:
            if _selects(asked, node):
                return ALLOWED
            return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return _no(f"only the following verbs are allowed for a ResourceSlice: {verbs}")

    def _pod(self, node: str, asked: Asked) -> Decision:
        verb = asked.verb
        if not asked.subresource:
            if verb == "get":
                return self._get(node, asked)
            if verb in ("list", "watch"):
                if _selects(asked, node):
                    return ALLOWED
                if asked.name:
                    return self._related(node, asked)
                return _no("can only list/watch pods with spec.nodeName field selector")
        return ALLOWED if (asked.subresource, verb) in _POD_WRITES else NO_OPINION


# What of Pods a node may write, by subresource and verb; NodeRestriction sees to it that they are its own.
_POD_WRITES = frozenset(
    {("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create")}
)
_NODE_WRITES = frozenset({("", "create"), ("", "update"), ("", "patch"), ("status", "update"), ("status", "patch")})


def _node(node: str, asked: Asked) -> Decision:
    if (asked.subresource, asked.verb) in _NODE_WRITES:
        return ALLOWED
    if asked.subresource or asked.verb not in _READING:
        return NO_OPINION
    if asked.name == node:
        return ALLOWED
    what = f"'{asked.name}'" if asked.name else "all nodes"
    return _no(f"node '{node}' cannot read {what}, only its own Node object")


def _lease(node: str, asked: Asked) -> Decision:
    if asked.verb not in _OWN:
        return _no("can only get, create, update, patch, or delete a node lease")
    if asked.namespace != LEASES:
        return _no(f"can only access leases in the {quote(LEASES)} system namespace")
    if asked.verb != "create" and asked.name != node:
        return _no("can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: str, asked: Asked) -> Decision:
    if asked.verb not in _OWN:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if asked.subresource:
        return _no("cannot authorize CSINode subresources")
    if asked.verb != "create" and asked.name != node:
        return _no("can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _selects(asked: Asked, node: str) -> bool:
    """Whether a field selector leaves only what is of the node."""
    return any(
        term.field == "spec.nodeName" and term.value == node and not term.negated for term in asked.field_selector
    )


def _unrelated(node: str) -> Decision:
    return _no(f"no relationship found between node '{node}' and this object")


def _no(reason: str) -> Decision:
    return Decision(allowed=False, reason=reason)
