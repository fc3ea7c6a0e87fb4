"""The access requests: users by verbs, resources, subresources, namespaces, impersonation and nodes; always the same.

Writes are dry runs, so that no request changes the answer to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.contract.access.certificate_requests import CERTIFICATE_REQUESTS
from tests.contract.access.objects import IDENTITIES, RBAC

Json = dict[str, Any]
_MERGE: Final = "application/merge-patch+json"
_DRY: Final = "dryRun=All"


class Question(NamedTuple):
    """A request. `{uid PATH}` in the body is replaced by the uid of the object at a path."""

    who: str  # the name of a token
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def questions() -> list[Question]:
    return [*_reviews(), *_requests(), *_rules(), *_by_nodes(), *_impersonations(), *_grants(), *_paths()]


# Reviews: an administrator reviews the access of others

_RESOURCES: Final = (  # group, resource, subresource, is namespaced
    ("", "pods", "", True),
    ("", "pods", "status", True),
    ("", "pods", "exec", True),
    ("", "pods", "eviction", True),
    ("", "secrets", "", True),
    ("", "configmaps", "", True),
    ("", "serviceaccounts", "token", True),
    ("", "serviceaccounts", "", True),
    ("", "persistentvolumeclaims", "", True),
    ("", "persistentvolumeclaims", "status", True),
    ("", "persistentvolumes", "", False),
    ("", "nodes", "", False),
    ("", "nodes", "status", False),
    ("", "nodes", "proxy", False),
    ("", "events", "", True),
    ("", "services", "", True),
    ("", "endpoints", "", True),
    ("", "namespaces", "", False),
    ("apps", "deployments", "", True),
    ("apps", "deployments", "scale", True),
    ("coordination.k8s.io", "leases", "", True),
    ("storage.k8s.io", "csinodes", "", False),
    ("storage.k8s.io", "csidrivers", "", False),
    ("storage.k8s.io", "volumeattachments", "", False),
    ("resource.k8s.io", "resourceslices", "", False),
    ("resource.k8s.io", "resourceclaims", "", True),
    ("certificates.k8s.io", "certificatesigningrequests", "", False),
    ("certificates.k8s.io", "certificatesigningrequests", "approval", False),
    ("certificates.k8s.io", "certificatesigningrequests", "nodeclient", False),
    ("certificates.k8s.io", "certificatesigningrequests", "selfnodeclient", False),
    ("certificates.k8s.io", "podcertificaterequests", "", True),
    ("node.k8s.io", "runtimeclasses", "", False),
    ("rbac.authorization.k8s.io", "clusterroles", "", False),
    ("authorization.k8s.io", "subjectaccessreviews", "", False),
    ("example.com", "widgets", "", True),
)
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind")
_NAMES: Final = {
    "pods": ("plain", "there"),
    "secrets": ("one", "two", "three", "pull", "extra"),
    "configmaps": ("one", "two", "three"),
    "serviceaccounts": ("builder", "default"),
    "persistentvolumeclaims": ("data", "other"),
    "persistentvolumes": ("a-data", "b-data", "a-other"),
    "nodes": ("n1", "n2"),
    "leases": ("n1", "n2"),
    "csinodes": ("n1", "n2"),
    "volumeattachments": ("to-n1", "to-n2"),
    "resourceslices": ("of-n1", "of-n2"),
}


def _reviews() -> Iterator[Question]:
    for identity in IDENTITIES:
        for group, resource, subresource, namespaced in _RESOURCES:
            is_node = identity.user.startswith("system:node:")
            verbs = _VERBS if is_node else _VERBS[len(identity.user + resource) % 3 :: 3]
            for number, verb in enumerate(verbs):
                namespace = ("a", "b", "kube-node-lease", "")[(number + len(resource)) % 4] if namespaced else ""
                for name in _names(resource, verb, number, every=is_node):
                    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
                    yield _review(identity.user, identity.groups, attributes | {"namespace": namespace, "name": name})
    for identity in ("node-1", "node-3", "alice", "bob"):
        yield from _selecting(identity)


def _names(resource: str, verb: str, number: int, *, every: bool) -> tuple[str, ...]:
    if verb in ("create", "deletecollection") and resource != "serviceaccounts":
        return ("",)
    known = _NAMES.get(resource, ("x",))
    if verb in ("list", "watch"):
        return ("", known[0]) if every else ("",)
    return known if every else known[number % len(known) :][:1]


def _selecting(who: str) -> Iterator[Question]:
    identity = next(each for each in IDENTITIES if each.token == who)
    for group, resource in (("", "pods"), ("resource.k8s.io", "resourceslices"), ("", "secrets"), ("", "nodes")):
        for verb in ("list", "watch", "deletecollection"):
            for selector in (
                {"rawSelector": "spec.nodeName=n1"},
                {"rawSelector": "spec.nodeName!=n1"},
                {"rawSelector": "spec.nodeName=n2"},
                {"rawSelector": "a=b,spec.nodeName==n1"},
                {"rawSelector": "%$"},
                {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
                {"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["n1"]}]},
                {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1", "n2"]}]},
                {"requirements": [{"key": "spec.nodeName", "operator": "Exists"}]},
            ):
                attributes = {"verb": verb, "group": group, "resource": resource, "fieldSelector": selector}
                yield _review(identity.user, identity.groups, attributes)


def _review(user: str, groups: tuple[str, ...], attributes: Json) -> Question:
    kind = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    given = {key: value for key, value in attributes.items() if value}
    groups = (*groups, "system:authenticated")
    spec = {"user": user, "groups": list(groups), "resourceAttributes": given}
    return Question("admin", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {**kind, "spec": spec})


# Requests

_WATCHERS: Final = ("grace", "ivan", "node-3", "")  # users that are rejected: an allowed watch does not end


def _requests() -> Iterator[Question]:
    paths = [
        "/api/v1/namespaces/{}/pods",
        "/api/v1/namespaces/{}/pods/plain",
        "/api/v1/namespaces/{}/pods/plain/status",
        "/api/v1/namespaces/{}/secrets",
        "/api/v1/namespaces/{}/secrets/one",
        "/api/v1/namespaces/{}/configmaps/two",
        "/api/v1/namespaces/{}/serviceaccounts/builder",
        "/apis/apps/v1/namespaces/{}/deployments",
        f"{RBAC}/namespaces/{{}}/rolebindings",
        "/api/v1/watch/namespaces/{}/secrets/one",
        "/api/v1/namespaces/{}",
        "/api/v1/namespaces/{}/status",
    ]
    whole = [
        "/api/v1/nodes",
        "/api/v1/nodes/n1",
        "/api/v1/pods",
        "/api/v1/secrets",
        "/api/v1/namespaces",
        f"{RBAC}/clusterroles/view",
    ]
    for identity in (*(each.token for each in IDENTITIES), ""):
        for path in paths:
            for namespace in ("a", "b"):
                where = path.format(namespace)
                if not where.startswith("/api/v1/watch") or identity in _WATCHERS:
                    yield Question(identity, "GET", where)
                yield Question(identity, "DELETE", f"{where}?{_DRY}")
                yield Question(identity, "PATCH", f"{where}?{_DRY}", {"metadata": {"labels": {"x": "y"}}}, _MERGE)
        for where in whole:
            yield Question(identity, "GET", f"{where}?limit=1")
            yield Question(identity, "DELETE", f"{where}?{_DRY}")


def _rules() -> Iterator[Question]:
    for identity in IDENTITIES:
        for namespace in ("a", "b"):
            body = {
                "kind": "SelfSubjectRulesReview",
                "apiVersion": "authorization.k8s.io/v1",
                "spec": {"namespace": namespace},
            }
            yield Question(identity.token, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)


# Nodes


def _by_nodes() -> Iterator[Question]:
    for who in ("node-1", "node-2", "node-3", "nameless", "pretender", "outsider", "carol"):
        yield from _reads_of(who)
        yield from _writes_of(who)
        yield from _mirrors_of(who)
        yield from _tokens_of(who)


def _reads_of(who: str) -> Iterator[Question]:
    for namespace in ("a", "b"):
        for name in ("one", "two", "three", "pull", "extra", "absent"):
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        for name in ("data", "other"):
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
            yield Question(who, "GET", f"/api/v1/persistentvolumes/{namespace}-{name}")
        for name in ("plain", "mounting", "elsewhere", "there", "waiting"):
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/pods/{name}/log")
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/pods?fieldSelector=metadata.name%3D{name}")
        for selector in ("spec.nodeName=n1", "spec.nodeName%3Dn2", "spec.nodeName!=n1", "spec.host=n1", "%3D%3D"):
            yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/pods?fieldSelector={selector}")
            yield Question(who, "GET", f"/api/v1/pods?fieldSelector={selector}")
            yield Question(who, "GET", f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector={selector}")
            yield Question(who, "DELETE", f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector={selector}&{_DRY}")
        yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/secrets?fieldSelector=metadata.name=one")
        yield Question(who, "GET", f"/api/v1/namespaces/{namespace}/services")
    for name in ("n1", "n2", "n3"):
        for path in (
            f"/api/v1/nodes/{name}",
            f"/api/v1/nodes?fieldSelector=metadata.name={name}",
            f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}",
            f"/apis/coordination.k8s.io/v1/namespaces/a/leases/{name}",
            f"/apis/storage.k8s.io/v1/csinodes/{name}",
            f"/apis/storage.k8s.io/v1/volumeattachments/to-{name}",
            f"/apis/resource.k8s.io/v1/resourceslices/of-{name}",
        ):
            yield Question(who, "GET", path)
            yield Question(who, "DELETE", f"{path.partition('?')[0]}?{_DRY}")


_LABELS: Final = (
    "example.com/x",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "kubelet.kubernetes.io/x",
    "a.node.kubernetes.io/x",
    "node-restriction.kubernetes.io/x",
    "a.node-restriction.kubernetes.io/x",
    "node-role.kubernetes.io/control-plane",
    "k8s.io/x",
    "beta.kubernetes.io/os",
)


def _writes_of(who: str) -> Iterator[Question]:
    for name in ("n1", "n2"):
        path = f"/api/v1/nodes/{name}"
        for label in _LABELS:
            yield Question(who, "PATCH", f"{path}?{_DRY}", {"metadata": {"labels": {label: "v"}}}, _MERGE)
            node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"{name}", "labels": {label: "v"}}}
            yield Question(who, "POST", f"/api/v1/nodes?{_DRY}", node)
        for change in (
            {"spec": {"unschedulable": True}},
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            {"spec": {"podCIDR": "10.1.0.0/24"}},
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "u"}]}},
            {"metadata": {"annotations": {"a": "b"}}},
        ):
            yield Question(who, "PATCH", f"{path}?{_DRY}", change, _MERGE)
        status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        yield Question(who, "PATCH", f"{path}/status?{_DRY}", status, _MERGE)
        relabel = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "v"}}}
        yield Question(who, "PATCH", f"{path}/status?{_DRY}", relabel, _MERGE)
        lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": f"{name}"}, "spec": {}}
        for namespace in ("kube-node-lease", "kube-system"):
            leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
            yield Question(who, "POST", f"{leases}?{_DRY}", lease)
            yield Question(who, "PATCH", f"{leases}/{name}?{_DRY}", {"spec": {"holderIdentity": "x"}}, _MERGE)
        csi = {
            "kind": "CSINode",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": name},
            "spec": {"drivers": []},
        }
        yield Question(who, "POST", f"/apis/storage.k8s.io/v1/csinodes?{_DRY}", csi)
        yield Question(
            who,
            "PATCH",
            f"/apis/storage.k8s.io/v1/csinodes/{name}?{_DRY}",
            {"metadata": {"labels": {"a": "b"}}},
            _MERGE,
        )
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        slice_ = {
            "kind": "ResourceSlice",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "new"},
            "spec": {"driver": "x.example.com", "nodeName": name, "pool": pool, "devices": []},
        }
        yield Question(who, "POST", f"/apis/resource.k8s.io/v1/resourceslices?{_DRY}", slice_)
        yield Question(
            who,
            "PATCH",
            f"/apis/resource.k8s.io/v1/resourceslices/of-{name}?{_DRY}",
            {"metadata": {"labels": {"a": "b"}}},
            _MERGE,
        )
    for namespace, name in (("a", "plain"), ("a", "elsewhere"), ("b", "there"), ("b", "waiting"), ("a", "absent")):
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        yield Question(who, "DELETE", f"{path}?{_DRY}")
        yield Question(who, "PATCH", f"{path}?{_DRY}", {"metadata": {"labels": {"a": "b"}}}, _MERGE)
        yield Question(who, "PATCH", f"{path}/status?{_DRY}", {"status": {"message": "m"}}, _MERGE)
        yield Question(who, "PATCH", f"{path}/status?{_DRY}", {"metadata": {"labels": {"a": "b"}}}, _MERGE)
        claims = {"status": {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "y"}]}}
        yield Question(who, "PATCH", f"{path}/status?{_DRY}", claims, _MERGE)
        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name, "namespace": namespace}}
        yield Question(who, "POST", f"{path}/eviction?{_DRY}", eviction)
        binding = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "target": {"kind": "Node", "name": "n1"},
        }
        yield Question(who, "POST", f"{path}/binding?{_DRY}", binding)
        yield Question(who, "POST", f"{path}/exec?command=id")
    for namespace in ("a", "b"):
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/data"
        yield Question(who, "PATCH", f"{path}?{_DRY}", {"metadata": {"labels": {"a": "b"}}}, _MERGE)
        yield Question(who, "PATCH", f"{path}/status?{_DRY}", {"status": {"capacity": {"storage": "2Gi"}}}, _MERGE)
        yield Question(who, "DELETE", f"{path}?{_DRY}")
    for signer in ("kubelet-serving", "kube-apiserver-client-kubelet", "kube-apiserver-client"):
        for request in CERTIFICATE_REQUESTS:
            usages = ["digital signature", "server auth" if signer == "kubelet-serving" else "client auth"]
            spec = {"request": request, "signerName": f"kubernetes.io/{signer}", "usages": usages}
            body = {
                "kind": "CertificateSigningRequest",
                "apiVersion": "certificates.k8s.io/v1",
                "metadata": {"name": "new"},
                "spec": spec,
            }
            yield Question(who, "POST", f"/apis/certificates.k8s.io/v1/certificatesigningrequests?{_DRY}", body)


def _mirrors_of(who: str) -> Iterator[Question]:
    def pod(annotated: bool = True, node: str = "n1", owner: Any = (), **spec: Any) -> Json:
        own = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "{uid /api/v1/nodes/n1}", "controller": True}
        metadata: Json = {"name": "mirror", "ownerReferences": [own] if owner == () else owner}
        if annotated:
            metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
        container = {"name": "c", "image": "i", **spec.pop("container", {})}
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [container], **spec},
        }

    def volume(**source: Any) -> Json:
        return pod(volumes=[{"name": "v", **source}])

    own = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "{uid /api/v1/nodes/n1}"}
    for body in (
        pod(),
        pod(annotated=False),
        pod(node="n2"),
        pod(owner=[]),
        pod(owner=[own]),
        pod(owner=[own | {"controller": True, "blockOwnerDeletion": True}]),
        pod(owner=[own | {"controller": True, "name": "n2", "uid": "{uid /api/v1/nodes/n2}"}]),
        pod(owner=[own | {"controller": True, "kind": "Pod"}]),
        pod(owner=[own | {"controller": True}, own | {"kind": "Pod", "uid": "x"}]),
        pod(owner=[own | {"controller": True, "uid": "wrong"}]),
        pod(serviceAccountName="builder"),
        pod(imagePullSecrets=[{"name": "pull"}]),
        pod(container={"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "one", "key": "key"}}}]}),
        pod(container={"envFrom": [{"configMapRef": {"name": "one"}}]}),
        pod(resourceClaims=[{"name": "r", "resourceClaimName": "claim"}]),
        volume(secret={"secretName": "one"}),
        volume(configMap={"name": "one"}),
        volume(persistentVolumeClaim={"claimName": "data"}),
        volume(
            ephemeral={
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        ),
        volume(csi={"driver": "x.example.com"}),
        volume(glusterfs={"endpoints": "e", "path": "p"}),
        volume(azureFile={"secretName": "one", "shareName": "s"}),
        volume(projected={"sources": [{"secret": {"name": "one"}}]}),
        volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
        volume(
            projected={
                "sources": [{"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
            }
        ),
        volume(hostPath={"path": "/"}),
        volume(emptyDir={}),
    ):
        yield Question(who, "POST", f"/api/v1/namespaces/a/pods?{_DRY}", body)


def _tokens_of(who: str) -> Iterator[Question]:
    def bound(namespace: str, pod: str, **fields: str) -> Json:
        uid = f"{{uid /api/v1/namespaces/{namespace}/pods/{pod}}}"
        return {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": uid} | fields

    requests: tuple[tuple[str, str, Json], ...] = (
        ("a", "builder", {"boundObjectRef": bound("a", "plain")}),
        ("a", "builder", {}),
        ("a", "builder", {"boundObjectRef": bound("a", "plain", uid="")}),
        ("a", "builder", {"boundObjectRef": bound("a", "plain", uid="wrong")}),
        ("a", "builder", {"boundObjectRef": bound("a", "plain", kind="Secret")}),
        ("a", "builder", {"boundObjectRef": bound("a", "plain", name="absent")}),
        ("a", "builder", {"boundObjectRef": bound("a", "plain"), "audiences": ["vault"]}),
        ("a", "builder", {"boundObjectRef": bound("a", "plain"), "audiences": ["x", "y"]}),
        ("a", "default", {"boundObjectRef": bound("a", "mounting"), "audiences": ["vault"]}),
        ("a", "default", {"boundObjectRef": bound("a", "mounting"), "audiences": ["csi"]}),
        ("a", "default", {"boundObjectRef": bound("a", "mounting"), "audiences": ["else"]}),
        ("a", "default", {"boundObjectRef": bound("a", "elsewhere")}),
        ("b", "builder", {"boundObjectRef": bound("b", "there")}),
        ("b", "default", {"boundObjectRef": bound("b", "waiting")}),
        ("kube-system", "default", {"boundObjectRef": bound("a", "plain")}),
    )
    for namespace, account, spec in requests:
        body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
        yield Question(who, "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token?{_DRY}", body)


# Impersonation


def _impersonations() -> Iterator[Question]:
    headers = (
        (("Impersonate-User", "alice"),),
        (("Impersonate-User", "grace"), ("Impersonate-Group", "admins-of-b")),
        (("Impersonate-User", "grace"), ("Impersonate-Group", "system:masters")),
        (("Impersonate-User", "bob"),),
        (("Impersonate-User", "alice"), ("Impersonate-Extra-scopes", "view")),
        (("Impersonate-User", "alice"), ("Impersonate-Extra-scopes", "edit")),
        (("Impersonate-User", "alice"), ("Impersonate-Uid", "u")),
        (("Impersonate-Group", "admins-of-b"),),
        (("Impersonate-User", "system:node:n1"), ("Impersonate-Group", "system:nodes")),
        (("Impersonate-User", "system:node:n1"),),
        (("Impersonate-User", "system:serviceaccount:a:builder"),),
        (("Impersonate-User", "system:anonymous"),),
    )
    paths = (
        "/api/v1/namespaces/a/secrets/one",
        "/api/v1/namespaces/b/secrets/one",
        "/api/v1/nodes/n1",
        "/healthz/ping",
    )
    for who in ("admin", "frank", "carol", "alice", "builder", "node-1", "grace", ""):
        for chosen in headers:
            for path in paths:
                yield Question(who, "GET", path, headers=chosen)


# Granting rights


def _grants() -> Iterator[Question]:
    version = "rbac.authorization.k8s.io/v1"
    rules = (
        [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
        [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}],
        [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]}],
    )
    for who in ("heidi", "carol", "dave", "alice", "erin", "node-1", "manager"):
        for rule in rules:
            role = {"kind": "Role", "apiVersion": version, "metadata": {"name": "new"}, "rules": rule}
            for namespace in ("a", "b"):
                yield Question(who, "POST", f"{RBAC}/namespaces/{namespace}/roles?{_DRY}", role)
            role = role | {"kind": "ClusterRole"}
            yield Question(who, "POST", f"{RBAC}/clusterroles?{_DRY}", role)
        for kind, name in (
            ("ClusterRole", "view"),
            ("ClusterRole", "cluster-admin"),
            ("Role", "single"),
            ("Role", "absent"),
        ):
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
            subject = {"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}
            body = {
                "kind": "RoleBinding",
                "apiVersion": version,
                "metadata": {"name": "new"},
                "roleRef": reference,
                "subjects": [subject],
            }
            for namespace in ("a", "b"):
                yield Question(who, "POST", f"{RBAC}/namespaces/{namespace}/rolebindings?{_DRY}", body)


def _paths() -> Iterator[Question]:
    for who in (*(each.token for each in IDENTITIES), "", "unknown-token"):
        for path in ("/healthz", "/metrics", "/api", "/apis/apps", "/version", "/logs", "/openid/v1/jwks", "/a/../b"):
            yield Question(who, "GET", path)
            yield Question(who, "POST", path)
