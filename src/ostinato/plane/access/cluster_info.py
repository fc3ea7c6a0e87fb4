"""Objects that let nodes join a cluster, as kubeadm creates them: `cluster-info` and RBAC for bootstrap tokens.

A bootstrap token of the group `system:bootstrappers:ostinato:nodes` may create a CertificateSigningRequest for a
kubelet client certificate, which is approved automatically. A node may renew its own certificate. Tokens get no other
permission.
"""

from __future__ import annotations

import hashlib
from typing import Final

from ostinato.api.errors import NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.kinds.rbac_v1 import ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from ostinato.plane.access.roles import create_or_update

BOOTSTRAPPERS: Final = "system:bootstrappers:ostinato:nodes"
PUBLIC: Final = "kube-public"
CLUSTER_INFO: Final = "cluster-info"

_GROUP: Final = "rbac.authorization.k8s.io"
_REQUESTS: Final = "system:certificates.k8s.io:certificatesigningrequests"
_BINDINGS: Final = {  # binding name: (role, group)
    "ostinato:node-bootstrapper": ("system:node-bootstrapper", BOOTSTRAPPERS),
    "ostinato:node-autoapprove-bootstrap": (f"{_REQUESTS}:nodeclient", BOOTSTRAPPERS),
    "ostinato:node-autoapprove-certificate-rotation": (f"{_REQUESTS}:selfnodeclient", "system:nodes"),
}


async def ensure(client: Client, server: str, authority: bytes) -> None:
    """Create or update the objects.

    - `server`: URL at which clients reach the API server.
    - `authority`: CA certificates of the API server, in PEM.
    """
    for name, (role, group) in _BINDINGS.items():
        binding = ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            role_ref=RoleRef(api_group=_GROUP, kind="ClusterRole", name=role),
            subjects=[Subject(kind="Group", name=group, api_group=_GROUP)],
        )
        await create_or_update(client, binding)
    metadata = ObjectMeta(name="ostinato:cluster-info", namespace=PUBLIC)
    rule = PolicyRule(api_groups=[""], resources=["configmaps"], resource_names=[CLUSTER_INFO], verbs=["get"])
    await create_or_update(client, Role(metadata=metadata, rules=[rule]))
    binding_here = RoleBinding(
        metadata=metadata,
        role_ref=RoleRef(api_group=_GROUP, kind="Role", name=metadata.name),
        subjects=[Subject(kind="User", name="system:anonymous", api_group=_GROUP)],
    )
    await create_or_update(client, binding_here)
    await _ensure_info(client, server, authority)


async def _ensure_info(client: Client, server: str, authority: bytes) -> None:
    """Write the kubeconfig and keep other keys, such as the token signatures."""
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


def ca_cert_hash(authority: bytes) -> str:
    """Return the SHA-256 hash of the CA's public key, in the format of kubeadm's --discovery-token-ca-cert-hash."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    key = x509.load_pem_x509_certificate(authority).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    return f"sha256:{digest}"
