from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
POD = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
SELECTOR = {"matchLabels": {"app": "a"}}


def workload(name: str = "a", /, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": SELECTOR, "template": TEMPLATE, **spec}}


def job(name: str = "a", /, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {**POD, "restartPolicy": "Never"}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


@asking
async def test_a_new_deployment_begins_with_an_empty_status_whatever_is_sent(api: Api) -> None:
    made = await api.post(f"{APPS}/deployments", {**workload(), "status": {"replicas": 9}})
    assert (made.code, made.body["status"], made.body["metadata"]["generation"]) == (201, {}, 1)


@asking
async def test_the_generation_of_a_deployment_counts_changes_of_spec_and_annotations_alone(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    path = f"{APPS}/deployments/a"
    changes = [
        ({"metadata": {"labels": {"x": "y"}}}, 1),
        ({"metadata": {"annotations": {"x": "y"}}}, 2),
        ({"spec": {"replicas": 3}}, 3),
        ({"spec": {"replicas": 3}}, 3),
        ({"status": {"replicas": 3}}, 3),
    ]
    for change, generation in changes:
        assert (await api.merge(path, change)).body["metadata"]["generation"] == generation


@asking
async def test_the_status_of_a_deployment_is_written_without_spec_and_labels(api: Api) -> None:
    await api.post(f"{APPS}/deployments", workload())
    change = {
        "metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}},
        "spec": {"replicas": 7},
        "status": {"replicas": 1, "readyReplicas": 1},
    }
    written = (await api.merge(f"{APPS}/deployments/a/status", change)).body
    assert written["spec"]["replicas"] == 1
    assert "labels" not in written["metadata"]
    assert written["metadata"]["annotations"] == {"x": "y"}
    assert written["status"] == {"replicas": 1, "readyReplicas": 1}


@asking
async def test_a_deployment_must_select_its_own_template(api: Api) -> None:
    refused = await api.post(f"{APPS}/deployments", workload(selector={"matchLabels": {"app": "b"}}))
    assert refused.code == 422
    assert refused.message == (
        'Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: {"app":"a"}: '
        "`selector` does not match template `labels`"
    )
    refused = await api.post(f"{APPS}/deployments", workload(selector={}))
    assert "spec.selector: Invalid value: {}: empty selector is invalid for deployment" in refused.message
    refused = await api.post(f"{APPS}/deployments", workload(selector=None))
    assert "spec.selector: Required value" in refused.message


@asking
async def test_the_selector_of_a_workload_cannot_change(api: Api) -> None:
    for kind in ("deployments", "replicasets", "daemonsets"):
        await api.post(f"{APPS}/{kind}", workload())
        refused = await api.merge(f"{APPS}/{kind}/a", {"spec": {"selector": {"matchLabels": {"app": "b"}}}})
        assert 'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable' in refused.message


@asking
async def test_a_strategy_that_would_never_progress_is_refused(api: Api) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}
    refused = await api.post(f"{APPS}/deployments", workload(strategy=rolling))
    assert "maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0" in refused.message
    refused = await api.post(f"{APPS}/daemonsets", workload(updateStrategy=rolling))
    assert "maxUnavailable: Required value: cannot be 0 when maxSurge is 0" in refused.message
    refused = await api.post(f"{APPS}/deployments", workload(strategy={"type": "Swift"}))
    assert 'spec.strategy: Unsupported value: {"Type":"Swift","RollingUpdate":null}' in refused.message
    recreate = {"type": "Recreate", "rollingUpdate": {}}
    refused = await api.post(f"{APPS}/deployments", workload(strategy=recreate))
    assert "may not be specified when strategy `type` is 'Recreate'" in refused.message
    refused = await api.post(f"{APPS}/deployments", workload(progressDeadlineSeconds=5, minReadySeconds=5))
    assert "progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds" in refused.message


@asking
async def test_a_selector_that_cannot_be_read_is_refused(api: Api) -> None:
    odd = {"matchExpressions": [{"key": "app", "operator": "Is", "values": ["a"]}]}
    for kind in ("deployments", "replicasets", "statefulsets", "daemonsets"):
        refused = await api.post(f"{APPS}/{kind}", workload(selector=odd))
        assert 'operator: Invalid value: "Is": not a valid selector operator' in refused.message


@asking
async def test_numbers_and_shares_of_a_strategy_are_checked(api: Api) -> None:
    for unavailable, part in ((-1, "must be greater than or equal to 0"), ("5", "a valid percent string must be")):
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 1}}
        assert part in (await api.post(f"{APPS}/deployments", workload(strategy=rolling))).message
    negative = {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}
    refused = await api.post(f"{APPS}/statefulsets", workload(updateStrategy=negative))
    assert "updateStrategy.rollingUpdate.partition: Invalid value: -1" in refused.message
    refused = await api.post(f"{APPS}/statefulsets", workload(updateStrategy={"type": "Slow"}))
    assert '{"Type":"Slow","RollingUpdate":null}: must be \'RollingUpdate\' or \'OnDelete\'' in refused.message
    made = await api.post(f"{APPS}/statefulsets", workload(revisionHistoryLimit=-1))
    assert "a negative value retains all historical revisions" in made.warnings[0]


@asking
async def test_a_label_that_a_status_write_sends_is_not_taken_over(api: Api) -> None:
    sent = workload()
    sent["metadata"]["labels"] = {"x": "y"}
    await api.post(f"{APPS}/deployments", sent)
    written = await api.merge(f"{APPS}/deployments/a/status", {"metadata": {"labels": {"x": "z"}}})
    assert written.body["metadata"]["labels"] == {"x": "y"}


@asking
async def test_a_status_counts_no_more_parts_than_there_are(api: Api) -> None:
    await api.post(f"{APPS}/replicasets", workload())
    refused = await api.merge(f"{APPS}/replicasets/a/status", {"status": {"replicas": 1, "readyReplicas": 2}})
    assert refused.message == (
        'ReplicaSet.apps "a" is invalid: status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas'
    )
    await api.post(f"{APPS}/statefulsets", workload())
    refused = await api.merge(f"{APPS}/statefulsets/a/status", {"status": {"replicas": -1, "updatedReplicas": 1}})
    assert "status.replicas: Invalid value: -1: must be greater than or equal to 0" in refused.message
    await api.merge(f"{APPS}/statefulsets/a/status", {"status": {"collisionCount": 2}})
    refused = await api.merge(f"{APPS}/statefulsets/a/status", {"status": {"collisionCount": 1}})
    assert "status.collisionCount: Invalid value: 1: cannot be decremented" in refused.message


@asking
async def test_most_of_a_stateful_set_cannot_change(api: Api) -> None:
    await api.post(f"{APPS}/statefulsets", workload(serviceName="s"))
    refused = await api.merge(f"{APPS}/statefulsets/a", {"spec": {"serviceName": "t"}})
    assert "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template'" in refused.message
    assert (await api.merge(f"{APPS}/statefulsets/a", {"spec": {"replicas": 3}})).code == 200


@asking
async def test_a_bad_stateful_set_is_refused(api: Api) -> None:
    refused = await api.post(
        f"{APPS}/statefulsets",
        workload(
            podManagementPolicy="Random",
            updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            persistentVolumeClaimRetentionPolicy={"whenDeleted": "Burn"},
            ordinals={"start": -1},
            serviceName="no_label",
        ),
    )
    for part in (
        "podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'",
        'rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for updateStrategy',
        'whenDeleted: Unsupported value: "Burn": supported values: "Retain", "Delete"',
        "spec.ordinals.start: Invalid value: -1",
        'spec.serviceName: Invalid value: "no_label"',
    ):
        assert part in refused.message
    refused = await api.post(f"{APPS}/statefulsets", {**workload(), "metadata": {"name": "a.b"}})
    assert "metadata.name" in refused.message


@asking
async def test_max_unavailable_of_a_stateful_set_is_dropped(api: Api) -> None:
    made = await api.post(
        f"{APPS}/statefulsets",
        workload(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}),
    )
    assert made.body["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    kept = await api.merge(
        f"{APPS}/statefulsets/a", {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}}
    )
    assert kept.body["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}


@asking
async def test_volumes_of_a_stateful_sets_claims_can_be_mounted(api: Api) -> None:
    pod = {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    made = await api.post(
        f"{APPS}/statefulsets",
        workload(template={"metadata": TEMPLATE["metadata"], "spec": pod}, volumeClaimTemplates=[claim]),
    )
    assert made.code == 201
    assert made.body["spec"]["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"}


@asking
async def test_a_daemon_set_counts_the_changes_of_its_template_in_an_annotation(api: Api) -> None:
    made = await api.post(f"{APPS}/daemonsets", workload())
    key = "deprecated.daemonset.template.generation"
    assert made.body["metadata"]["annotations"] == {key: "1"}
    changed = await api.merge(f"{APPS}/daemonsets/a", {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}})
    assert (changed.body["metadata"]["annotations"][key], changed.body["metadata"]["generation"]) == ("2", 2)
    forged = await api.merge(f"{APPS}/daemonsets/a", {"metadata": {"annotations": {key: "9"}}})
    assert forged.body["metadata"]["annotations"][key] == "2"


@asking
async def test_a_bad_daemon_set_is_refused(api: Api) -> None:
    template = {"metadata": TEMPLATE["metadata"], "spec": {**POD, "restartPolicy": "Never", "activeDeadlineSeconds": 5}}
    rolling = {"rollingUpdate": {"maxUnavailable": "200%", "maxSurge": 1}}
    refused = await api.post(f"{APPS}/daemonsets", workload(template=template, updateStrategy=rolling))
    for part in (
        'restartPolicy: Unsupported value: "Never": supported values: "Always"',
        "activeDeadlineSeconds in DaemonSet is not Supported",
        'maxUnavailable: Invalid value: "200%": must not be greater than 100%',
        "maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
    ):
        assert part in refused.message
    refused = await api.post(f"{APPS}/daemonsets", workload(selector={}, updateStrategy={"type": "Never"}))
    assert "empty selector is invalid for daemonset" in refused.message
    assert 'Unsupported value: {"Type":"Never","RollingUpdate":null}' in refused.message
    await api.post(f"{APPS}/daemonsets", workload(updateStrategy={"type": "OnDelete"}))
    refused = await api.merge(f"{APPS}/daemonsets/a/status", {"status": {"numberReady": -1}})
    assert "status.numberReady: Invalid value: -1" in refused.message


@asking
async def test_the_data_of_a_controller_revision_cannot_change(api: Api) -> None:
    path = f"{APPS}/controllerrevisions"
    await api.post(path, {"metadata": {"name": "a"}, "revision": 1, "data": {"a": 1}})
    assert (await api.merge(f"{path}/a", {"revision": 2})).code == 200
    refused = await api.merge(f"{path}/a", {"data": {"a": 2}})
    assert 'data: Invalid value: {"a":2}: field is immutable' in refused.message
    for data, why in ((None, "data is mandatory"), ([1], "data must be a valid JSON object")):
        refused = await api.post(path, {"metadata": {"name": "b"}, "revision": -1, "data": data})
        assert why in refused.message
        assert "revision: Invalid value: -1" in refused.message


@asking
async def test_a_job_selects_its_pods_by_its_own_uid(api: Api) -> None:
    made = (await api.post(f"{BATCH}/jobs", job())).body
    uid = made["metadata"]["uid"]
    labels = {
        "app": "a",
        "job-name": "a",
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
    }
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


@asking
async def test_a_job_with_labels_of_its_own_keeps_them(api: Api) -> None:
    made = (await api.post(f"{BATCH}/jobs", {**job(), "metadata": {"name": "a", "labels": {"x": "y"}}})).body
    assert made["metadata"]["labels"] == {"x": "y"}


@asking
async def test_a_job_named_by_the_server_has_that_name_in_its_labels(api: Api) -> None:
    made = (await api.post(f"{BATCH}/jobs", {**job(), "metadata": {"generateName": "j-"}})).body
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == made["metadata"]["name"]


@asking
async def test_a_selector_that_is_not_generated_is_refused_unless_it_is_wanted(api: Api) -> None:
    refused = await api.post(f"{BATCH}/jobs", job(selector=SELECTOR))
    assert "`selector` not auto-generated" in refused.message
    made = await api.post(f"{BATCH}/jobs", job(selector=SELECTOR, manualSelector=True))
    assert made.body["spec"]["selector"] == SELECTOR
    refused = await api.post(f"{BATCH}/jobs", job("b", manualSelector=True))
    assert "spec.selector: Required value" in refused.message
    forged = job("c")
    forged["spec"]["template"]["metadata"]["labels"] = {"controller-uid": "mine"}
    refused = await api.post(f"{BATCH}/jobs", forged)
    assert "spec.template.metadata.labels[controller-uid]: Invalid value" in refused.message


@asking
async def test_deleting_a_job_orphans_its_pods_with_a_warning(api: Api) -> None:
    await api.post(f"{BATCH}/jobs", job())
    gone = await api.delete(f"{BATCH}/jobs/a")
    assert gone.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in gone.warnings[0]
    await api.post(f"{BATCH}/jobs", job("b"))
    gone = await api.delete(f"{BATCH}/jobs/b?propagationPolicy=Background")
    assert (gone.body["status"], gone.warnings) == ("Success", ())


@asking
async def test_the_template_of_a_job_changes_only_while_it_is_suspended(api: Api) -> None:
    for name, suspend in (("runs", False), ("waits", True)):
        await api.post(f"{BATCH}/jobs", job(name, suspend=suspend))
    tolerations = {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}
    refused = await api.merge(f"{BATCH}/jobs/runs", tolerations)
    assert "spec.template: Invalid value" in refused.message
    assert (await api.merge(f"{BATCH}/jobs/waits", tolerations)).code == 200
    affinity: dict[str, Any] = {"spec": {"template": {"spec": {"affinity": {"nodeAffinity": {}}}}}}
    assert (await api.merge(f"{BATCH}/jobs/waits", affinity)).code == 200
    refused = await api.merge(f"{BATCH}/jobs/waits", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
    assert "spec.template.spec: Invalid value" in refused.message
    refused = await api.merge(f"{BATCH}/jobs/waits", {"spec": {"completions": 4}})
    assert "spec.completions: Invalid value: 4: field is immutable" in refused.message


@asking
async def test_an_indexed_job_grows_with_its_parallelism(api: Api) -> None:
    await api.post(f"{BATCH}/jobs", job(completionMode="Indexed", completions=2, parallelism=2))
    refused = await api.merge(f"{BATCH}/jobs/a", {"spec": {"completions": 3}})
    assert "can only be modified in tandem with spec.parallelism" in refused.message
    assert (await api.merge(f"{BATCH}/jobs/a", {"spec": {"completions": 3, "parallelism": 3}})).code == 200


@asking
async def test_a_bad_job_is_refused(api: Api) -> None:
    template = {"metadata": TEMPLATE["metadata"], "spec": {**POD, "restartPolicy": "OnFailure"}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"parallelism": -1}, "spec.parallelism: Invalid value: -1"),
        ({"maxFailedIndexes": 1}, "backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"),
        ({"completionMode": "Indexed"}, ""),
        (
            {"completionMode": "Indexed", "parallelism": 1},
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        ({"completionMode": "Indexed", "completions": 1, "parallelism": 100_001}, "less than or equal to 100000 when"),
        ({"backoffLimitPerIndex": 1}, "requires indexed completion mode"),
        ({"completionMode": "Odd"}, 'Unsupported value: "Odd": supported values: "NonIndexed", "Indexed"'),
        ({"podReplacementPolicy": "Never"}, 'supported values: "Failed", "TerminatingOrFailed"'),
        ({"template": TEMPLATE}, 'restartPolicy: Required value: valid values: "OnFailure", "Never"'),
        ({"template": template, "podFailurePolicy": {"rules": []}}, 'only "Never" is supported when podFailurePolicy'),
    ]
    for spec, part in cases:
        refused = await api.post(f"{BATCH}/jobs?dryRun=All", job(**spec))
        assert part in refused.message
        assert (refused.code == 422) == bool(part)
    long = "a" * 60 + ".b"
    refused = await api.post(f"{BATCH}/jobs", job(long, completionMode="Indexed", completions=1))
    assert "will not able to create pod with invalid DNS label" in refused.message


@asking
async def test_a_name_that_pods_cannot_have_is_warned_of(api: Api) -> None:
    made = await api.post(f"{BATCH}/jobs", job("a.b"))
    assert "a DNS label is recommended: [must not contain dots]" in made.warnings[0]
    assert (await api.merge(f"{BATCH}/jobs/a.b", {"spec": {"parallelism": 2}})).warnings == ()


@asking
async def test_jobs_are_selected_by_how_many_pods_succeeded(api: Api) -> None:
    await api.post(f"{BATCH}/jobs", job("a"))
    await api.post(f"{BATCH}/jobs", job("b"))
    await api.merge(f"{BATCH}/jobs/b/status", {"status": {"succeeded": 2}})
    found = await api.get(f"{BATCH}/jobs?fieldSelector=status.successful%3D2")
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["b"]


COMPLETE = [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]
BEGAN, ENDED = "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"


@asking
async def test_the_status_of_a_job_follows_the_rules_of_its_conditions(api: Api) -> None:
    await api.post(f"{BATCH}/jobs", job())
    path = f"{BATCH}/jobs/a/status"
    done = {"startTime": BEGAN, "completionTime": ENDED}
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"conditions": [COMPLETE[1]], **done}, "without the SuccessCriteriaMet=true condition"),
        ({"conditions": COMPLETE}, "completionTime is required for Complete jobs"),
        ({"conditions": COMPLETE, "completionTime": ENDED}, "startTime is required for finished job"),
        (
            {"conditions": COMPLETE, "startTime": ENDED, "completionTime": BEGAN},
            "must be equal to or after `startTime`",
        ),
        ({"conditions": COMPLETE, **done, "active": 1}, "active>0 is invalid for finished job"),
        ({"conditions": COMPLETE, **done, "terminating": 1}, "terminating>0 is invalid for finished job"),
        (
            {"conditions": COMPLETE, **done, "uncountedTerminatedPods": {"failed": ["u"]}},
            "must be empty for finished job",
        ),
        ({"completionTime": ENDED}, "when there is no Complete=True condition"),
        (
            {"conditions": [{"type": "Failed", "status": "True"}], "startTime": BEGAN},
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            {"conditions": [*COMPLETE, {"type": "Failed", "status": "True"}], **done},
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            {"conditions": [*COMPLETE, {"type": "FailureTarget", "status": "True"}], **done},
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        ({"ready": 2, "active": 1}, "cannot set more ready pods than active"),
        ({"completedIndexes": "1"}, "when non-indexed completion mode"),
        ({"failedIndexes": "1"}, "when backoffLimitPerIndex is null"),
        ({"uncountedTerminatedPods": {"succeeded": ["u", ""], "failed": ["u"]}}, "Duplicate value"),
    ]
    for status, part in refusals:
        refused = await api.merge(path, {"status": status})
        assert (refused.code, part in refused.message) == (422, True), refused.message
    assert (await api.merge(path, {"status": {"conditions": COMPLETE, **done, "succeeded": 1}})).code == 200
    for status, part in (
        ({"conditions": [], "completionTime": None}, "cannot disable the terminal Complete=True condition"),
        ({"conditions": []}, "cannot disable the SuccessCriteriaMet=True condition"),
        ({"succeeded": 0}, "cannot decrease the succeeded counter"),
        ({"completionTime": "2024-01-01T00:02:00Z"}, "completionTime: Invalid value: "),
        ({"startTime": "2023-01-01T00:00:00Z"}, "field is immutable for unsuspended job once set"),
    ):
        assert part in (await api.merge(path, {"status": status})).message


@asking
async def test_a_bad_cron_job_is_refused(api: Api) -> None:
    template = {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"schedule": ""}, "spec.schedule: Required value"),
        ({"schedule": "CRON_TZ=UTC * * * * *"}, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        ({"schedule": "nonsense"}, '"nonsense": expected exactly 5 fields, found 1: [nonsense]'),
        ({"schedule": "61 * * * *"}, "end of range (61) above maximum (59): 61"),
        ({"timeZone": ""}, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'),
        ({"timeZone": "Nowhere/There"}, 'Invalid value: "Nowhere/There": unknown time zone Nowhere/There'),
        ({"timeZone": "../etc"}, "unknown time zone ../etc"),
        ({"timeZone": "local"}, "timeZone must be an explicit time zone"),
        ({"concurrencyPolicy": "Maybe"}, 'supported values: "Allow", "Forbid", "Replace"'),
        ({"successfulJobsHistoryLimit": -1}, "spec.successfulJobsHistoryLimit: Invalid value: -1"),
        ({"jobTemplate": {"spec": {**template["spec"], "selector": SELECTOR}}}, "`selector` will be auto-generated"),
        ({"jobTemplate": {"spec": {**template["spec"], "manualSelector": True}}}, 'supported values: "nil", "false"'),
    ]
    for spec, part in cases:
        sent = {"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec}}
        refused = await api.post(f"{BATCH}/cronjobs", sent)
        assert (refused.code, part in refused.message) == (422, True), refused.message
    name = "n" * 53
    sent = {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": template}}
    assert "must be no more than 52 characters" in (await api.post(f"{BATCH}/cronjobs", sent)).message
    sent["metadata"]["name"] = "fine"
    assert (await api.post(f"{BATCH}/cronjobs", sent)).code == 201
    assert (await api.merge(f"{BATCH}/cronjobs/fine", {"spec": {"suspend": True}})).body["metadata"]["generation"] == 2
