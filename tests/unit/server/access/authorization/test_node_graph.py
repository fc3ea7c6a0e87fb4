"""What a node may read follows its Pods: from the moment they are bound until they are gone."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

NODE = {"impersonate_user": "system:node:n1", "impersonate_group": "system:nodes"}
SECRET = "/api/v1/namespaces/default/secrets/s"
PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, node: str = "", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers, **spec}}


MOUNTING = {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}


async def ready(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})


async def reads(api: Api, path: str = SECRET) -> bool:
    answer = await api.get(path, **NODE)
    assert answer.code in (200, 403), answer
    return answer.code == 200


def test_a_secret_can_be_read_while_a_pod_that_mounts_it_is_bound_to_the_node() -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        assert not await reads(api)
        assert (await api.post(PODS, pod("one", **MOUNTING))).code == 201
        assert not await reads(api), "it is not bound yet"
        binding = {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n1"}}
        assert (await api.post(f"{PODS}/one/binding", binding)).code == 201
        assert await reads(api)
        assert (await api.post(PODS, pod("two", "n1", **MOUNTING))).code == 201
        await api.delete(f"{PODS}/one?gracePeriodSeconds=0")
        assert await reads(api), "the other one still mounts it"
        await api.delete(f"{PODS}/two?gracePeriodSeconds=0")
        assert not await reads(api)

    check()


def test_existing_pods_are_in_the_graph_at_a_nodes_first_request() -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        assert (await api.post(PODS, pod("one", "n1", **MOUNTING))).code == 201
        assert await reads(api)

    check()


def test_an_ephemeral_container_lets_the_node_read_its_references() -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        assert (await api.post(PODS, pod("one", "n1"))).code == 201
        assert not await reads(api)
        env = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
        change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "i", "env": env}]}}
        answer = await api.merge(f"{PODS}/one/ephemeralcontainers", change)
        assert answer.code == 200, answer.message
        assert await reads(api)

    check()


def test_a_volume_and_its_secret_can_be_read_while_a_pod_uses_the_claim() -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        source = {"driver": "x.example.com", "volumeHandle": "h"}
        source["nodeStageSecretRef"] = {"name": "s", "namespace": "default"}  # type: ignore[assignment]
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "c"},
            "csi": source,
        }
        assert (await api.post("/api/v1/persistentvolumes", {"metadata": {"name": "pv"}, "spec": spec})).code == 201
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        assert not await reads(api)
        assert (await api.post(PODS, pod("one", "n1", volumes=[volume]))).code == 201
        assert await reads(api)
        assert await reads(api, "/api/v1/persistentvolumes/pv")
        await api.delete("/api/v1/persistentvolumes/pv")
        change = {"metadata": {"finalizers": None}}
        await api.merge("/api/v1/persistentvolumes/pv", change)
        assert not await reads(api)

    check()


def test_a_mirror_pod_gives_its_node_nothing() -> None:
    @asking
    async def check(api: Api) -> None:
        await ready(api)
        body = pod("one", "n1", volumes=[{"name": "v", "configMap": {"name": "m"}}])
        body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        assert (await api.post(PODS, body)).code == 201, "an administrator may"
        assert not await reads(api, "/api/v1/namespaces/default/configmaps/m")

    check()


def test_the_role_system_node_as_it_stands_in_the_cluster_gives_nodes_nothing() -> None:
    @asking
    async def check(api: Api) -> None:
        role = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
        assert (await api.merge(path, role)).code == 200
        assert not await reads(api)

    check()
