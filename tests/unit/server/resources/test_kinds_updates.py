"""Updates of built-in kinds: mutable fields, and the messages for immutable ones."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

CORE = "/api/v1/namespaces/default"
STORAGE = "/apis/storage.k8s.io/v1"
NETWORK = "/apis/networking.k8s.io/v1"
POD: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}


@asking
async def test_a_pod_update_error_shows_the_difference(api: Api) -> None:
    await api.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    made = (await api.post(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": POD})).body
    made["spec"]["hostname"] = "h"
    answer = await api.put(f"{CORE}/pods/p", made)
    assert '- "Hostname": "",\n+ "Hostname": "h",\n' in answer.message


@asking
async def test_a_storage_class_is_checked_whole_when_it_changes(api: Api) -> None:
    body = {"metadata": {"name": "s"}, "provisioner": "example.com/p"}
    await api.post(f"{STORAGE}/storageclasses", body)
    answer = await api.put(f"{STORAGE}/storageclasses/s", {**body, "volumeBindingMode": "Never"})
    assert [cause["message"].partition(":")[0] for cause in answer.body["details"]["causes"]] == [
        "Unsupported value",
        "Invalid value",
    ]


@asking
async def test_a_service_cidr_can_only_add_a_second_family(api: Api) -> None:
    path, meta = f"{NETWORK}/servicecidrs", {"name": "x"}
    await api.post(path, {"metadata": meta, "spec": {"cidrs": ["192.168.0.0/24"]}})
    answer = await api.put(f"{path}/x", {"metadata": meta, "spec": {"cidrs": ["192.168.1.0/24"]}})
    assert answer.message.endswith('spec.cidrs[0]: Invalid value: "192.168.1.0/24": field is immutable')
    answer = await api.put(f"{path}/x", {"metadata": meta, "spec": {"cidrs": ["192.168.0.0/24", "fd00::/112"]}})
    assert answer.code == 200


@asking
async def test_a_class_of_attributes_in_use_cannot_be_taken_from_a_claim(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = f"{CORE}/persistentvolumeclaims"
    body = {"metadata": {"name": "c"}, "spec": {**spec, "volumeAttributesClassName": "v"}}
    await api.post(path, body)
    status = {"phase": "Bound", "currentVolumeAttributesClassName": "v"}
    assert (await api.put(f"{path}/c/status", {**body, "status": status})).code == 200
    answer = await api.put(f"{path}/c", {"metadata": {"name": "c"}, "spec": spec})
    assert "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil" in answer.message


@asking
async def test_an_account_on_windows_is_named_as_windows_names_it(api: Api) -> None:
    for name, wrong in {
        "": "runAsUserName cannot be an empty string",
        "a\\b\\c": "runAsUserName cannot contain more than one backslash",
        "..": "runAsUserName's User cannot contain only periods or spaces",
        "DOMAIN\\user": "",
    }.items():
        context = {"windowsOptions": {"runAsUserName": name}}
        template = {"metadata": {"name": "t"}, "template": {"spec": {**POD, "securityContext": context}}}
        answer = await api.post(f"{CORE}/podtemplates?dryRun=All", template)
        assert answer.message.endswith(wrong) if wrong else answer.code == 201


@asking
async def test_claims_of_devices_name_one_thing_each(api: Api) -> None:
    claims = [{"name": "a", "resourceClaimName": "x"}, {"name": "a"}]
    template = {"metadata": {"name": "t"}, "template": {"spec": {**POD, "resourceClaims": claims}}}
    answer = await api.post(f"{CORE}/podtemplates?dryRun=All", template)
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "template.spec.resourceClaims[1].name",
        "template.spec.resourceClaims[1]",
    ]


@asking
async def test_conditions_of_a_budget_are_complete(api: Api) -> None:
    path, meta = "/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"name": "b"}
    made = (await api.post(path, {"metadata": meta, "spec": {}})).body
    answer = await api.put(f"{path}/b/status", {**made, "status": {"conditions": [{"type": "X", "status": "True"}]}})
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "status.conditions[0].lastTransitionTime",
        "status.conditions[0].reason",
    ]


@asking
async def test_files_of_a_volume_that_get_in_each_others_way_are_warned_of(api: Api) -> None:
    items = [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]
    volumes = [{"name": "v", "configMap": {"name": "c", "items": items}}]
    template = {"metadata": {"name": "t"}, "template": {"spec": {**POD, "volumes": volumes}}}
    answer = await api.post(f"{CORE}/podtemplates?dryRun=All", template)
    assert answer.warnings == (r'299 - "volume \"v\" (ConfigMap \"c\"): overlapping paths: \"x/y\" with \"x\""',)


@asking
async def test_a_type_error_names_the_go_struct(api: Api) -> None:
    container = {"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 80, "path": 7}}}
    template = {"metadata": {"name": "t"}, "template": {"spec": {"containers": [container]}}}
    answer = await api.post(f"{CORE}/podtemplates?dryRun=All", template)
    assert "HTTPGetAction.template.spec.containers.livenessProbe.ProbeHandler.httpGet.path of type" in answer.message


@asking
async def test_a_job_without_a_name_is_refused(api: Api) -> None:
    spec = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
    answer = await api.post("/apis/batch/v1/namespaces/default/jobs", {"metadata": {}, "spec": spec})
    assert "metadata.name: Required value: name or generateName is required" in answer.message


@asking
async def test_labels_that_a_job_was_given_stay_as_they_are(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**POD, "restartPolicy": "Never"}}
    path = "/apis/batch/v1/namespaces/default/jobs?dryRun=All"
    given = await api.post(path, {"metadata": {"name": "j", "labels": {"a": "b"}}, "spec": {"template": template}})
    assert given.body["metadata"]["labels"] == {"a": "b"}
    taken = await api.post(path, {"metadata": {"name": "j"}, "spec": {"template": template}})
    assert taken.body["metadata"]["labels"]["job-name"] == "j"


@asking
async def test_a_patch_is_refused_with_the_empty_list_that_it_makes(api: Api) -> None:
    path, meta = f"{NETWORK}/servicecidrs", {"name": "x"}
    await api.post(path, {"metadata": meta, "spec": {"cidrs": ["192.168.0.0/24"]}})
    answer = await api.merge(f"{path}/x", {"spec": {"cidrs": []}})
    assert answer.message.endswith("spec.cidrs: Invalid value: []: field is immutable")


@asking
async def test_conditions_of_an_api_service_are_true_false_or_unknown(api: Api) -> None:
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    spec = {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    made = (await api.post(path, {"metadata": {"name": "v1.g.example.com"}, "spec": spec})).body
    made["status"] = {"conditions": [{"type": "Available", "status": "Perhaps"}]}
    answer = await api.put(f"{path}/v1.g.example.com/status", made)
    assert 'Unsupported value: "Perhaps": supported values: "True", "False", "Unknown"' in answer.message
