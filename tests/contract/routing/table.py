"""The requests of the routing table, and the objects that they refer to.

Each case is a request line for one user. Writes are dry runs, so that all cases see the same objects.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs

Json = dict[str, Any]

CASES = 6000  # generated combinations, besides those written out here
USERS = ("admin", "owner", "named", "nobody")
"""- `admin`: may do everything.
- `owner`: may do everything in the namespace `mine`, nothing elsewhere.
- `named`: may do everything in `mine`, to objects with the name `a` only.
- `nobody`: has no rights of their own.
"""

_METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "get", "FOO")
_GROUPS = {
    "configmaps": "/api/v1",
    "secrets": "/api/v1",
    "pods": "/api/v1",
    "services": "/api/v1",
    "serviceaccounts": "/api/v1",
    "bindings": "/api/v1",
    "namespaces": "/api/v1",
    "nodes": "/api/v1",
    "persistentvolumes": "/api/v1",
    "nosuch": "/api/v1",
    "status": "/api/v1",
    "deployments": "/apis/apps/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "subjectaccessreviews": "/apis/authorization.k8s.io/v1",
    "localsubjectaccessreviews": "/apis/authorization.k8s.io/v1",
    "certificatesigningrequests": "/apis/certificates.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "widgets": "/apis/routing.example/v1",
    "widgetsets": "/apis/routing.example/v1",
    "gadgets": "/apis/routing.example/v1",
    "nowhere": "/apis/nowhere.example/v1",
}
_SCOPES = (
    "",
    "/namespaces/mine",
    "/namespaces/victim",
    "/namespaces/absent",
    "/namespaces/mine/namespaces/victim",
    "/namespaces/mine/namespaces/mine",
    "/namespaces/mine/status/namespaces/victim",
    "/namespaces/.",
    "/namespaces/..",
    "/namespaces/%2e%2e",
    "/namespaces//",
    "/namespaces/mine/../victim",
    "/namespaces/mine%2F..%2Fvictim",
    "/namespaces/mine%00",
    "/namespaces/mine;victim",
    "/namespaces/MINE",
    "/namespaces/%6dine",
    "/Namespaces/mine",
)
_NAMES = (
    "",
    "/",
    "/a",
    "/a/",
    "/b",
    "/status",
    "/finalize",
    "/.",
    "/..",
    "/%2e%2e",
    "/a%2Fstatus",
    "/a%00",
    "/A",
    "/a;b",
    "//a",
    "/mine",
    "/victim",
)
_SUBRESOURCES = (
    "",
    "",
    "/status",
    "/status/",
    "/scale",
    "/binding",
    "/eviction",
    "/token",
    "/approval",
    "/finalize",
    "/log",
    "/nosuch",
    "/..",
    "/status/more",
    "/namespaces/victim",
)
_QUERIES = (
    "",
    "",
    "",
    "watch=1",
    "watch=true",
    "watch=false",
    "watch=0",
    "watch=",
    "watch=false&watch=true",
    "watch=true&watch=false",
    "Watch=true",
    "%77atch=true",
    "watch=true&limit=nonsense",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=metadata.name%3Db",
    "fieldSelector=metadata.name%3D..",
    "fieldSelector=metadata.name%3Da,metadata.name%3Db",
    "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db",
    "fieldSelector=metadata.name!%3Da",
    "fieldSelector=metadata.namespace%3Dvictim",
    "fieldSelector=metadata.name%3Da&watch=1",
)


class Case(NamedTuple):
    """One request. `target` is the path and query of the request line."""

    user: str
    method: str
    target: str

    @property
    def watches(self) -> bool:
        """Whether the response may be an endless stream."""
        path, _, query = self.target.partition("?")
        asked = parse_qs(query, keep_blank_values=True).get("watch", ["0"])
        return "/watch/" in path or (self.method in ("GET", "HEAD") and asked[0] not in ("0", "false"))


def objects() -> Iterator[tuple[str, Json]]:
    """The objects to create, each with the path that it is posted to."""
    for name in ("mine", "victim"):
        yield "/api/v1/namespaces", {"metadata": {"name": name}}
    for plural, kind, scope in (
        ("widgets", "Widget", "Namespaced"),
        ("widgetsets", "WidgetSet", "Namespaced"),
        ("gadgets", "Gadget", "Cluster"),
    ):
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "subresources": {"status": {}},
        }
        spec = {
            "group": "routing.example",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        }
        yield (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            {"metadata": {"name": f"{plural}.routing.example"}, "spec": spec},
        )
    for namespace in ("mine", "victim"):
        for name in ("a", "b"):
            yield f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name}}
            yield f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}}
            yield f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}}
            for plural, kind in (("widgets", "Widget"), ("widgetsets", "WidgetSet")):
                custom = {"apiVersion": "routing.example/v1", "kind": kind, "metadata": {"name": name}}
                yield f"/apis/routing.example/v1/namespaces/{namespace}/{plural}", custom
    gadget = {"apiVersion": "routing.example/v1", "kind": "Gadget", "metadata": {"name": "a"}}
    yield "/apis/routing.example/v1/gadgets", gadget
    yield "/api/v1/nodes", {"metadata": {"name": "a"}}
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/mine/"
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    for user, rule in (("owner", everything), ("named", {**everything, "resourceNames": ["a"]})):
        yield f"{roles}roles", {"metadata": {"name": user}, "rules": [rule]}
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
        yield f"{roles}rolebindings", binding


def cases(seed: int = 1) -> list[Case]:
    """All cases, in order, without duplicates."""
    found = dict.fromkeys(_written_out())
    chance = random.Random(seed)
    while len(found) < CASES:
        resource = chance.choice(tuple(_GROUPS))
        prefix = "/watch" if chance.random() < 0.15 else ""
        path = _GROUPS[resource] + prefix + chance.choice(_SCOPES) + "/" + resource + chance.choice(_NAMES)
        if chance.random() < 0.5:
            path += chance.choice(_SUBRESOURCES)
        found[_case(chance.choice(USERS), chance.choice(_METHODS), path, chance.choice(_QUERIES))] = None
    return list(found)


def _case(user: str, method: str, path: str, query: str = "") -> Case:
    if method in ("POST", "PUT", "PATCH", "DELETE"):
        query = f"{query}&dryRun=All" if query else "dryRun=All"
    return Case(user, method, f"{path}?{query}" if query else path)


def _written_out() -> Iterator[Case]:
    """Attacks: a permission in one namespace, used on an object elsewhere."""
    for user in USERS:
        for method in _METHODS:
            for prefix in ("/api/v1", "/api/v1/watch"):
                for rest in (
                    "/namespaces/mine/namespaces/victim",
                    "/namespaces/mine/namespaces/victim/status",
                    "/namespaces/mine/namespaces/victim/finalize",
                    "/namespaces/mine/namespaces/mine",
                    "/namespaces/mine/namespaces",
                    "/namespaces/victim",
                    "/namespaces/mine",
                    "/namespaces/mine/status",
                    "/namespaces/mine/nodes/a",
                    "/namespaces/mine/nodes",
                ):
                    yield _case(user, method, prefix + rest)
            for rest in (
                "/namespaces/mine/gadgets/a",
                "/namespaces/mine/gadgets",
                "/widgets/a",
                "/widgets",
                "/gadgets/a",
            ):
                yield _case(user, method, f"/apis/routing.example/v1{rest}")
        for query in _QUERIES:
            for path in (
                "/api/v1/namespaces/mine/configmaps",
                "/api/v1/configmaps",
                "/apis/routing.example/v1/widgets",
            ):
                yield _case(user, "GET", path, query)
                yield _case(user, "DELETE", path, query)
        for path in (
            "//api/v1/namespaces/mine/configmaps/a",
            "/api//v1/namespaces/mine/configmaps/a",
            "/api/v1//namespaces/mine/configmaps/a",
            "/api/v1/namespaces//mine/configmaps/a",
            "/api/v1/namespaces/mine//configmaps/a",
            "/api/v1/namespaces/mine/configmaps//a",
            "/api/v1/namespaces/mine/configmaps/a//",
            "/api/v1/namespaces/mine/configmaps/a//status",
            "/api/v1/./namespaces/mine/configmaps/a",
            "/api/v1/namespaces/mine/configmaps/../configmaps/a",
            "/healthz/../api/v1/namespaces/victim/configmaps/a",
            "/API/v1/namespaces/mine/configmaps/a",
            "/api/V1/namespaces/mine/configmaps/a",
            "/api/v1/namespaces/mine/ConfigMaps/a",
            "/%61pi/v1/namespaces/mine/configmaps/a",
            "/api%2Fv1/namespaces/mine/configmaps/a",
            "/api/v1/proxy/namespaces/mine/pods/a",
            "/apis/routing.example/v1/proxy/namespaces/mine/widgets/a",
            "/apis/routing.example/v1/namespaces/mine",
            "/apis/routing.example/v1/namespaces",
            "/api/v1/namespaces/mine/pods/a/proxy",
            "/api/v1/namespaces/mine/pods/a/proxy/../../../configmaps/a",
            "/api/v1/namespaces/mine/pods/a/exec",
            "/api/v1/namespaces/mine/services/a/proxy/x",
            "/api/v1/nodes/a/proxy/x",
            "/api/v1/watch",
            "/api/v1/proxy",
            "/api/v1/",
            "/apis/apps/v1/",
            "/apis//v1/configmaps",
            "/apis/v1/configmaps",
        ):
            for method in ("GET", "DELETE"):
                yield _case(user, method, path)
