from __future__ import annotations

from typing import Any

import pytest
from tests.unit.server.asking import Api, asking

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
PODS = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}


@asking
async def test_a_caller_learns_who_he_is(api: Api) -> None:
    answer = await api.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert answer.code == 201
    assert answer.body["status"] == {
        "userInfo": {"username": "admin", "uid": "u-1", "groups": ["system:masters", "system:authenticated"]}
    }


@asking
async def test_a_token_review_says_whose_token_it_is(api: Api) -> None:
    path = f"{AUTHENTICATION}/tokenreviews"
    known = (await api.post(path, {"spec": {"token": "jane"}})).body["status"]
    assert known == {"authenticated": True, "user": {"username": "jane", "groups": ["dev", "system:authenticated"]}}
    unknown = (await api.post(path, {"spec": {"token": "nobody"}})).body["status"]
    assert unknown == {"user": {}, "error": "invalid bearer token"}
    assert (await api.post(path, {"spec": {}})).message == "token is required for TokenReview in authentication"


@asking
async def test_administrators_may_do_everything_and_others_nothing(api: Api) -> None:
    mine = await api.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": PODS})
    assert (mine.code, mine.body["status"]) == (201, {"allowed": True})
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    theirs = await api.post(path, {"spec": {**PODS, "user": "jane", "groups": ["dev"]}})
    assert theirs.body["status"] == {"allowed": False}
    theirs = await api.post(path, {"spec": {**PODS, "groups": ["system:masters"]}})
    assert theirs.body["status"] == {"allowed": True}
    local = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    assert (await api.post(local, {"spec": {**PODS, "user": "jane"}})).body["status"] == {"allowed": False}


@asking
async def test_the_rules_of_an_administrator_are_everything(api: Api) -> None:
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    rules = (await api.post(path, {"spec": {"namespace": "default"}})).body["status"]
    assert rules["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    assert (await api.post(path, {"spec": {}})).message == "no namespace on request"


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
async def test_reviews_are_only_asked(api: Api) -> None:
    assert (await api.get(f"{AUTHORIZATION}/selfsubjectaccessreviews")).code == 405
