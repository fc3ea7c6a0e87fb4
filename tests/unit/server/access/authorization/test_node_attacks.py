"""A node that was taken over tries what its credentials might allow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import MERGE, Api, asking

NODE = {"impersonate_user": "system:node:n1", "impersonate_group": "system:nodes"}
PODS = "/api/v1/namespaces/default/pods"


async def ready(api: Api) -> dict[str, Any]:
    """Two nodes, and a Pod with a Secret on the other one. The Node n1."""
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "victim"}})
    created = [await api.post("/api/v1/nodes", {"metadata": {"name": name}}) for name in ("n1", "n2")]
    volume = {"name": "v", "secret": {"secretName": "victim"}}
    spec = {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    assert (await api.post(PODS, {"metadata": {"name": "other"}, "spec": spec})).code == 201
    return created[0].body


def mirror(node: dict[str, Any], **spec: Any) -> dict[str, Any]:
    uid = node["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    annotations = {"kubernetes.io/config.mirror": "x"}
    return {
        "metadata": {"name": "mirror", "annotations": annotations, "ownerReferences": [owner]},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], **spec},
    }


def test_cve_2025_5187_a_node_cannot_delete_itself_by_an_owner_that_does_not_exist() -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}
        change = {"metadata": {"ownerReferences": [owner]}}
        answer = await api.ask("PATCH", "/api/v1/nodes/n1", change, content_type=MERGE, **NODE)
        assert answer.code == 403
        assert 'node "n1" is not allowed to modify ownerReferences' in answer.message
        assert "ownerReferences" not in (await api.get("/api/v1/nodes/n1")).body["metadata"]

    check()


def test_cve_2025_4563_a_mirror_pod_gets_no_resource_claims() -> None:
    @asking
    async def check(api: Api) -> None:
        node = await ready(api)
        claims = [{"name": "r", "resourceClaimName": "of-another"}]
        answer = await api.post(PODS, mirror(node, resourceClaims=claims), **NODE)
        assert answer.code == 403
        assert 'node "n1" can not create pods that reference resourceclaims' in answer.message

    check()


def test_an_administrators_mirror_pod_has_no_resource_claims_either() -> None:
    @asking
    async def check(api: Api) -> None:
        node = await ready(api)
        claims = [{"name": "a", "resourceClaimName": "b"}, {"name": "a"}]
        answer = await api.post(PODS, mirror(node, resourceClaims=claims))
        what = "Forbidden: static pods do not support resource claims"
        assert (answer.code, answer.message) == (422, f'Pod "mirror" is invalid: []: {what}')
        cause = {"field": "[]", "message": what, "reason": "FieldValueForbidden"}
        assert answer.body["details"]["causes"] == [cause, cause]

    check()


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "v", "secret": {"secretName": "victim"}}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "victim"}}]}}]},
        {"imagePullSecrets": [{"name": "victim"}]},
        {"serviceAccountName": "default"},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    ],
)
def test_a_node_cannot_reach_secrets_by_a_pod_that_it_makes(spec: dict[str, Any]) -> None:
    @asking
    async def check(api: Api) -> None:
        node = await ready(api)
        assert (await api.post(PODS, mirror(node, **spec), **NODE)).code == 403
        assert (await api.get("/api/v1/namespaces/default/secrets/victim", **NODE)).code == 403

    check()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/namespaces/default/secrets", None),
        ("GET", "/api/v1/namespaces/default/secrets/victim", None),
        ("GET", "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dvictim", None),
        ("GET", "/api/v1/watch/namespaces/default/secrets/victim", None),
        ("GET", "/api/v1/pods", None),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", None),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2&fieldSelector=spec.nodeName%3Dn1", None),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1", None),
        ("GET", f"{PODS}/other", None),
        ("GET", f"{PODS}/other/log", None),
        ("POST", f"{PODS}/other/exec?command=id", None),
        ("POST", f"{PODS}/other/eviction", {"metadata": {"name": "other"}}),
        ("DELETE", f"{PODS}/other", None),
        ("PATCH", f"{PODS}/other/status", {"status": {"message": "x"}}),
        ("POST", f"{PODS}/other/binding", {"metadata": {"name": "other"}, "target": {"kind": "Node", "name": "n1"}}),
        ("GET", "/api/v1/nodes/n2", None),
        ("GET", "/api/v1/nodes/n2/proxy/pods", None),
        ("PATCH", "/api/v1/nodes/n2", {"metadata": {"labels": {"a": "b"}}}),
        ("PATCH", "/api/v1/nodes/n2/status", {"status": {"addresses": []}}),
        ("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"node-restriction.kubernetes.io/trusted": "yes"}}}),
        ("PATCH", "/api/v1/nodes/n1/status", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
        ("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        ("DELETE", "/api/v1/nodes/n2", None),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}),
        ("POST", "/api/v1/namespaces/kube-system/serviceaccounts/default/token", {"spec": {}}),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"metadata": {"name": "x"}}),
        ("PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", {"metadata": {"name": "x"}}),
    ],
)
def test_a_node_reaches_nothing_of_another(method: str, path: str, body: Any) -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        content_type = MERGE if method == "PATCH" else "application/json"
        answer = await api.ask(method, path, body, content_type=content_type, **NODE)
        assert answer.code == 403, answer

    check()
