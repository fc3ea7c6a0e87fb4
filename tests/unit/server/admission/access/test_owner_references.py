"""Owner references where their permission is enforced: who may delete, and who may hold up a deletion."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tests.stage.api import MERGE, Answer, Api, asking

from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
MAPS = "/api/v1/namespaces/default/configmaps"
CANNOT_DELETE = "cannot set an ownerRef on a resource you can't delete: , <nil>"
CANNOT_BLOCK = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
)


def enforcing(test: Callable[[Api], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        simulation = Simulation(seed=1)

        async def main() -> None:
            server = Server(
                simulation, MemoryLog(), admission=AdmissionSettings(enabled=("OwnerReferencesPermissionEnforcement",))
            )
            server.authenticator.add("admin", User("admin", groups=("system:masters",)))
            server.authenticator.add("jane", User("jane"))
            await server.start()
            await test(Api(server))
            await server.close()

        simulation.run(main())

    run.__name__ = test.__name__
    return run


async def let_jane(api: Api, name: str, resource: str, *verbs: str, group: str = "") -> None:
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": verbs}]
    await api.post(f"{RBAC}/roles", {"metadata": {"name": name}, "rules": rules})
    role, subject = {"kind": "Role", "name": name}, {"kind": "User", "name": "jane"}
    sent = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    assert (await api.post(f"{RBAC}/rolebindings", sent)).code == 201


def owned(name: str, *, blocking: bool = False, kind: str = "Deployment", version: str = "apps/v1") -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "1", "blockOwnerDeletion": blocking}
    return {"metadata": {"name": name, "ownerReferences": [owner]}}


async def create(api: Api, sent: Any) -> Answer:
    return await api.post(MAPS, sent, authorization="Bearer jane")


async def change(api: Api, sent: Any) -> Answer:
    return await api.ask("PATCH", f"{MAPS}/a", sent, authorization="Bearer jane", content_type=MERGE)


@enforcing
async def test_setting_an_owner_reference_needs_permission_to_delete(api: Api) -> None:
    await let_jane(api, "write", "configmaps", "create", "patch")
    assert (await create(api, {"metadata": {"name": "a"}})).code == 201
    refused = await change(api, owned("a"))
    assert (refused.code, refused.message) == (403, f'configmaps "a" is forbidden: {CANNOT_DELETE}')
    assert (await change(api, {"data": {"a": "b"}})).code == 200
    await let_jane(api, "delete", "configmaps", "delete")
    assert (await change(api, owned("a"))).code == 200
    assert (await create(api, owned("b"))).code == 201  # what you make, you need not have made


@enforcing
async def test_block_owner_deletion_needs_permission_on_finalizers(api: Api) -> None:
    await let_jane(api, "write", "configmaps", "*")
    refused = await create(api, owned("a", blocking=True))
    assert (refused.code, refused.message) == (403, f'configmaps "a" is forbidden: {CANNOT_BLOCK}')
    assert (await create(api, owned("a"))).code == 201
    assert (await change(api, owned("a", blocking=True))).message.endswith(CANNOT_BLOCK)
    unknown = await create(api, owned("b", blocking=True, kind="Thing", version="a.com/v1"))
    assert unknown.message == (
        'configmaps "b" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for '
        'APIVersion a.com/v1 Kind Thing: no matches for kind "Thing" in version "a.com/v1"'
    )
    await let_jane(api, "finalize", "deployments/finalizers", "update", group="apps")
    assert (await change(api, owned("a", blocking=True))).code == 200
    assert (await change(api, {"metadata": {"labels": {"a": "b"}}})).code == 200


@enforcing
async def test_an_administrator_sets_any_owner(api: Api) -> None:
    assert (await api.post(MAPS, owned("a", blocking=True, kind="Thing", version="a.com/v1"))).code == 201


@asking
async def test_owner_references_are_not_enforced_by_default(api: Api) -> None:
    await let_jane(api, "write", "configmaps", "create", "patch")
    assert (await create(api, owned("a", blocking=True))).code == 201
    assert (await change(api, {"metadata": {"ownerReferences": []}})).code == 200
