"""Impersonation: as whom a request counts, and who may ask so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Answer, Api, asking

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHENTICATION = "authentication.k8s.io"


async def whoami(api: Api, **headers: str) -> Answer:
    return await api.post(REVIEWS, {}, **headers)


async def grant(api: Api, *rules: dict[str, list[str]], to: str = "jane") -> None:
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": to}, "rules": rules})
    subject = {"kind": "User", "name": to}
    role = {"kind": "ClusterRole", "name": to}
    sent = {"metadata": {"name": to}, "roleRef": role, "subjects": [subject]}
    assert (await api.post(f"{RBAC}/clusterrolebindings", sent)).code == 201


def rule(verb: str, group: str, resource: str, *names: str) -> dict[str, list[str]]:
    return {"verbs": [verb], "apiGroups": [group], "resources": [resource], "resourceNames": list(names)}


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"user": "alice"}, {"username": "alice", "groups": ["system:authenticated"]}),
        (
            {"user": "alice", "uid": "7", "group": "ops", "extra_acme.com%2fscopes": "view"},
            {
                "username": "alice",
                "uid": "7",
                "groups": ["ops", "system:authenticated"],
                "extra": {"acme.com/scopes": ["view"]},
            },
        ),
        (
            {"user": "system:serviceaccount:default:robot"},
            {
                "username": "system:serviceaccount:default:robot",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            },
        ),
        ({"user": "system:node:n"}, {"username": "system:node:n", "groups": ["system:nodes", "system:authenticated"]}),
        (
            {"user": "bob", "group": "system:masters"},
            {"username": "bob", "groups": ["system:masters", "system:authenticated"]},
        ),
    ],
)
def test_an_administrator_may_be_anybody(headers: dict[str, str], told: dict[str, Any]) -> None:
    @asking
    async def check(api: Api) -> None:
        answer = await whoami(api, **{f"impersonate_{name}": value for name, value in headers.items()})
        assert answer.body["status"]["userInfo"] == told

    check()


@asking
async def test_an_impersonated_user_has_only_its_own_permissions(api: Api) -> None:
    answer = await api.get("/api/v1/nodes", impersonate_user="alice")
    assert (answer.code, answer.message.partition(" cannot")[0]) == (403, 'nodes is forbidden: User "alice"')
    assert (await whoami(api, impersonate_user="system:anonymous")).code == 403


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("group", "ops", 'Name:"", UID:"", Groups:[]string{"ops"}, Extra:map[string][]string(nil)'),
        ("uid", "7", 'Name:"", UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            "extra_a",
            "b",
            'Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b"}}',
        ),
    ],
)
def test_impersonation_needs_a_user(name: str, value: str, shown: str) -> None:
    @asking
    async def check(api: Api) -> None:
        answer = await whoami(api, **{f"impersonate_{name}": value})
        message = f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name"
        assert (answer.code, answer.message) == (400, message)

    check()


@asking
async def test_the_old_right_is_to_everything_that_is_named(api: Api) -> None:
    jane = {"authorization": "Bearer jane"}
    refused = await whoami(api, **jane, impersonate_user="alice")
    assert 'User "jane" cannot impersonate-on:user-info:create resource "selfsubjectreviews"' in refused.message
    await grant(
        api,
        rule("impersonate", "", "users", "alice"),
        rule("impersonate", AUTHENTICATION, "uids", "7"),
        rule("impersonate", AUTHENTICATION, "userextras/scopes", "view"),
    )
    assert (await whoami(api, **jane, impersonate_user="alice")).code == 201
    extra = {"impersonate_uid": "7", "impersonate_extra_scopes": "view"}
    assert (await whoami(api, **jane, impersonate_user="alice", **extra)).code == 201
    for headers, resource, name in (
        ({"impersonate_user": "bob"}, "users", "bob"),
        ({"impersonate_user": "alice", "impersonate_group": "ops"}, "groups", "ops"),
        ({"impersonate_user": "alice", "impersonate_uid": "8"}, "uids.authentication.k8s.io", "8"),
        (
            {"impersonate_user": "alice", "impersonate_extra_scopes": "edit"},
            "userextras.authentication.k8s.io",
            "edit",
        ),
        ({"impersonate_user": "system:serviceaccount:a:b"}, "serviceaccounts", "b"),
    ):
        answer = await whoami(api, **jane, **headers)
        assert answer.code == 403
        assert answer.message.startswith(f'{resource} "{name}" is forbidden: User "jane" cannot impersonate resource')


@asking
async def test_constrained_impersonation_allows_one_verb(api: Api) -> None:
    jane = {"authorization": "Bearer jane", "impersonate_user": "alice"}
    await grant(
        api,
        rule("impersonate:user-info", AUTHENTICATION, "users", "alice"),
        {"verbs": ["impersonate-on:user-info:create"], "apiGroups": ["*"], "resources": ["selfsubjectreviews"]},
    )
    assert (await whoami(api, **jane)).code == 201
    listed = await api.get("/api/v1/nodes", **jane)
    assert 'User "jane" cannot impersonate-on:user-info:list resource "nodes" in API group ""' in listed.message
    other = await whoami(api, **{**jane, "impersonate_user": "bob"})
    assert other.message.startswith(
        'users.authentication.k8s.io "bob" is forbidden: User "jane" cannot impersonate:user-'
    )
    group = await whoami(api, **jane, impersonate_group="system:masters")
    assert group.message.endswith("at the cluster scope: impersonating the system:masters group is not allowed")
    extra = await whoami(api, **jane, impersonate_extra_scopes="view")
    assert 'extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")' in extra.message
