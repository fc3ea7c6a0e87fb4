"""Bootstrap: what a fresh server holds, and what a restart leaves alone."""

from __future__ import annotations

from tests.stage.api import Api, asking

from ostinato.server.core import Server

KUBERNETES = "/api/v1/namespaces/default/services/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
LABEL = "kubernetes.io/bootstrapping"  # of all that the server brings into being


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
async def test_the_start_of_legacy_token_tracking_is_recorded_once(api: Api) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
    await api.server.start(tracks_tokens=True)
    today = api.server.world.clock.now().date().isoformat()
    assert (await api.get(path)).body["data"] == {"since": today}
    await api.merge(path, {"data": {"since": "2020-01-01"}})
    await api.server.start(tracks_tokens=True)
    assert (await api.get(path)).body["data"] == {"since": "2020-01-01"}


@asking
async def test_a_restart_creates_missing_objects_and_updates_the_address(api: Api) -> None:
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


@asking
async def test_a_restart_restores_bootstrap_roles_and_bindings(api: Api) -> None:
    role, binding = f"{ROLES}/system:basic-user", f"{BINDINGS}/system:public-info-viewer"
    reads = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    whole = [(await api.get(path)).body for path in (role, binding)]
    await api.merge(role, {"rules": [reads], "metadata": {"labels": {"mine": "1", LABEL: None}}})
    group = {"kind": "Group", "name": "mine", "apiGroup": "rbac.authorization.k8s.io"}
    await api.merge(binding, {"subjects": [group]})
    await api.server.start()
    found = (await api.get(role)).body
    assert found["metadata"]["labels"] == {"mine": "1", **whole[0]["metadata"]["labels"]}
    assert [rule["resources"] for rule in found["rules"]] == [
        ["pods"],
        ["selfsubjectaccessreviews"],
        ["selfsubjectrulesreviews"],
        ["selfsubjectreviews"],
    ]
    assert (await api.get(binding)).body["subjects"] == [group, *whole[1]["subjects"]]


@asking
async def test_a_role_that_is_not_to_be_kept_whole_is_left_alone(api: Api) -> None:
    path = f"{ROLES}/system:basic-user"
    left = {"rules": [], "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}}
    await api.merge(path, left)
    await api.server.start()
    assert not (await api.get(path)).body.get("rules")


@asking
async def test_aggregation_and_the_role_of_a_binding_are_put_back(api: Api) -> None:
    view = f"{ROLES}/view"
    whole = (await api.get(view)).body["aggregationRule"]
    other = {"matchLabels": {"a": "b"}}
    await api.merge(view, {"aggregationRule": {"clusterRoleSelectors": [other]}})
    await api.merge(f"{ROLES}/system:discovery", {"aggregationRule": {"clusterRoleSelectors": [other]}})
    await api.delete(f"{BINDINGS}/system:discovery")
    wrong = {"metadata": {"name": "system:discovery"}, "roleRef": {"kind": "ClusterRole", "name": "view"}}
    await api.post(BINDINGS, wrong)
    await api.server.start()
    selectors = (await api.get(view)).body["aggregationRule"]["clusterRoleSelectors"]
    assert selectors == [other, *whole["clusterRoleSelectors"]]
    assert "aggregationRule" not in (await api.get(f"{ROLES}/system:discovery")).body
    assert (await api.get(f"{BINDINGS}/system:discovery")).body["roleRef"]["name"] == "system:discovery"
