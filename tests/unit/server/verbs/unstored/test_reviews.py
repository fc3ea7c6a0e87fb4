from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Api, asking

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
ISSUER = "https://kubernetes.default.svc"
FIELD = {"key": "a", "operator": "In", "values": ["b"]}
PODS = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}


async def bind(api: Api, name: str, subject: dict[str, str], role: str = "system:aggregate-to-view") -> None:
    sent = {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [subject]}
    answer = await api.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", sent)
    assert answer.code == 201, answer.message


@asking
async def test_a_self_subject_review_returns_the_user(api: Api) -> None:
    answer = await api.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert answer.code == 201
    assert answer.body["status"] == {
        "userInfo": {"username": "admin", "uid": "u-1", "groups": ["system:masters", "system:authenticated"]}
    }


@asking
async def test_a_token_review_returns_the_user_of_the_token(api: Api) -> None:
    path = f"{AUTHENTICATION}/tokenreviews"
    known = (await api.post(path, {"spec": {"token": "jane"}})).body["status"]
    user = {"username": "jane", "groups": ["dev", "system:authenticated"]}
    assert known == {"authenticated": True, "user": user, "audiences": [ISSUER]}
    unknown = (await api.post(path, {"spec": {"token": "nobody"}})).body["status"]
    assert unknown == {"user": {}, "error": "invalid bearer token"}
    others = (await api.post(path, {"spec": {"token": "jane", "audiences": ["vault"]}})).body["status"]
    assert others == {"user": {}, "error": "invalid bearer token"}
    assert (await api.post(path, {"spec": {}})).message == "token is required for TokenReview in authentication"


@asking
async def test_access_reviews_use_the_roles_of_the_subject(api: Api) -> None:
    mine = await api.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": PODS})
    assert (mine.code, mine.body["status"]) == (201, {"allowed": True})
    assert mine.body["metadata"]["managedFields"][0]["fieldsV1"].keys() == {"f:spec"}
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    theirs = await api.post(path, {"spec": {**PODS, "user": "jane", "groups": ["dev"]}})
    assert theirs.body["status"] == {"allowed": False}
    theirs = await api.post(path, {"spec": {**PODS, "groups": ["system:masters"]}})
    assert theirs.body["status"] == {"allowed": True}
    local = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    assert (await api.post(local, {"spec": {**PODS, "user": "jane"}})).body["status"] == {"allowed": False}
    await bind(api, "devs", {"kind": "Group", "name": "dev"})
    reason = 'RBAC: allowed by RoleBinding "devs/default" of ClusterRole "system:aggregate-to-view" to Group "dev"'
    for where in (path, local):
        theirs = await api.post(where, {"spec": {**PODS, "user": "jane", "groups": ["dev"]}})
        assert theirs.body["status"] == {"allowed": True, "reason": reason}
    mine = await api.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": OTHER}, authorization="Bearer jane")
    assert mine.body["status"] == {"allowed": False}


@asking
async def test_a_rules_review_returns_all_rules_and_whether_they_are_incomplete(api: Api) -> None:
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    rules = (await api.post(path, {"spec": {"namespace": "default"}})).body["status"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in rules["nonResourceRules"]
    assert (await api.post(path, {"spec": {}})).message == "no namespace on request"
    await bind(api, "ghost", {"kind": "User", "name": "jane"}, role="ghost")
    rules = (await api.post(path, {"spec": {"namespace": "default"}}, authorization="Bearer jane")).body["status"]
    assert rules["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "ghost" not found'
    assert [rule["resources"] for rule in rules["resourceRules"]] == [
        ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        ["selfsubjectreviews"],
    ]


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"fieldSelector": {"rawSelector": "a=b"}, "labelSelector": {"rawSelector": "a in (b)"}}, None),
        ({"fieldSelector": {"rawSelector": "nonsense"}}, "fieldSelector ignored"),
        ({"labelSelector": {"rawSelector": "a in"}}, "labelSelector ignored"),
        ({"labelSelector": {"requirements": [{"key": "a", "operator": "New"}]}}, "labelSelector ignored"),
        (
            {"fieldSelector": {"requirements": [FIELD, {"key": "a", "operator": "Exists"}]}},
            "fieldSelector partially ignored",
        ),
    ],
)
def test_selectors_that_are_not_understood_are_ignored(attributes: dict[str, Any], error: str | None) -> None:
    @asking
    async def check(api: Api) -> None:
        spec = {"resourceAttributes": {**PODS["resourceAttributes"], **attributes}}
        answer = await api.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": spec})
        told = f"spec.resourceAttributes.{error} due to parse error" if error else None
        assert (answer.code, answer.body["status"].get("evaluationError")) == (201, told)

    check()


NEITHER = "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes"
BOTH = 'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination'
OTHER = {"nonResourceAttributes": {"path": "/x", "verb": "get"}}


@pytest.mark.parametrize(
    ("path", "sent", "part"),
    [
        ("selfsubjectaccessreviews", {"spec": {}}, f'.authorization.k8s.io "" is invalid: {NEITHER}'),
        ("selfsubjectaccessreviews", {"spec": {**PODS, **OTHER}}, BOTH),
        ("selfsubjectaccessreviews", {"spec": PODS, "metadata": {"name": "a"}}, "metadata: Invalid value"),
        ("subjectaccessreviews", {"spec": PODS}, "at least one of user or group must be specified"),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"fieldSelector": {}}}},
            "fieldSelector is specified, requirements or rawSelector is required",
        ),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"labelSelector": {"requirements": [{"key": "-", "operator": "In"}]}}}},
            "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when",
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            {"spec": {"user": "u", "resourceAttributes": {"namespace": "other"}}},
            'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            {"spec": {"user": "u", **OTHER}, "metadata": {"name": "a"}},
            "disallowed on this kind of request",
        ),
    ],
)
def test_a_bad_review_is_refused(path: str, sent: dict[str, Any], part: str) -> None:
    @asking
    async def check(api: Api) -> None:
        refused = await api.post(f"{AUTHORIZATION}/{path}", sent)
        assert (refused.code, part in refused.message) == (422, True), refused.message

    check()


@asking
async def test_reviews_can_only_be_created(api: Api) -> None:
    assert (await api.get(f"{AUTHORIZATION}/selfsubjectaccessreviews")).code == 405
