"""Bootstrap: what a fresh server holds, and what a restart leaves alone."""

from __future__ import annotations

from tests.unit.server.asking import Api, asking

from ostinato.server.core import Server

KUBERNETES = "/api/v1/namespaces/default/services/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@asking
async def test_a_fresh_server_has_the_first_namespaces_and_roles(api: Api) -> None:
    found = await api.get("/api/v1/namespaces")
    names = [item["metadata"]["name"] for item in found.body["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert all(item["status"] == {"phase": "Active"} for item in found.body["items"])
    role = await api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")
    assert role.body["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    assert role.body["metadata"]["uid"]
    flow = await api.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt")
    assert flow.body["status"]["conditions"][0]["reason"] == "Found"
    assert flow.body["metadata"]["generation"] == 1


@asking
async def test_the_server_itself_is_a_service(api: Api) -> None:
    service = (await api.get(KUBERNETES)).body
    assert service["spec"]["clusterIP"] == "10.0.0.1"
    assert service["spec"]["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]
    assert (await api.get(SLICE)).body["endpoints"][0]["addresses"] == ["127.0.0.1"]


@asking
async def test_since_when_tokens_of_secrets_are_noted_is_told_and_stays(api: Api) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
    await api.server.start(tracks_tokens=True)
    today = api.server.world.clock.now().date().isoformat()
    assert (await api.get(path)).body["data"] == {"since": today}
    await api.merge(path, {"data": {"since": "2020-01-01"}})
    await api.server.start(tracks_tokens=True)
    assert (await api.get(path)).body["data"] == {"since": "2020-01-01"}


@asking
async def test_a_restart_makes_only_what_is_missing_and_follows_the_server(api: Api) -> None:
    server: Server = api.server
    before = server.index.version
    await server.start()
    assert server.index.version == before
    address, role = "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1", f"{ROLES}/system:discovery"
    for lost in (address, role):
        assert (await api.delete(lost)).code == 200
    await api.merge("/apis/rbac.authorization.k8s.io/v1/clusterroles/view", {"metadata": {"labels": {"mine": "1"}}})
    await server.start("10.1.1.1", 7443)
    for lost in (address, role):
        assert (await api.get(lost)).code == 200
    view = await api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
    assert view.body["metadata"]["labels"]["mine"] == "1"
    found = (await api.get(SLICE)).body
    assert found["endpoints"][0]["addresses"] == ["10.1.1.1"]
    assert found["ports"][0]["port"] == 7443
    assert (await api.get(KUBERNETES)).body["spec"]["ports"][0]["targetPort"] == 7443
