"""NodeRestriction: restricts the writes of kubelets to their own objects.

The Node authorizer decides by request attributes; this plugin inspects the objects. A kubelet may update its own Node
(except taints, owner references and restricted labels), update the status of and delete Pods bound to it, create mirror
Pods without references, renew its Lease, and request tokens and certificates for its own identity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ostinato.api.errors import APIError, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.text.go_format import quote
from ostinato.server.access.authorization.node import LEASES, PREFIX, node_of
from ostinato.server.admission.access.node_tokens import TokenAudiences
from ostinato.server.admission.access.pod_references import PodReferenceError, referenced
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import forbidden
from ostinato.server.request import User
from ostinato.server.resources.certificates.validation import parse_request
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.request.context import Context
    from ostinato.server.resources.registry import Registry

MIRROR: Final = "kubernetes.io/config.mirror"

_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_KUBELET_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED = "node-restriction.kubernetes.io"
_CLAIM_STATUS = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")


def _is_node(user: User | None) -> bool:
    return user is not None and user.name.startswith(PREFIX)


class NodeRestriction(Plugin):
    mutates = frozenset({"CREATE", "UPDATE"})
    validates = frozenset({"DELETE"})  # deletes have no mutating phase
    judges_status_by_content = True

    def __init__(self, registry: Registry, authorizer: Authorizer) -> None:
        self._pods = Lister(registry, "", "v1", "pods")
        self._nodes = Lister(registry, "", "v1", "nodes")
        self._audiences = TokenAudiences(registry, authorizer)

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if _is_node(context.request.user):
            await self._restrict(context, operation, obj, old)

    async def validate(
        self,
        context: Context,
        operation: str,
        obj: Json | None,
        old: Json | None,
        options: Any,
    ) -> None:
        if _is_node(context.request.user):
            await self._restrict(context, operation, obj, old)

    async def _restrict(self, context: Context, operation: str, obj: Json | None, old: Json | None) -> None:
        user = context.request.user
        assert user is not None
        node = node_of(user)
        if node is None:
            return
        if not node:
            raise forbidden(context, obj, f"could not determine node from user {quote(user.name)}")
        group, resource = context.resource.gvr.group, context.resource.gvr.resource
        match (group, resource):
            case ("", "pods"):
                self._pod(context, node, operation, obj, old)
            case ("", "nodes"):
                _node(context, node, operation, obj, old)
            case ("", "persistentvolumeclaims"):
                _claim(context, node, operation, obj, old)
            case ("", "serviceaccounts") if operation == "CREATE" and context.route.subresource == "token":
                await self._token(context, node, obj or {})
            case ("coordination.k8s.io", "leases"):
                _lease(context, node, operation, obj)
            case ("storage.k8s.io", "csinodes"):
                _own_name(context, node, operation, obj, "CSINode")
            case ("resource.k8s.io", "resourceslices"):
                _slice(context, node, operation, obj, old)
            case ("certificates.k8s.io", "certificatesigningrequests") if operation == "CREATE":
                _signing_request(context, node, obj or {})

    # Pods

    def _pod(self, context: Context, node: str, operation: str, obj: Json | None, old: Json | None) -> None:
        subresource = context.route.subresource
        if subresource == "status":
            _pod_status(context, node, operation, obj or {}, old or {})
        elif subresource == "eviction":
            self._eviction(context, node, operation, obj)
        elif subresource:
            why = f"unexpected pod subresource {quote(subresource)}, only 'status' and 'eviction' are allowed"
            raise forbidden(context, obj, why)
        elif operation == "CREATE":
            self._mirror(context, node, obj or {})
        elif operation == "DELETE":
            if _node_name(old or {}) != node:
                raise forbidden(
                    context, obj, f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                )
        else:
            why = f"unexpected operation {quote(operation)}, node {quote(node)} can only create and delete mirror pods"
            raise forbidden(context, obj, why)

    def _mirror(self, context: Context, node: str, pod: Json) -> None:
        """Forbidden unless the Pod is a mirror Pod of this node without references to API objects."""
        who, metadata = f"node {quote(node)}", pod["metadata"]
        if MIRROR not in (metadata.get("annotations") or {}):
            raise forbidden(
                context, pod, f"pod does not have {quote(MIRROR)} annotation, {who} can only create mirror pods"
            )
        if _node_name(pod) != node:
            raise forbidden(context, pod, f"{who} can only create pods with spec.nodeName set to itself")
        owners = metadata.get("ownerReferences") or []
        if len(owners) > 1:
            raise forbidden(context, pod, f"{who} can only create pods with a single owner reference set to itself")
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            raise forbidden(context, pod, f"{who} can only create pods with an owner reference set to itself")
        if not owner.get("controller"):
            raise forbidden(context, pod, f"{who} can only create pods with a controller owner reference set to itself")
        if owner.get("blockOwnerDeletion"):
            raise forbidden(context, pod, f"{who} must not set blockOwnerDeletion on an owner reference")
        found = self._nodes.get(node)
        if found is None:
            raise NotFound.of(GroupResource("", "node"), node)
        given, known = owner.get("uid", ""), found["metadata"]["uid"]
        if given != known:
            raise forbidden(context, pod, f"node {node} UID mismatch: expected {given} got {known}")
        try:
            resource = referenced(pod)
        except PodReferenceError as error:
            raise forbidden(context, pod, f"error checking mirror pod for API references: {error}") from None
        if resource:
            raise forbidden(context, pod, f"{who} can not create pods that reference {resource}")

    def _eviction(self, context: Context, node: str, operation: str, obj: Json | None) -> None:
        if operation != "CREATE":
            raise forbidden(context, obj, f"unexpected operation {operation}")
        pod = self._existing(context, context.route.name)
        if _node_name(pod) != node:
            raise forbidden(context, obj, f"node {node} can only evict pods with spec.nodeName set to itself")

    def _existing(self, context: Context, name: str) -> Json:
        pod = self._pods.get(name, context.route.namespace)
        if pod is None:
            raise NotFound.of(GroupResource("", "pod"), name)
        return pod

    # Tokens

    async def _token(self, context: Context, node: str, request: Json) -> None:
        """Forbidden unless the token is bound to a Pod of the node and its audience is allowed."""
        reference = (request.get("spec") or {}).get("boundObjectRef") or {}
        name, uid = reference.get("name", ""), reference.get("uid", "")
        if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not name:
            raise forbidden(context, request, "node requested token not bound to a pod")
        if not uid:
            raise forbidden(context, request, "node requested token with a pod binding without a uid")
        pod = self._existing(context, name)
        if uid != pod["metadata"]["uid"]:
            why = f"the UID in the bound object reference ({uid}) does not match the UID in record."
            raise forbidden(context, request, f"{why} The object might have been deleted and then recreated")
        if _node_name(pod) != node:
            raise forbidden(context, request, "node requested token bound to a pod scheduled on a different node")
        fault = await self._audiences.fault(context, request, pod)
        if fault:
            raise forbidden(context, request, fault)


def _pod_status(context: Context, node: str, operation: str, pod: Json, old: Json) -> None:
    if operation != "UPDATE":
        raise forbidden(context, pod, f"unexpected operation {quote(operation)}")
    who = f"node {quote(node)}"
    if _node_name(old) != node:
        raise forbidden(context, pod, f"{who} can only update pod status for pods with spec.nodeName set to itself")  # noqa: S608
    if (pod["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        raise forbidden(context, pod, f"{who} cannot update labels through pod status")
    new, before = pod.get("status") or {}, old.get("status") or {}
    if (new.get("resourceClaimStatuses") or []) != (before.get("resourceClaimStatuses") or []):
        raise forbidden(context, pod, f"{who} cannot update resource claim statues")
    if new.get("extendedResourceClaimStatus") != before.get("extendedResourceClaimStatus"):
        raise forbidden(context, pod, f"{who} cannot update extended resource claim status")


def _claim(context: Context, node: str, operation: str, obj: Json | None, old: Json | None) -> None:
    if context.route.subresource != "status":
        raise forbidden(context, obj, "may only update PVC status")
    if operation != "UPDATE":
        raise forbidden(context, obj, f"unexpected operation {quote(operation)}")
    new, before = _without_expansion_status(obj or {}), _without_expansion_status(old or {})
    if new != before:
        names = sorted(key for key in new.keys() | before.keys() if new.get(key) != before.get(key))
        why = "is not allowed to update fields other than status.quantity and status.conditions"
        raise forbidden(context, obj, f"node {quote(node)} {why}: {', '.join(names)}")


def _without_expansion_status(claim: Json) -> Json:
    """The claim without the status fields that a kubelet may write after volume expansion."""
    metadata = {
        key: value
        for key, value in claim["metadata"].items()
        if value and key not in ("resourceVersion", "managedFields")
    }
    status = {key: value for key, value in (claim.get("status") or {}).items() if key not in _CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": status}


def _node(context: Context, node: str, operation: str, obj: Json | None, old: Json | None) -> None:
    requested = context.route.name or ((obj or {}).get("metadata") or {}).get("name", "")
    who = f"node {quote(node)}"
    if requested != node:
        raise forbidden(context, obj, f"{who} is not allowed to modify node {quote(requested)}")
    if obj is None:
        return
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    metadata, metadata_before = obj["metadata"], (old or {}).get("metadata") or {}
    changed = _changed(metadata.get("labels") or {}, metadata_before.get("labels") or {})
    labels = ", ".join(sorted(label for label in changed if _is_forbidden(label)))
    if operation == "CREATE":
        if spec.get("configSource") is not None:
            raise forbidden(context, obj, f"{who} is not allowed to create pods with a non-nil configSource")
        if labels:
            raise forbidden(context, obj, f"{who} is not allowed to set the following labels: {labels}")
        return
    if spec.get("configSource") is not None and spec["configSource"] != before.get("configSource"):
        raise forbidden(context, obj, f"{who} is not allowed to update configSource to a new non-nil configSource")
    if (spec.get("taints") or []) != (before.get("taints") or []):
        raise forbidden(context, obj, f"{who} is not allowed to modify taints")
    if (metadata.get("ownerReferences") or []) != (metadata_before.get("ownerReferences") or []):
        raise forbidden(context, obj, f"{who} is not allowed to modify ownerReferences")
    if labels:
        raise forbidden(context, obj, f"is not allowed to modify labels: {labels}")


def _changed(new: Json, old: Json) -> set[str]:
    return {key for key in new.keys() | old.keys() if new.get(key) != old.get(key) or (key in new) != (key in old)}


def _is_forbidden(label: str) -> bool:
    """Whether a kubelet may not set, change or remove a label of its Node."""
    namespace = label.partition("/")[0] if "/" in label else ""
    if _is_within(namespace, _RESTRICTED):
        return True
    is_of_kubernetes = _is_within(namespace, "kubernetes.io") or _is_within(namespace, "k8s.io")
    allowed = label in _KUBELET_LABELS or any(_is_within(namespace, each) for each in _KUBELET_NAMESPACES)
    return is_of_kubernetes and not allowed


def _is_within(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith(f".{domain}")


def _lease(context: Context, node: str, operation: str, obj: Json | None) -> None:
    if context.route.namespace != LEASES:
        raise forbidden(context, obj, f"can only access leases in the {quote(LEASES)} system namespace")
    _own_name(context, node, operation, obj, "node lease")


def _own_name(context: Context, node: str, operation: str, obj: Json | None, what: str) -> None:
    name = ((obj or {}).get("metadata") or {}).get("name", "") if operation == "CREATE" else context.route.name
    if name != node:
        raise forbidden(context, obj, f"can only access {what} with the same name as the requesting node")


def _slice(context: Context, node: str, operation: str, obj: Json | None, old: Json | None) -> None:
    about = obj if operation == "CREATE" else old
    if operation != "UPDATE" and _node_name(about or {}) != node:
        why = f"can only {operation.lower()} ResourceSlice with the same NodeName as the requesting node"
        raise forbidden(context, about, why)


def _signing_request(context: Context, node: str, obj: Json) -> None:
    if obj["spec"].get("signerName") not in _SIGNERS:
        return
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - imported with the first request

    try:
        subject = parse_request(obj["spec"].get("request", "")).subject
    except (ValueError, APIError) as error:
        raise forbidden(context, obj, f"unable to parse csr: {error}") from None
    names = [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names[-1:] != [f"system:node:{node}"]:
        raise forbidden(context, obj, f"can only create a node CSR with CN=system:node:{node}")


def _node_name(obj: Json) -> str:
    name: str = (obj.get("spec") or {}).get("nodeName") or ""
    return name
