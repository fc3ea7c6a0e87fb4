"""delete: preconditions, propagation policies, finalizers, grace periods, collections, and namespaces."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.stage.api import Api, asking

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def made(api: Api, name: str = "a", **metadata: Any) -> dict[str, Any]:
    answer = await api.post(MAPS, {"metadata": {"name": name, **metadata}})
    assert answer.code == 201
    return answer.body


@asking
async def test_an_immediate_deletion_returns_a_status_with_the_uid(api: Api) -> None:
    old = await made(api)
    gone = await api.delete(f"{MAPS}/a")
    details = {"name": "a", "kind": "configmaps", "uid": old["metadata"]["uid"]}
    assert gone.body == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    assert (await api.delete(f"{MAPS}/a")).code == 404


@pytest.mark.parametrize(
    ("present", "options", "left"),
    [
        ([], {}, None),
        ([], {"propagationPolicy": "Background"}, None),
        ([], {"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ([], {"propagationPolicy": "Orphan"}, ["orphan"]),
        ([], {"orphanDependents": True}, ["orphan"]),
        ([], {"orphanDependents": False}, None),
        (["x.y/z"], {}, ["x.y/z"]),
        (["x.y/z"], {"propagationPolicy": "Orphan"}, ["x.y/z", "orphan"]),
        (["orphan"], {}, ["orphan"]),
        (["orphan"], {"propagationPolicy": "Background"}, None),
        (["orphan", "x.y/z"], {"propagationPolicy": "Foreground"}, ["x.y/z", "foregroundDeletion"]),
        (["foregroundDeletion"], {}, ["foregroundDeletion"]),
    ],
)
def test_the_propagation_policy_is_a_finalizer(
    present: list[str], options: dict[str, Any], left: list[str] | None
) -> None:
    @asking
    async def talk(api: Api) -> None:
        await made(api, finalizers=present)
        answer = await api.ask("DELETE", f"{MAPS}/a", options)
        if left is None:
            assert answer.body["kind"] == "Status"
            return
        assert answer.body["metadata"]["finalizers"] == left
        assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0

    talk()


@asking
async def test_an_object_that_stays_though_its_dependents_go_is_accepted(api: Api) -> None:
    await made(api, finalizers=["x.y/z"])
    assert (await api.ask("DELETE", f"{MAPS}/a", {"orphanDependents": False})).code == 202


@asking
async def test_a_dry_run_deletes_nothing(api: Api) -> None:
    await made(api)
    assert (await api.delete(f"{MAPS}/a?dryRun=All")).body["kind"] == "Status"
    kept = await api.delete(f"{MAPS}/a?dryRun=All&propagationPolicy=Orphan")
    assert kept.body["metadata"]["finalizers"] == ["orphan"]
    assert "finalizers" not in (await api.get(f"{MAPS}/a")).body["metadata"]


@asking
async def test_preconditions_that_do_not_hold_are_conflicts(api: Api) -> None:
    await made(api)
    for preconditions in ({"uid": "other"}, {"resourceVersion": "1"}):
        refused = await api.ask("DELETE", f"{MAPS}/a", {"preconditions": preconditions})
        assert refused.code == 409
        assert "in the precondition" in refused.message


async def running(api: Api) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    assert (await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).code == 201


@asking
async def test_a_pod_first_gets_a_deletion_timestamp(api: Api) -> None:
    await running(api)
    marked = (await api.delete(f"{PODS}/p")).body["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 30
    assert marked["generation"] == 2
    same = await api.delete(f"{PODS}/p?gracePeriodSeconds=60")
    assert same.body["metadata"] == marked
    sooner = (await api.delete(f"{PODS}/p?gracePeriodSeconds=5")).body["metadata"]
    assert sooner["deletionGracePeriodSeconds"] == 5
    assert sooner["deletionTimestamp"] < marked["deletionTimestamp"]
    assert (await api.delete(f"{PODS}/p?gracePeriodSeconds=0")).body["kind"] == "Pod"
    assert (await api.get(f"{PODS}/p")).code == 404


@asking
async def test_a_pod_that_another_client_removes_first_is_deleted(api: Api) -> None:
    await running(api)
    now = f"{PODS}/p?gracePeriodSeconds=0"
    answers = await asyncio.gather(api.delete(now), api.delete(now))
    assert [answer.code for answer in answers] == [200, 200]
    assert (await api.get(f"{PODS}/p")).code == 404


@asking
async def test_grace_that_is_over_is_not_moved_into_the_past(api: Api) -> None:
    await running(api)
    await api.delete(f"{PODS}/p")
    await api.server.world.clock.sleep(20)
    late = (await api.delete(f"{PODS}/p?gracePeriodSeconds=10")).body["metadata"]
    assert late["deletionGracePeriodSeconds"] == 1
    now = api.server.world.clock.now().isoformat()[:19]
    assert late["deletionTimestamp"][:19] == now


@asking
async def test_a_negative_grace_period_is_a_second(api: Api) -> None:
    await running(api)
    assert (await api.delete(f"{PODS}/p?gracePeriodSeconds=-5")).body["metadata"]["deletionGracePeriodSeconds"] == 1


@asking
async def test_a_collection_is_deleted_by_selector_and_returned_as_a_list(api: Api) -> None:
    for name in "abc":
        await made(api, name, labels={"x": "y" if name != "c" else "z"})
    gone = await api.delete(f"{MAPS}?labelSelector=x%3Dy")
    assert [item["metadata"]["name"] for item in gone.body["items"]] == ["a", "b"]
    left = await api.get(MAPS)
    assert [item["metadata"]["name"] for item in left.body["items"]] == ["c"]


@asking
async def test_a_collection_is_deleted_page_by_page_with_a_limit(api: Api) -> None:
    for name in "abc":
        await made(api, name)
    page = await api.delete(f"{MAPS}?limit=2")
    assert [item["metadata"]["name"] for item in page.body["items"]] == ["a", "b"]
    assert page.body["metadata"]["continue"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "Pod"}, 'no kind "Pod" is registered for version "meta.k8s.io/v1"'),
        ({"gracePeriodSeconds": "5"}, "json: cannot unmarshal string into Go struct field"),
        ([], "couldn't get version/kind; json parse error: json: cannot unmarshal array"),
    ],
)
def test_options_that_cannot_be_read_are_refused(body: Any, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await made(api)
        refused = await api.ask("DELETE", f"{MAPS}/a", body)
        assert refused.code == 400
        assert refused.message.startswith(message)

    talk()


# Namespaces


@asking
async def test_a_namespace_terminates_until_both_kinds_of_finalizers_are_gone(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    dying = await api.delete("/api/v1/namespaces/x?propagationPolicy=Orphan")
    assert dying.body["status"]["phase"] == "Terminating"
    assert dying.body["metadata"]["finalizers"] == ["orphan"]
    assert dying.body["spec"]["finalizers"] == ["kubernetes"]
    refused = await api.post("/api/v1/namespaces/x/configmaps", {"metadata": {"generateName": "m-"}})
    assert refused.code == 403
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api.put("/api/v1/namespaces/x/finalize", {"metadata": {"name": "x", "finalizers": ["orphan"]}, "spec": {}})
    assert (await api.get("/api/v1/namespaces/x")).code == 200
    assert (await api.merge("/api/v1/namespaces/x", {"metadata": {"finalizers": None}})).code == 200
    assert (await api.get("/api/v1/namespaces/x")).code == 404


@asking
async def test_a_namespace_without_finalizers_is_removed_by_the_second_delete(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    await api.put("/api/v1/namespaces/x/finalize", {"metadata": {"name": "x"}, "spec": {}})
    assert (await api.delete("/api/v1/namespaces/x")).body["status"]["phase"] == "Terminating"
    assert (await api.delete("/api/v1/namespaces/x")).code == 200
    assert (await api.get("/api/v1/namespaces/x")).code == 404


@asking
async def test_finalizers_of_a_namespace_change_by_finalize_alone(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    same = await api.put("/api/v1/namespaces/x", {"metadata": {"name": "x"}, "spec": {"finalizers": []}})
    assert same.body["spec"]["finalizers"] == ["kubernetes"]
    bad = await api.put("/api/v1/namespaces/x/finalize", {"metadata": {"name": "x"}, "spec": {"finalizers": ["p"]}})
    assert bad.body["details"]["causes"][0]["field"] == "spec.finalizers[0]"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_first_namespaces_stay(name: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        refused = await api.delete(f"/api/v1/namespaces/{name}")
        assert (refused.code, refused.body["reason"]) == (403, "Forbidden")

    talk()


@asking
async def test_preconditions_of_a_namespace_have_their_own_messages(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
    for preconditions in ({"uid": "other"}, {"resourceVersion": "1"}):
        refused = await api.ask("DELETE", "/api/v1/namespaces/x", {"preconditions": preconditions})
        assert "Precondition failed: " in refused.message


@asking
async def test_the_phase_of_a_namespace_follows_its_deletion(api: Api) -> None:
    made = (await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})).body
    bad = await api.put("/api/v1/namespaces/x/status", {**made, "status": {"phase": "Terminating"}})
    assert bad.body["details"]["causes"][0]["field"] == "status.Phase"
    dying = (await api.delete("/api/v1/namespaces/x")).body
    bad = await api.put("/api/v1/namespaces/x/status", {**dying, "status": {"phase": "Active"}})
    assert "may only be 'Terminating'" in bad.message
