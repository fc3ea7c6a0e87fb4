"""Nobody grants more than they have."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import MERGE, Answer, Api, asking

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HERE = f"{RBAC}/namespaces/default"
GROUP = "rbac.authorization.k8s.io"
READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
WRITES = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["create", "update", "patch"]}
HELD = (
    'user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
)


async def give_jane(api: Api, *rules: Any) -> None:
    """Let jane write roles and bindings everywhere, and what the rules say."""
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "jane"}, "rules": [WRITES, *rules]})
    subject = {"kind": "User", "name": "jane"}
    sent = {"metadata": {"name": "jane"}, "roleRef": {"kind": "ClusterRole", "name": "jane"}, "subjects": [subject]}
    assert (await api.post(f"{RBAC}/clusterrolebindings", sent)).code == 201


async def jane(api: Api, method: str, path: str, sent: Any) -> Answer:
    media = MERGE if method == "PATCH" else "application/json"
    return await api.ask(method, path, sent, authorization="Bearer jane", content_type=media)


def role(*rules: Any, name: str = "r") -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": rules}


def binding(kind: str, name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "b"},
        "roleRef": {"kind": kind, "name": name},
        "subjects": [{"kind": "User", "name": "u"}],
    }


@asking
async def test_a_role_has_no_rules_that_its_writer_has_not(api: Api) -> None:
    await give_jane(api, READ)
    assert (await jane(api, "POST", f"{HERE}/roles", role(READ))).code == 201
    more = {**READ, "verbs": ["get", "delete", "update"]}
    for method, path in (("POST", f"{HERE}/roles"), ("POST", f"{RBAC}/clusterroles"), ("PUT", f"{HERE}/roles/more")):
        refused = await jane(api, method, path, role(more, name="more"))
        assert refused.code == 403
        assert refused.message == (
            f'{path.split("/more")[0].rpartition("/")[2]}.{GROUP} "more" is forbidden: {HELD}'
            '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete" "update"]}'
        )
    refused = await jane(api, "PATCH", f"{HERE}/roles/r", {"rules": [more]})
    assert refused.message.startswith(f'roles.{GROUP} "r" is forbidden: {HELD}')
    assert (await jane(api, "PATCH", f"{HERE}/roles/r", {"rules": []})).code == 200


@asking
async def test_garbage_collector_updates_pass_the_escalation_check(api: Api) -> None:
    await give_jane(api)
    await api.post(f"{HERE}/roles", role(READ))
    assert (await jane(api, "PATCH", f"{HERE}/roles/r", {"metadata": {"finalizers": ["a.com/b"]}})).code == 200
    refused = await jane(api, "PATCH", f"{HERE}/roles/r", {"metadata": {"labels": {"a": "b"}}})
    assert refused.code == 403


@asking
async def test_binding_a_role_needs_its_rules(api: Api) -> None:
    await give_jane(api, READ)
    await api.post(f"{HERE}/roles", role(READ, name="read"))
    await api.post(f"{RBAC}/clusterroles", role({**READ, "verbs": ["*"]}, name="all"))
    refused = await jane(api, "POST", f"{HERE}/rolebindings", binding("ClusterRole", "all"))
    told = '{APIGroups:[""], Resources:["configmaps"], Verbs:["*"]}'
    assert refused.message == f'rolebindings.{GROUP} "b" is forbidden: {HELD}{told}'
    refused = await jane(api, "POST", f"{RBAC}/clusterrolebindings", binding("ClusterRole", "all"))
    assert refused.message == f'clusterrolebindings.{GROUP} "b" is forbidden: {HELD}{told}'
    absent = await jane(api, "POST", f"{HERE}/rolebindings", binding("Role", "none"))
    assert (absent.code, absent.message) == (404, f'rolebindings.{GROUP} "none" not found')
    for path, kind, name, message in (
        (f"{RBAC}/clusterrolebindings", "Role", "read", "Namespace parameter required."),
        (f"{HERE}/rolebindings", "Role", "", "Name parameter required."),
    ):
        wrong = await jane(api, "POST", path, binding(kind, name))
        assert (wrong.code, wrong.message) == (400, message)
    wrong = await jane(api, "POST", f"{HERE}/rolebindings", binding("Robe", "none"))
    assert (wrong.code, wrong.message) == (500, 'unsupported role reference kind: "Robe"')
    assert (await jane(api, "POST", f"{HERE}/rolebindings", binding("Role", "read"))).code == 201
    await api.merge(f"{HERE}/roles/read", {"rules": [{**READ, "verbs": ["*"]}]})
    refused = await jane(api, "PATCH", f"{HERE}/rolebindings/b", {"subjects": []})
    assert refused.code == 403


@asking
async def test_bind_and_escalate_lift_the_check(api: Api) -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    await api.post(f"{HERE}/roles", role(everything, name="bound"))
    await give_jane(
        api,
        {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["bind"], "resourceNames": ["bound"]},
        {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate"], "resourceNames": ["raised"]},
    )
    assert (await jane(api, "POST", f"{HERE}/rolebindings", binding("Role", "bound"))).code == 201
    assert (await jane(api, "POST", f"{HERE}/roles", role(everything, name="raised"))).code == 403  # it names no object
    await api.post(f"{HERE}/roles", role(name="raised"))
    assert (await jane(api, "PATCH", f"{HERE}/roles/raised", {"rules": [everything]})).code == 200


@asking
async def test_aggregation_rules_need_cluster_admin(api: Api) -> None:
    await give_jane(api)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    refused = await jane(api, "POST", f"{RBAC}/clusterroles", {**role(), "aggregationRule": selectors})
    why = "must have cluster-admin privileges to use the aggregationRule"
    assert refused.message == f'clusterroles.{GROUP} "r" is forbidden: {why}'


@asking
async def test_a_missing_role_is_reported(api: Api) -> None:
    await give_jane(api)
    ghost = {**binding("ClusterRole", "ghost"), "subjects": [{"kind": "User", "name": "jane"}]}
    await api.post(f"{HERE}/rolebindings", ghost)
    refused = await jane(api, "POST", f"{HERE}/roles", role(READ))
    assert refused.message.endswith(f'; resolution errors: [roles.{GROUP} "ghost" not found]')


@asking
async def test_a_role_that_names_too_much_is_not_compared(api: Api) -> None:
    await give_jane(api)
    many = [f"a{i}" for i in range(200)]
    refused = await jane(api, "POST", f"{HERE}/roles", role({"apiGroups": many, "resources": many, "verbs": ["get"]}))
    assert (refused.code, "more than 10000 combinations" in refused.message) == (403, True)


@pytest.mark.parametrize("kind", ["roles", "rolebindings"])
def test_an_administrator_may_grant_any_rule(kind: str) -> None:
    @asking
    async def check(api: Api) -> None:
        sent = role(READ) if kind == "roles" else binding("ClusterRole", "cluster-admin")
        assert (await api.post(f"{HERE}/{kind}", sent)).code == 201

    check()
