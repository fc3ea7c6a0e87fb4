from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

APPS = "/apis/apps/v1/namespaces/default"
DEPLOYMENT = f"{APPS}/deployments/a"
SCALE = f"{DEPLOYMENT}/scale"


def workload(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector = {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
    return {"metadata": {"name": "a"}, "spec": {"selector": selector, "template": template, **spec}}


def scale(replicas: int, **metadata: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}, "spec": {"replicas": replicas}}


@asking
async def test_a_scale_shows_the_replicas_of_its_parent_and_no_more_metadata_than_it_needs(api: Api) -> None:
    made = (await api.post(f"{APPS}/deployments", workload())).body["metadata"]
    found = (await api.get(SCALE)).body
    assert found == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: made[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")},
        "spec": {"replicas": 1},
        "status": {"replicas": 0, "selector": "app=a,!x"},
    }


@asking
async def test_a_write_to_a_scale_changes_the_replicas_of_the_parent_alone(api: Api) -> None:
    made = (await api.post(f"{APPS}/deployments", workload())).body
    changed = await api.put(SCALE, scale(3))
    assert (changed.code, changed.body["spec"]) == (200, {"replicas": 3})
    after = (await api.get(DEPLOYMENT)).body
    assert after["spec"] == {**made["spec"], "replicas": 3}
    assert after["metadata"]["generation"] == 2
    assert changed.body["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert (await api.merge(SCALE, {"spec": {"replicas": 0}})).body["spec"] == {}
    patch = [{"op": "add", "path": "/spec/replicas", "value": 2}]
    patched = await api.ask("PATCH", SCALE, patch, content_type="application/json-patch+json")
    assert patched.body["spec"] == {"replicas": 2}


@asking
async def test_a_scale_carries_the_version_and_the_uid_of_its_parent(api: Api) -> None:
    made = (await api.post(f"{APPS}/deployments", workload())).body["metadata"]
    assert (await api.put(SCALE, scale(2, resourceVersion=made["resourceVersion"]))).code == 200
    refused = await api.put(SCALE, scale(3, resourceVersion=made["resourceVersion"]))
    assert (refused.code, "the object has been modified" in refused.message) == (409, True)
    refused = await api.put(SCALE, scale(3, uid="other"))
    why = f"Precondition failed: UID in precondition: other, UID in object meta: {made['uid']}"
    assert refused.message == (
        'Operation cannot be fulfilled on deployments.apps "a": StorageError: invalid object, Code: 4, Key: '
        f"/registry/deployments/default/a, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    )


@asking
async def test_a_bad_scale_is_refused(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    refused = await api.merge(SCALE, {"spec": {"replicas": -5}})
    assert refused.message == (
        'Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -5: must be greater than or equal to 0'
    )
    assert (await api.put(SCALE, {"metadata": {"name": "b"}})).code == 400
    assert (
        await api.put(SCALE, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"}})
    ).code == 400
    for method in ("GET", "PUT"):
        assert (await api.ask(method, f"{APPS}/deployments/b/scale", {"metadata": {"name": "b"}})).code == 404
    assert (await api.get(f"{APPS}/daemonsets/a/scale")).code == 404


@asking
async def test_a_dry_run_of_a_scale_stores_nothing(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    assert (await api.ask("PUT", f"{SCALE}?dryRun=All", scale(9))).body["spec"]["replicas"] == 9
    assert (await api.get(SCALE)).body["spec"]["replicas"] == 1


@asking
async def test_scaling_owns_the_replicas_of_the_parent(api: Api) -> None:
    config = {"apiVersion": "apps/v1", "kind": "Deployment", **workload(replicas=2)}
    await api.apply(f"{DEPLOYMENT}?fieldManager=one", config)
    wanted = {"apiVersion": "autoscaling/v1", "kind": "Scale", **scale(5)}
    refused = await api.apply(f"{SCALE}?fieldManager=hpa", wanted)
    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    assert (await api.apply(f"{SCALE}?fieldManager=hpa&force=true", wanted)).body["spec"] == {"replicas": 5}
    entries = (await api.get(DEPLOYMENT)).body["metadata"]["managedFields"]
    owned = [entry for entry in entries if entry.get("subresource") == "scale"]
    assert [(entry["manager"], entry["operation"], entry["fieldsV1"]) for entry in owned] == [
        ("hpa", "Apply", {"f:spec": {"f:replicas": {}}})
    ]
    before = (await api.get(DEPLOYMENT)).body["metadata"]["resourceVersion"]
    again = await api.apply(f"{SCALE}?fieldManager=hpa", wanted)
    assert again.body["metadata"]["resourceVersion"] == before
    await api.merge(f"{SCALE}?fieldManager=kubectl", {"spec": {"replicas": 6}})
    entries = (await api.get(DEPLOYMENT)).body["metadata"]["managedFields"]
    assert [e["manager"] for e in entries if e.get("subresource") == "scale"] == ["kubectl"]


@asking
async def test_controllers_of_the_core_group_select_by_a_map(api: Api) -> None:
    path = "/api/v1/namespaces/default/replicationcontrollers"
    sent = workload()
    del sent["spec"]["selector"]
    await api.post(path, sent)
    assert (await api.get(f"{path}/a/scale")).body["status"]["selector"] == "app=a"
    assert (await api.merge(f"{path}/a/scale", {"spec": {"replicas": 4}})).body["spec"] == {"replicas": 4}


@asking
async def test_the_table_of_a_scale_shows_its_counts(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    wanted = (await api.get(SCALE)).body["spec"]["replicas"]
    [row] = await api.cells(SCALE)
    assert row[1:3] == [wanted, 0]


DEFINITION = {
    "metadata": {"name": "widgets.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.size.count",
                        "statusReplicasPath": ".status.count",
                        "labelSelectorPath": ".status.selector",
                    }
                },
            }
        ],
    },
}


@asking
async def test_a_custom_resource_is_scaled_at_the_paths_of_its_definition(api: Api) -> None:
    await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    path = "/apis/example.dev/v1/namespaces/default/widgets"
    widget = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}}
    await api.post(path, {**widget, "status": {"count": 1, "selector": "a=b"}})
    refused = await api.get(f"{path}/a/scale")
    assert (refused.code, 'the spec replicas field ".spec.size.count" does not exist' in refused.message) == (500, True)
    refused = await api.merge(f"{path}/a/scale", {"metadata": {"labels": {"a": "b"}}})
    assert refused.message == 'the spec replicas field ".spec.size.count" cannot be empty'
    scaled = await api.merge(f"{path}/a/scale", {"spec": {"replicas": 3}})
    assert (scaled.body["spec"], scaled.body["status"]) == ({"replicas": 3}, {"replicas": 1, "selector": "a=b"})
    assert (await api.get(f"{path}/a")).body["spec"] == {"size": {"count": 3}}
    assert (await api.put(f"{path}/a/scale", scale(4))).code == 200
