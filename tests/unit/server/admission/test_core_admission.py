"""What happens between a Pod's decoding and its storing, where time or others have a part in it."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.stage.api import Api, asking

_PODS = "/api/v1/namespaces/default/pods"
_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_CONTAINERS = [{"name": "c", "image": "i"}]


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": _CONTAINERS, **spec}}


@asking
async def test_a_pod_waits_a_moment_for_the_account_of_its_namespace(api: Api) -> None:
    clock = api.server.world.clock

    async def make_account() -> None:
        await clock.sleep(0.8)
        await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})

    made, _ = await asyncio.gather(api.post(_PODS, _pod("a")), make_account())
    assert (made.code, made.body["spec"]["serviceAccountName"]) == (201, "default")
    assert 0.8 <= clock.monotonic() < 2


@asking
async def test_a_pod_without_an_account_is_refused_in_the_end(api: Api) -> None:
    refused = await api.post(_PODS, _pod("a"))
    assert (refused.code, refused.message) == (
        403,
        'pods "a" is forbidden: error looking up service account default/default: serviceaccount "default" not found',
    )


@asking
async def test_an_existing_token_volume_is_mounted(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    made = await api.post(_PODS, _pod("a", volumes=[{"name": "kube-api-access-mine", "emptyDir": {}}]))
    assert [volume["name"] for volume in made.body["spec"]["volumes"]] == ["kube-api-access-mine"]
    assert made.body["spec"]["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-mine"


@asking
async def test_pods_that_are_created_at_once_do_not_overrun_a_quota(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    quotas = "/api/v1/namespaces/default/resourcequotas"
    await api.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}})
    await api.merge(f"{quotas}/q/status", {"status": {"hard": {"pods": "5"}, "used": {"pods": "0"}}})
    answers = await asyncio.gather(*(api.post(_PODS, _pod(f"p-{i}")) for i in range(12)))
    assert sorted(answer.code for answer in answers) == [201] * 5 + [403] * 7
    assert (await api.get(f"{quotas}/q")).body["status"]["used"] == {"pods": "5"}


@asking
async def test_a_pod_is_bound_once_however_many_try(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    await api.post(_PODS, _pod("a"))
    bindings = ({"metadata": {"name": "a"}, "target": {"name": f"node-{i}"}} for i in range(8))
    answers = await asyncio.gather(*(api.post(f"{_PODS}/a/binding", binding) for binding in bindings))
    assert sorted(answer.code for answer in answers) == [201] + [409] * 7
    won = next(i for i, answer in enumerate(answers) if answer.code == 201)
    assert (await api.get(f"{_PODS}/a")).body["spec"]["nodeName"] == f"node-{won}"


@asking
async def test_evictions_at_once_take_no_more_than_the_budget_allows(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    await api.post(budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 4, "selector": {}}})
    for i in range(6):
        await api.post(_PODS, _pod(f"p-{i}", nodeName="n"))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await api.merge(f"{_PODS}/p-{i}/status", {"status": ready})
    status = {"observedGeneration": 1, "disruptionsAllowed": 2, "desiredHealthy": 4, "currentHealthy": 6}
    await api.merge(f"{budgets}/b/status", {"status": {**status, "expectedPods": 6}})
    answers = await asyncio.gather(
        *(api.post(f"{_PODS}/p-{i}/eviction", {"metadata": {"name": f"p-{i}"}}) for i in range(6))
    )
    assert sorted(answer.code for answer in answers) == [201] * 2 + [429] * 4
    left = (await api.get(f"{budgets}/b")).body["status"]
    assert (left["disruptionsAllowed"], len(left["disruptedPods"])) == (0, 2)
    assert left["conditions"][0]["reason"] == "InsufficientPods"


@asking
async def test_a_budget_that_makes_no_sense_holds_its_pods(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    await api.post(budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}})
    await api.post(_PODS, _pod("a", nodeName="n"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.merge(f"{_PODS}/a/status", {"status": ready})
    many = {f"p-{i}": "2020-01-01T00:00:00Z" for i in range(2001)}
    status = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1}
    await api.merge(f"{budgets}/b/status", {"status": {**status, "disruptionsAllowed": 1, "disruptedPods": many}})
    refused = await api.post(f"{_PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert refused.code == 403
    assert refused.message.endswith("too many evictions not confirmed by PDB controller")


@asking
async def test_a_bound_pod_whose_node_answers_to_nobody_says_so(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    await api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    await api.post(_PODS, _pod("a", nodeName="n"))
    answer = await api.get(f"{_PODS}/a/log")
    assert (answer.code, answer.message) == (500, "Internal error occurred: no node agent answers for node n")
    for what in ("exec", "attach", "portforward"):
        answer = await api.get(f"{_PODS}/a/{what}")
        assert (answer.code, answer.message) == (400, "Upgrade request required")


@asking
async def test_the_newest_default_class_wins(api: Api) -> None:
    classes, marker = "/apis/storage.k8s.io/v1/storageclasses", "storageclass.kubernetes.io/is-default-class"
    for name in ("c", "b", "a"):
        await api.post(classes, {"metadata": {"name": name, "annotations": {marker: "true"}}, "provisioner": "x"})
        await api.server.world.clock.sleep(0.0 if name == "b" else 1.0)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = await api.post(
        "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "p"}, "spec": claim}
    )
    assert made.body["spec"]["storageClassName"] == "a"


@asking
async def test_a_second_default_priority_is_refused(api: Api) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await api.post(classes, {"metadata": {"name": "a"}, "value": 1, "globalDefault": True})
    refused = await api.post(classes, {"metadata": {"name": "b"}, "value": 2, "globalDefault": True})
    assert refused.message == (
        'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. '
        "Only one default can exist"
    )
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    made = await api.post(_PODS, _pod("p"))
    assert (made.body["spec"]["priority"], made.body["spec"]["priorityClassName"]) == (1, "a")


async def _quota(api: Api, name: str, **hard: str) -> str:
    quotas = "/api/v1/namespaces/default/resourcequotas"
    await api.post(quotas, {"metadata": {"name": name}, "spec": {"hard": hard}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    assert (await api.merge(f"{quotas}/{name}/status", {"status": status})).code == 200
    return f"{quotas}/{name}"


@asking
async def test_usage_rejected_by_one_quota_is_not_charged_to_another(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    counted, strict = await _quota(api, "a", pods="1"), await _quota(api, "b", cpu="1")
    asks = {"resources": {"requests": {"cpu": "2"}}}
    refused = await api.post(_PODS, _pod("p", containers=[{**_CONTAINERS[0], **asks}]))
    assert "exceeded quota: b, requested: cpu=2, used: cpu=0, limited: cpu=1" in refused.message
    assert (await api.get(counted)).body["status"]["used"] == {"pods": "0"}
    asks["resources"]["requests"]["cpu"] = "1"
    assert (await api.post(_PODS, _pod("p", containers=[{**_CONTAINERS[0], **asks}]))).code == 201
    assert [(await api.get(path)).body["status"]["used"] for path in (counted, strict)] == [{"pods": "1"}, {"cpu": "1"}]


@asking
async def test_growth_is_charged_and_the_server_owns_the_usage(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    quota = await _quota(api, "q", **{"requests.cpu": "1"})
    asks = {"resources": {"requests": {"cpu": "500m"}}}
    await api.post(_PODS, _pod("p", containers=[{**_CONTAINERS[0], **asks}]))
    for cpu, code, used in (("900m", 200, "900m"), ("2", 403, "900m"), ("100m", 200, "900m")):
        asks["resources"]["requests"]["cpu"] = cpu
        resize = {"spec": {"containers": [{**_CONTAINERS[0], **asks}]}}
        assert (await api.merge(f"{_PODS}/p/resize", resize)).code == code
        assert (await api.get(quota)).body["status"]["used"] == {"requests.cpu": used}
    owners = (await api.get(quota)).body["metadata"]["managedFields"]
    server = next(each for each in owners if each["manager"] == "kube-apiserver")
    assert server["fieldsV1"] == {"f:status": {"f:used": {"f:requests.cpu": {}}}}


@asking
async def test_a_pod_carries_the_zone_of_its_node(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    zone = "topology.kubernetes.io/zone"
    await api.post("/api/v1/nodes", {"metadata": {"name": "n", "labels": {zone: "z", "other": "o"}}})
    assert (await api.post(_PODS, _pod("a", nodeName="n"))).body["metadata"]["labels"] == {zone: "z"}
    await api.post(_PODS, _pod("b"))
    await api.post(f"{_PODS}/b/binding", {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n"}})
    assert (await api.get(f"{_PODS}/b")).body["metadata"]["labels"] == {zone: "z"}


@asking
async def test_of_tolerations_of_a_runtime_class_the_wider_ones_stay(api: Api) -> None:
    await api.post(_ACCOUNTS, {"metadata": {"name": "default"}})
    wide = {"key": "k", "operator": "Exists"}
    scheduling = {"tolerations": [wide]}
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    await api.post(classes, {"metadata": {"name": "r"}, "handler": "h", "scheduling": scheduling})
    narrow = [{"key": "k", "operator": "Exists", "effect": "NoExecute"}, {"key": "z", "operator": "Exists"}]
    made = await api.post(_PODS, _pod("p", runtimeClassName="r", tolerations=narrow))
    assert [each for each in made.body["spec"]["tolerations"] if each["key"] in "kz"] == [narrow[1], wide]


@asking
async def test_a_priority_class_of_the_system_is_not_deleted(api: Api) -> None:
    refused = await api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
    assert "this is a system priority class and cannot be deleted" in refused.message
