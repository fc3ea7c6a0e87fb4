"""The cluster of the access requests: role bindings, nodes and their Pods."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Json = dict[str, Any]
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


class Identity(NamedTuple):
    """A user. The name is also that of the bearer token."""

    token: str
    user: str
    groups: tuple[str, ...] = ()


IDENTITIES: Final = (
    Identity("alice", "alice"),  # edit in a
    Identity("bob", "bob"),  # view everywhere
    Identity("carol", "carol"),  # cluster-admin, by a binding
    Identity("dave", "dave", ("admins-of-b",)),  # admin in b, by a group
    Identity("erin", "erin"),  # some verbs on single names
    Identity("frank", "frank"),  # impersonates some
    Identity("grace", "grace"),  # nothing
    Identity("heidi", "heidi"),  # may write roles, but holds little; may bind one of them
    Identity("ivan", "ivan"),  # bound to roles that do not exist
    Identity("node-1", "system:node:n1", ("system:nodes",)),
    Identity("node-2", "system:node:n2", ("system:nodes",)),
    Identity("node-3", "system:node:n3", ("system:nodes",)),  # has no Node object, and no Pods
    Identity("nameless", "system:node:", ("system:nodes",)),
    Identity("pretender", "system:node:n1"),  # the name of a node, without the group
    Identity("outsider", "n1", ("system:nodes",)),  # the group, without the name
    Identity("scheduler", "system:kube-scheduler"),
    Identity("manager", "system:kube-controller-manager"),
    Identity("proxy", "system:kube-proxy"),
    Identity("deployer", "system:serviceaccount:kube-system:deployment-controller", ("system:serviceaccounts",)),
    Identity("builder", "system:serviceaccount:a:builder", ("system:serviceaccounts", "system:serviceaccounts:a")),
    Identity("joiner", "system:bootstrap:abcdef", ("system:bootstrappers",)),
)


def objects() -> list[tuple[str, Json]]:
    """The objects to create, in this order, each with the path that it is posted to."""
    made: list[tuple[str, Json]] = []

    def add(path: str, kind: str, name: str, namespace: str = "", **fields: Any) -> None:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
        made.append((path, {"kind": kind, "apiVersion": _version(path), "metadata": metadata, **fields}))

    for name in ("a", "b"):
        add("/api/v1/namespaces", "Namespace", name)
        for account in ("default", "builder"):
            add(f"/api/v1/namespaces/{name}/serviceaccounts", "ServiceAccount", account, name)
        for each in ("one", "two", "three", "pull", "extra"):
            add(f"/api/v1/namespaces/{name}/secrets", "Secret", each, name, stringData={"key": each})
            add(f"/api/v1/namespaces/{name}/configmaps", "ConfigMap", each, name, data={"key": each})
        for each in ("data", "other"):
            spec = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
                "volumeName": f"{name}-{each}",
            }
            add(f"/api/v1/namespaces/{name}/persistentvolumeclaims", "PersistentVolumeClaim", each, name, spec=spec)
            add("/api/v1/persistentvolumes", "PersistentVolume", f"{name}-{each}", spec=_volume(name, each))
    for name in ("n1", "n2"):
        add("/api/v1/nodes", "Node", name, metadata={"labels": {"kubernetes.io/hostname": name}})
        add(
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            "Lease",
            name,
            "kube-node-lease",
            spec={"holderIdentity": name},
        )
        add("/apis/storage.k8s.io/v1/csinodes", "CSINode", name, spec={"drivers": []})
        add(
            "/apis/storage.k8s.io/v1/volumeattachments",
            "VolumeAttachment",
            f"to-{name}",
            spec={"attacher": "x.example.com", "nodeName": name, "source": {"persistentVolumeName": "a-data"}},
        )
        add(
            "/apis/resource.k8s.io/v1/resourceslices",
            "ResourceSlice",
            f"of-{name}",
            spec={
                "driver": "x.example.com",
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [],
            },
        )
    add(
        "/apis/storage.k8s.io/v1/csidrivers",
        "CSIDriver",
        "x.example.com",
        spec={"tokenRequests": [{"audience": "csi"}]},
    )
    for namespace, name, node, fields in _pods():
        spec = {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", **fields.pop("container", {})}],
            **fields,
        }
        add(f"/api/v1/namespaces/{namespace}/pods", "Pod", name, namespace, spec=spec)
    made += _roles()
    return made


def _version(path: str) -> str:
    parts = path.split("/")
    return "v1" if parts[1] == "api" else f"{parts[2]}/{parts[3]}"


def _volume(namespace: str, name: str) -> Json:
    secret = {"name": "three", "namespace": namespace}
    controller = {"name": "extra", "namespace": namespace}
    return {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": namespace, "name": name},
        "csi": {
            "driver": "x.example.com",
            "volumeHandle": name,
            "nodePublishSecretRef": secret,
            "controllerPublishSecretRef": controller,
        },
    }


def _pods() -> list[tuple[str, str, str, Json]]:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    secret = {"name": "s", "secret": {"secretName": "two"}}
    projected = {
        "name": "p",
        "projected": {
            "sources": [
                {"configMap": {"name": "two"}},
                {"serviceAccountToken": {"path": "t", "audience": "vault"}},
            ]
        },
    }
    environment = {
        "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "one", "key": "key"}}}],
        "envFrom": [{"configMapRef": {"name": "one"}}],
    }
    return [
        ("a", "plain", "n1", {"serviceAccountName": "builder", "imagePullSecrets": [{"name": "pull"}]}),
        ("a", "mounting", "n1", {"volumes": [claim, projected], "container": environment}),
        ("a", "elsewhere", "n2", {"volumes": [secret]}),
        ("b", "there", "n2", {"volumes": [claim, secret], "serviceAccountName": "builder"}),
        ("b", "waiting", "", {"volumes": [secret]}),
    ]


def _roles() -> list[tuple[str, Json]]:
    made: list[tuple[str, Json]] = []

    def role(name: str, rules: list[Json], namespace: str = "") -> None:
        where, kind = (
            (f"{RBAC}/namespaces/{namespace}/roles", "Role") if namespace else (f"{RBAC}/clusterroles", "ClusterRole")
        )
        made.append((where, {"kind": kind, "apiVersion": _version(where), "metadata": {"name": name}, "rules": rules}))

    def bind(name: str, role_: tuple[str, str], subject: Json, namespace: str = "") -> None:
        where = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_[0], "name": role_[1]}
        body = {"kind": kind, "apiVersion": _version(where), "metadata": {"name": name}, "roleRef": reference}
        made.append((where, body | {"subjects": [subject]}))

    def user(name: str) -> Json:
        return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}

    bind("alice", ("ClusterRole", "edit"), user("alice"), "a")
    bind("bob", ("ClusterRole", "view"), user("bob"))
    bind("carol", ("ClusterRole", "cluster-admin"), user("carol"))
    group = {"kind": "Group", "name": "admins-of-b", "apiGroup": "rbac.authorization.k8s.io"}
    bind("dave", ("ClusterRole", "admin"), group, "b")
    role(
        "single",
        [
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get", "update", "list"]},
            {"apiGroups": [""], "resources": ["pods/log", "*/status"], "verbs": ["get"]},
            {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["watch", "list"]},
        ],
        "a",
    )
    bind("erin", ("Role", "single"), user("erin"), "a")
    role(
        "impersonator",
        [
            {"apiGroups": [""], "resources": ["users"], "resourceNames": ["alice", "grace"], "verbs": ["impersonate"]},
            {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["admins-of-b"], "verbs": ["impersonate"]},
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["userextras/scopes"],
                "resourceNames": ["view"],
                "verbs": ["impersonate"],
            },
        ],
    )
    bind("frank", ("ClusterRole", "impersonator"), user("frank"))
    role(
        "role-writer",
        [
            {
                "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
                "verbs": ["*"],
            },
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        ],
    )
    role(
        "binder",
        [
            {
                "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["clusterroles"],
                "resourceNames": ["view"],
                "verbs": ["bind"],
            }
        ],
    )
    bind("heidi", ("ClusterRole", "role-writer"), user("heidi"))
    bind("heidi-binds", ("ClusterRole", "binder"), user("heidi"))
    bind("ivan", ("ClusterRole", "missing"), user("ivan"))
    bind("ivan", ("Role", "gone"), user("ivan"), "a")
    account = {"kind": "ServiceAccount", "name": "builder", "namespace": "a"}
    bind("builder", ("ClusterRole", "view"), account, "a")
    joiners = {"kind": "Group", "name": "system:bootstrappers", "apiGroup": "rbac.authorization.k8s.io"}
    bind("joiners", ("ClusterRole", "system:node-bootstrapper"), joiners)
    return made
