"""Tables in responses; the cells are compared with Kubernetes in test_kinds_against_kubernetes."""

from __future__ import annotations

from tests.stage.api import TABLE, Api, asking

PODS = "/api/v1/namespaces/default/pods"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"


@asking
async def test_ages_follow_the_servers_clock(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert await api.cells("/api/v1/namespaces/default/configmaps") == [["a", 1, "0s"]]
    await api.server.world.clock.sleep(150)
    assert await api.cells("/api/v1/namespaces/default/configmaps") == [["a", 1, "2m30s"]]


@asking
async def test_a_kind_without_columns_shows_name_and_creation(api: Api) -> None:
    made = await api.post("/api/v1/namespaces/default/limitranges", {"metadata": {"name": "a"}, "spec": {"limits": []}})
    cells = await api.cells("/api/v1/namespaces/default/limitranges")
    assert cells == [["a", made.body["metadata"]["creationTimestamp"]]]


@asking
async def test_every_row_has_a_cell_for_every_column(api: Api) -> None:
    for resource in api.server.registry:
        if not resource.columns or resource.collection is None or resource.row is None:
            continue
        for entry in resource.collection.select():
            cells = resource.row(resource.object(entry.data))
            too_many = resource.gvr.resource == "ipaddresses"  # kube-apiserver returns their age without a column
            assert len(cells) == len(resource.columns) + too_many, resource.gvr


@asking
async def test_columns_have_every_field_that_clients_expect(api: Api) -> None:
    table = (await api.get("/api/v1/namespaces", accept=TABLE)).body
    for column in table["columnDefinitions"]:
        assert set(column) == {"name", "type", "format", "description", "priority"}


@asking
async def test_flow_schemas_are_shown_in_the_order_in_which_they_are_tried(api: Api) -> None:
    precedences = [cells[2] for cells in await api.cells(FLOWS)]
    assert len(precedences) > 5
    assert precedences == sorted(precedences)


@asking
async def test_a_finished_pod_has_a_condition_in_its_row(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    for name in ("a", "b"):
        made = await api.post(PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        assert made.code == 201, made.message
    await api.merge(f"{PODS}/b/status", {"status": {"phase": "Succeeded"}})
    rows = (await api.get(PODS, accept=TABLE)).body["rows"]
    assert [row["cells"][2] for row in rows] == ["Pending", "Succeeded"]
    assert "conditions" not in rows[0]
    assert rows[1]["conditions"] == [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ]
