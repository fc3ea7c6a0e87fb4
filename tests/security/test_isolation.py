"""A right in one namespace ends at that namespace: attacks on a running API server by the owner of one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ApiServer
from tests.security.attacker import Answer, Attacker

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/mine"
CUSTOM = "/apis/isolation.example/v1"
MERGE = "application/merge-patch+json"
LABELLED = {"metadata": {"labels": {"reached": "yes"}}}


class Owner:
    """May do everything in the namespace `mine`, and nothing elsewhere."""

    def __init__(self, attacker: Attacker) -> None:
        self.attacker = attacker

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"Impersonate-User": "owner-of-mine"}
        if method == "PATCH":
            headers["Content-Type"] = MERGE
        return self.attacker.ask(method, path, body, headers=headers)


@pytest.fixture(scope="module")
def attacker(apiserver: ApiServer) -> Attacker:
    attacker = Attacker(apiserver)
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "subresources": {"status": {}},
    }
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "owner"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "owner-of-mine"}
    made: list[tuple[str, Any]] = [("/api/v1/namespaces", {"metadata": {"name": name}}) for name in ("mine", "victim")]
    made.append((f"{ROLES}/roles", {"metadata": {"name": "owner"}, "rules": [everything]}))
    made.append((f"{ROLES}/rolebindings", {"metadata": {"name": "owner"}, "roleRef": reference, "subjects": [subject]}))
    for plural, kind, scope in (
        ("foos", "Foo", "Namespaced"),
        ("foosbars", "FooBar", "Namespaced"),
        ("globals", "Global", "Cluster"),
    ):
        spec = {
            "group": "isolation.example",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        }
        definition = {"metadata": {"name": f"{plural}.isolation.example"}, "spec": spec}
        made.append(("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition))
    secret = {"apiVersion": "isolation.example/v1", "kind": "FooBar", "metadata": {"name": "secret"}}
    made.append((f"{CUSTOM}/namespaces/victim/foosbars", secret))
    made.append((f"{CUSTOM}/globals", {**secret, "kind": "Global"}))
    for path, body in made:
        answer = attacker.ask("POST", path, body)
        assert answer.status == 201, answer
    return attacker


@pytest.mark.parametrize("subresource", ["", "/status", "/finalize"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_right_in_one_namespace_does_not_reach_another_namespace(
    attacker: Attacker, method: str, subresource: str
) -> None:
    """A Namespace named under another one is not found: its path is authorized in the first, and would act on the
    second.
    """
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "victim", "labels": {"reached": "yes"}}}
    path = f"/api/v1/namespaces/mine/namespaces/victim{subresource}"
    answer = Owner(attacker).ask(method, path, body if method in ("PUT", "PATCH") else None)
    assert answer.status == 404, answer
    victim = attacker.ask("GET", "/api/v1/namespaces/victim").json
    assert "reached" not in victim["metadata"]["labels"]
    assert victim["status"] == {"phase": "Active"}


def test_a_right_in_one_namespace_does_not_watch_another_namespace(attacker: Attacker) -> None:
    owner = Owner(attacker)
    assert owner.ask("GET", "/api/v1/watch/namespaces/mine/namespaces/victim?timeoutSeconds=1").status == 404
    assert owner.ask("GET", "/api/v1/watch/namespaces/mine/namespaces?timeoutSeconds=1").status == 404
    assert owner.ask("GET", "/api/v1/namespaces/mine/namespaces?watch=1&timeoutSeconds=1").status == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_cve_2019_11247_a_cluster_scoped_custom_resource_under_a_namespace(attacker: Attacker, method: str) -> None:
    """A cluster-scoped custom resource is asked for as if it were in the attacker's own namespace: not found."""
    one = f"{CUSTOM}/namespaces/mine/globals/secret"
    for path in (one, f"{one}/status"):
        answer = Owner(attacker).ask(method, path, LABELLED if method in ("PUT", "PATCH") else None)
        assert answer.status == 404, answer
    assert "labels" not in attacker.ask("GET", f"{CUSTOM}/globals/secret").json["metadata"]


@pytest.mark.parametrize("namespace", ["..", ".", "%2e%2e", "..%2Fvictim", "mine%2F..%2Fvictim", "%00", ""])
def test_cve_2022_3162_a_namespace_that_climbs_out_of_its_resource(attacker: Attacker, namespace: str) -> None:
    """A list of one kind with `..` for a namespace would read the keys of another kind of the group."""
    for path in (f"{CUSTOM}/namespaces/{namespace}/foos", f"{CUSTOM}/namespaces/{namespace}/foos?watch=1"):
        answer = Owner(attacker).ask("GET", path + ("&" if "?" in path else "?") + "timeoutSeconds=1")
        assert answer.status in (400, 403, 404), answer
    answer = attacker.ask("GET", f"{CUSTOM}/namespaces/{namespace}/foos")
    assert answer.status in (400, 404) or answer.json["items"] == [], answer
    named = attacker.ask("GET", f"{CUSTOM}/namespaces/victim/foos/..%2Ffoosbars%2Fsecret")
    assert named.status in (400, 404), named


def test_a_body_cannot_name_another_namespace_or_object_than_the_path(attacker: Attacker) -> None:
    owner, maps = Owner(attacker), "/api/v1/namespaces/mine/configmaps"
    elsewhere = {"metadata": {"name": "planted", "namespace": "victim"}}
    assert owner.ask("POST", maps, elsewhere).status == 400
    assert owner.ask("PUT", f"{maps}/planted", elsewhere).status == 400
    assert owner.ask("PUT", f"{maps}/planted", {"metadata": {"name": "other"}}).status == 400
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planted"}}
    assert owner.ask("POST", maps, made).status == 201
    for change in ({"namespace": "victim"}, {"name": "other"}, {"namespace": "../victim"}):
        assert owner.ask("PATCH", f"{maps}/planted", {"metadata": change}).status in (400, 422)
    assert attacker.ask("GET", "/api/v1/namespaces/victim/configmaps/planted").status == 404
    assert owner.ask("DELETE", f"{maps}/planted").status == 200


def test_a_dry_run_does_not_reach_a_container(attacker: Attacker) -> None:
    """A connection is made or it is not: nothing runs because of a request that says it changes nothing."""
    for path in ("pods/p/exec?command=id&", "pods/p/attach?", "pods/p/portforward?", "pods/p/proxy/x?"):
        answer = attacker.ask("POST", f"/api/v1/namespaces/mine/{path}dryRun=All")
        assert (answer.status, answer.json["message"]) == (400, "dryRun is not supported")
