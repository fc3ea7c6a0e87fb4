"""What a cluster has so that nodes can join it: the public `cluster-info`, and the rights of bootstrap tokens.

As kubeadm sets them up. A node that shows a token of the group `system:bootstrappers:ostinato:nodes` may ask for its
first client certificate, which is approved by itself; a node may have that renewed. Nothing else is given to tokens.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from ostinato.api.errors import AlreadyExists, NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.kinds.rbac_v1 import ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject

BOOTSTRAPPERS: Final = "system:bootstrappers:ostinato:nodes"
PUBLIC: Final = "kube-public"
CLUSTER_INFO: Final = "cluster-info"

_GROUP: Final = "rbac.authorization.k8s.io"
_REQUESTS: Final = "system:certificates.k8s.io:certificatesigningrequests"
_BINDINGS: Final = {  # name of the binding: role, group
    "ostinato:node-bootstrapper": ("system:node-bootstrapper", BOOTSTRAPPERS),
    "ostinato:node-autoapprove-bootstrap": (f"{_REQUESTS}:nodeclient", BOOTSTRAPPERS),
    "ostinato:node-autoapprove-certificate-rotation": (f"{_REQUESTS}:selfnodeclient", "system:nodes"),
}


async def ensure(client: Client, server: str, authority: bytes) -> None:
    """Have that there. `server` is where clients reach the API server, `authority` the certificates it is known by."""
    for name, (role, group) in _BINDINGS.items():
        binding = ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=role),
            subjects=[Subject(kind="Group", name=group, api_group=_GROUP)],
        )
        await _ensure(client, binding)
    metadata = ObjectMeta(name="ostinato:cluster-info", namespace=PUBLIC)
    rule = PolicyRule(api_groups=[""], resources=["configmaps"], resource_names=[CLUSTER_INFO], verbs=["get"])
    await _ensure(client, Role(metadata=metadata, rules=[rule]))
    binding_here = RoleBinding(
        metadata=metadata,
        role_ref=RoleRef(api_group=_GROUP, kind="Role", name=metadata.name),
        subjects=[Subject(kind="User", name="system:anonymous", api_group=_GROUP)],
    )
    await _ensure(client, binding_here)
    await _ensure_info(client, server, authority)


async def _ensure_info(client: Client, server: str, authority: bytes) -> None:
    """What others keep in it, the signatures of tokens, stays."""
    text = _kubeconfig(server, authority)
    try:
        found = await client.get(ConfigMap, CLUSTER_INFO, namespace=PUBLIC)
    except NotFound:
        metadata = ObjectMeta(name=CLUSTER_INFO, namespace=PUBLIC)
        await client.create(ConfigMap(metadata=metadata, data={"kubeconfig": text}))
        return
    if found.data.get("kubeconfig") != text:
        found.data = {**found.data, "kubeconfig": text}
        await client.update(found)


def _kubeconfig(server: str, authority: bytes) -> str:
    import base64  # noqa: PLC0415 - once in the life of a plane

    encoded = base64.b64encode(authority).decode()
    return (
        "apiVersion: v1\n"
        "clusters:\n"
        "- cluster:\n"
        f"    certificate-authority-data: {encoded}\n"
        f"    server: {server}\n"
        '  name: ""\n'
        "contexts: null\n"
        'current-context: ""\n'
        "kind: Config\n"
        "preferences: {}\n"
        "users: null\n"
    )


async def _ensure(client: Client, wanted: Any) -> None:  # Any: a role or a binding
    try:
        await client.create(wanted)
    except AlreadyExists:
        await client.update(wanted)  # what an older version left


def ca_cert_hash(authority: bytes) -> str:
    """The hash by which a node knows the authority of a cluster that it joins: of its public key, as kubeadm's."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    key = x509.load_pem_x509_certificate(authority).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    return f"sha256:{digest}"
