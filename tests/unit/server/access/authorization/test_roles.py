"""Roles decide who may do what: from the next request on, and in the words that clients know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Api, asking

from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.roles import CACHED_ATTRIBUTES, CACHED_USERS, LONGEST_CACHED
from ostinato.server.request import User

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HERE = f"{RBAC}/namespaces/default"
MAPS = "/api/v1/namespaces/default/configmaps"
READ = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
JANE = {"kind": "User", "name": "jane"}
CANNOT, IN, AT = 'User "jane" cannot', 'in the namespace "default"', "at the cluster scope"


async def role(api: Api, name: str, rules: Any = READ, where: str = f"{HERE}/roles") -> None:
    answer = await api.post(where, {"metadata": {"name": name}, "rules": rules})
    assert answer.code == 201, answer.message


async def bind(api: Api, role: str, *subjects: Any, kind: str = "Role", where: str = f"{HERE}/rolebindings") -> None:
    sent = {"metadata": {"name": f"to-{role}"}, "roleRef": {"kind": kind, "name": role}, "subjects": subjects}
    answer = await api.post(where, sent)
    assert answer.code == 201, answer.message


async def jane(api: Api, path: str, method: str = "GET") -> tuple[int, str]:
    answer = await api.ask(method, path, authorization="Bearer jane")
    return answer.code, answer.message


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", f"{MAPS}/a", f'configmaps "a" is forbidden: {CANNOT} get resource "configmaps" in API group "" {IN}'),
        (
            "DELETE",
            MAPS,
            f'configmaps is forbidden: {CANNOT} deletecollection resource "configmaps" in API group "" {IN}',
        ),
        (
            "PUT",
            "/apis/apps/v1/namespaces/default/deployments/d/scale",
            f'deployments.apps "d" is forbidden: {CANNOT} update resource "deployments/scale" in API group "apps" {IN}',
        ),
        ("GET", "/api/v1/nodes?watch=1", f'nodes is forbidden: {CANNOT} watch resource "nodes" in API group "" {AT}'),
        ("GET", "/apis/a&b/v1/xs", f'xs.a&b is forbidden: {CANNOT} list resource "xs" in API group "a&amp;b" {AT}'),
        ("GET", "/metrics", 'forbidden: User "jane" cannot get path "/metrics"'),
        ("POST", "/version", 'forbidden: User "jane" cannot post path "/version"'),
    ],
)
def test_a_forbidden_message_names_the_attributes(method: str, path: str, message: str) -> None:
    @asking
    async def check(api: Api) -> None:
        assert await jane(api, path, method) == (403, message)

    check()


@asking
async def test_a_role_applies_in_its_namespace_until_it_is_deleted(api: Api) -> None:
    assert (await jane(api, MAPS))[0] == 403
    await role(api, "reader")
    await bind(api, "reader", JANE)
    assert (await jane(api, MAPS))[0] == 200
    assert (await jane(api, f"{MAPS}/none"))[0] == 404
    assert (await jane(api, MAPS, "DELETE"))[0] == 403
    assert (await jane(api, "/api/v1/configmaps"))[0] == 403
    assert (await jane(api, "/api/v1/namespaces/kube-system/configmaps"))[0] == 403
    await api.merge(f"{HERE}/roles/reader", {"rules": []})
    assert (await jane(api, MAPS))[0] == 403
    await api.merge(f"{HERE}/roles/reader", {"rules": READ})
    assert (await jane(api, MAPS))[0] == 200
    await api.delete(f"{HERE}/rolebindings/to-reader")
    assert (await jane(api, MAPS))[0] == 403


@asking
async def test_a_cluster_role_holds_where_it_is_bound(api: Api) -> None:
    await role(api, "reader", where=f"{RBAC}/clusterroles")
    await bind(api, "reader", {"kind": "Group", "name": "dev"}, kind="ClusterRole")
    assert (await jane(api, MAPS))[0] == 200
    assert (await jane(api, "/api/v1/configmaps"))[0] == 403
    await bind(api, "reader", JANE, kind="ClusterRole", where=f"{RBAC}/clusterrolebindings")
    assert (await jane(api, "/api/v1/configmaps"))[0] == 200
    await api.merge(f"{RBAC}/clusterroles/reader", {"rules": None})
    assert (await jane(api, "/api/v1/configmaps"))[0] == 403
    assert (await jane(api, MAPS))[0] == 403


@asking
async def test_a_service_account_is_a_subject_of_its_namespace(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    asked = await api.post("/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
    bearer = f"Bearer {asked.body['status']['token']}"
    assert (await api.get(MAPS, authorization=bearer)).code == 403
    await role(api, "reader")
    await bind(api, "reader", {"kind": "ServiceAccount", "name": "robot"})
    assert (await api.get(MAPS, authorization=bearer)).code == 200


@asking
async def test_a_list_of_one_name_is_of_that_name(api: Api) -> None:
    await role(api, "one", [{**READ[0], "resourceNames": ["mine"]}])
    await bind(api, "one", JANE)
    assert (await jane(api, MAPS))[0] == 403
    assert (await jane(api, f"{MAPS}?fieldSelector=metadata.name%3Dmine"))[0] == 200
    code, message = await jane(api, f"{MAPS}?fieldSelector=metadata.name%3Dother")
    assert (code, message.partition(":")[0]) == (403, 'configmaps "other" is forbidden')
    assert (await jane(api, f"{MAPS}?fieldSelector=metadata.name%21%3Dmine"))[0] == 403


@asking
async def test_a_binding_to_a_missing_role_is_reported(api: Api) -> None:
    await bind(api, "ghost", JANE)
    await bind(api, "spirit", JANE, kind="ClusterRole")
    reason = (
        'RBAC: [role.rbac.authorization.k8s.io "ghost" not found, '
        'clusterrole.rbac.authorization.k8s.io "spirit" not found]'
    )
    assert (await jane(api, MAPS))[1].endswith(f'in the namespace "default": {reason}')
    await role(api, "ghost")
    assert (await jane(api, MAPS))[0] == 200


@asking
async def test_health_is_public_and_discovery_needs_authentication(api: Api) -> None:
    for path, known, anonymous in (
        ("/version", 200, 200),
        ("/api", 200, 403),
        ("/apis/apps/v1", 200, 403),
        ("/openapi/v3", 200, 403),
        ("/metrics", 403, 403),
        ("/nowhere", 403, 403),
    ):
        assert (await jane(api, path))[0] == known, path
        assert (await api.get(path, authorization="")).code == anonymous, path


@asking
async def test_the_cache_of_users_is_bounded(api: Api) -> None:
    authorizer, asked = api.server.authorizer, RequestAttributes("get", resource="pods", namespace="default")
    for i in range(CACHED_USERS):
        authorizer.decide_now(User(f"u{i}"), asked)
    held = authorizer.roles._held
    assert sum(map(len, held.values())) <= CACHED_USERS
    await role(api, "reader", where=f"{RBAC}/clusterroles")
    await bind(api, "reader", JANE, kind="ClusterRole", where=f"{RBAC}/clusterrolebindings")
    jane_, reads = User("jane"), RequestAttributes("get", resource="configmaps")
    for i in range(CACHED_ATTRIBUTES + 1):
        assert not authorizer.decide_now(jane_, reads._replace(resource=f"r{i}")).allowed
        assert not authorizer.decide_now(jane_, reads._replace(namespace="n" * (64 + i), resource="x")).allowed
        assert authorizer.decide_now(jane_, reads._replace(name=f"n{i}", namespace="n" * 64)).allowed
    assert len(authorizer.roles.held(jane_, "")._concerned) == 1
    assert held.keys() == {""}
    assert authorizer.decide_now(User("jane", groups=("g" * LONGEST_CACHED,)), reads).allowed
    assert held[""].keys() == {("jane", ())}
