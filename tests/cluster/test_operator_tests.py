"""Tests with the fixtures of `ostinato.testing`: the same in this process and on another cluster."""

from __future__ import annotations

import pytest

from ostinato import Conflict, Context, ObjectMeta, controller
from ostinato.api.errors import Forbidden
from ostinato.client import Client
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Secret
from ostinato.kinds.rbac_v1 import Role
from ostinato.testing import Cluster, ClusterManager, Events, Eventually, VirtualClock
from tests.unit.testing.ponds import Pond, pond, ponds, thirsty


async def test_a_controller_runs(
    manager: ClusterManager, client: Client, eventually: Eventually, events: Events
) -> None:
    await manager.start(ponds)
    made = await client.create(pond(ducks=3))
    assert made.metadata.namespace == client.namespace
    await eventually(ConfigMap, "a", lambda each: each.data == {"ducks": "3"})
    await eventually(Pond, "a", lambda each: each.status.ducks == 3)
    await events.expect("Filled", regarding=made, note="3 ducks")


@pytest.mark.parametrize("_", range(2))
async def test_tests_have_namespaces_of_their_own(client: Client, _: int) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="mine")))


async def test_controllers_have_the_derived_permissions(
    manager: ClusterManager, cluster: Cluster, eventually: Eventually
) -> None:
    await manager.start(thirsty)
    await cluster.client.create(pond())
    (error, *_) = await eventually(lambda: manager.errors)
    assert isinstance(error.error, Forbidden)
    assert "controller thirsty lacks the permission: add access=[Access(" in str(error)
    assert await cluster.client.get(Secret, "a", missing=None) is None
    await manager.end()
    assert manager.errors


async def test_users_are_impersonated(cluster: Cluster) -> None:
    reader = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await cluster.client.create(
        {"apiVersion": Role.__kind__.gvk.api_version, "kind": "Role", "metadata": {"name": "a"}, "rules": [reader]}
    )
    about = {"apiGroup": "rbac.authorization.k8s.io", "name": "a"}
    subjects = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "ducks"}]
    binding = {"metadata": {"name": "a"}, "roleRef": {**about, "kind": "Role"}, "subjects": subjects}
    await cluster.client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", **binding})
    donald = cluster.client_as("donald", "ducks")
    await cluster.eventually(lambda: _can_list(donald, cluster.namespace))
    with pytest.raises(Forbidden, match='User "donald" cannot get resource "configmaps"'):
        await donald.get(ConfigMap, "a")


async def _can_list(client: Client, namespace: str) -> bool:
    await client.list(ConfigMap, namespace=namespace)
    return True


async def test_faults_are_injected(manager: ClusterManager, cluster: Cluster, eventually: Eventually) -> None:
    await manager.start(ponds)
    fault = cluster.fail(next=Conflict, on=ConfigMap)
    await cluster.client.create(pond())
    await eventually(ConfigMap, "a")
    assert len(fault.hits) == 1


async def test_finalizers_do_not_keep_the_namespace(
    manager: ClusterManager, cluster: Cluster, eventually: Eventually
) -> None:
    @controller(Pond)
    async def careful(pond: Pond, ctx: Context) -> None:
        async with ctx.finalizer(pond, "ponds.example.dev/careful"):
            pass

    await manager.start(careful)
    await cluster.client.create(pond())
    await eventually(Pond, "a", lambda each: each.metadata.finalizers)


async def test_deployments_become_ready(plane: Cluster, client: Client, eventually: Eventually) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    await eventually(Deployment, "web", lambda each: each.status.ready_replicas == 1, timeout=60)


async def test_virtual_time_is_for_this_process_only(clock: VirtualClock, client: Client) -> None:
    await clock.advance(86_400)
    assert await client.get(Namespace, "default")
