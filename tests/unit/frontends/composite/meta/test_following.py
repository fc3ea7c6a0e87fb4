"""MetaControllers with hooks over real HTTP: children, revisions, finalize, customize, decorators, errors."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from tests.unit.frontends.composite.meta.stage import (
    PARENTS,
    HookServer,
    Json,
    cat,
    child,
    composite_of,
    config_map,
    hooks,
)

from ostinato.client import MergePatch, Unstructured
from ostinato.frontends.composite.meta.following import MetaControllers
from ostinato.kinds.core_v1 import ConfigMap, Pod, Secret
from ostinato.testing import Cluster

CAT = Unstructured.of("example.dev/v1", "Cat")
COMPOSITE = Unstructured.of("metacontroller.k8s.io/v1alpha1", "CompositeController")
REVISION = Unstructured.of("metacontroller.k8s.io/v1alpha1", "ControllerRevision")


async def started(served: HookServer, cluster: Cluster, *definitions: Json) -> Any:
    """A manager that runs these definitions, or those of the cluster."""
    await cluster.install(PARENTS)
    manager = cluster.manager(rbac=False)
    served.managers.append(manager)
    await manager.start(MetaControllers(definitions))
    return manager


def copies(document: Json) -> Json:
    parent = document["parent"]
    names = [f"{parent['metadata']['name']}-{number}" for number in range(parent["spec"]["count"])]
    value = parent["spec"]["template"]["value"]
    return {
        "children": [config_map(parent, name, value=value) for name in names],
        "status": {"copies": len(document["children"]["ConfigMap.v1"])},
    }


async def test_children_follow_the_answer_and_the_status_is_replaced(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers["/sync"] = copies
        await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync")}))
        client, eventually = cluster.client, cluster.eventually
        await client.create(cat(count=2))
        await eventually(CAT, "tom", lambda each: each["status"] == {"copies": 2, "observedGeneration": 1})
        made = await client.get(ConfigMap, "tom-0")
        [owner] = made.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == ("Cat", "tom", True, True)
        await client.patch(CAT, "tom", MergePatch({"spec": {"count": 1, "template": {"value": "2"}}}))
        await eventually(ConfigMap, "tom-1", gone=True)
        await eventually(ConfigMap, "tom-0", lambda each: each.data == {"value": "2"})
        await client.delete(ConfigMap, "tom-0")
        await eventually(ConfigMap, "tom-0")
        first = served.of("/sync")[0]
        assert set(first) == {"controller", "parent", "children", "related", "finalizing"}
        assert first["controller"]["metadata"]["name"] == "cats"
        assert (first["children"], first["related"], first["finalizing"]) == ({"ConfigMap.v1": {}}, {}, False)
        await eventually(lambda: set(served.of("/sync")[-1]["children"]["ConfigMap.v1"]) == {"tom-0"})


async def test_v2_names_children_with_their_namespace(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers["/sync"] = copies
        await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync", "v2")}))
        await cluster.client.create(cat())
        await cluster.eventually(CAT, "tom", lambda each: each["status"]["copies"] == 1)
        assert set(served.of("/sync")[-1]["children"]["ConfigMap.v1"]) == {f"{cluster.namespace}/tom-0"}


async def test_orphans_that_match_are_adopted_and_children_that_do_not_are_released(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers["/sync"] = copies
        await cluster.client.create(config_map(cat(), "tom-0", value="1", other="kept"))
        await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync")}))
        await cluster.client.create(cat())
        await cluster.eventually(CAT, "tom", lambda each: each["status"]["copies"] == 1)
        adopted = await cluster.client.get(ConfigMap, "tom-0")
        assert adopted.data == {"value": "1", "other": "kept"}

        async def is_released() -> bool:  # a sync that began before the patch restores the label
            patch = MergePatch({"metadata": {"labels": {"cat": "felix"}}})
            return not (await cluster.client.patch(ConfigMap, "tom-0", patch)).metadata.owner_references

        await cluster.eventually(is_released)
        await cluster.events.expect("SyncError", regarding="tom", note="tom-0")  # it is in the way now
        served.fails = True


async def test_an_orphan_that_appears_later_is_adopted(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers["/sync"] = lambda document: {
            "children": list(document["children"]["ConfigMap.v1"].values()),
            "status": {"copies": len(document["children"]["ConfigMap.v1"])},
        }
        await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync")}))
        await cluster.client.create(cat())
        await cluster.eventually(CAT, "tom", lambda each: each["status"]["copies"] == 0)
        await cluster.client.create(config_map(cat(), "late"))
        await cluster.eventually(CAT, "tom", lambda each: each["status"]["copies"] == 1)
        assert (await cluster.client.get(ConfigMap, "late")).metadata.owner_references[0].name == "tom"


async def test_a_generated_selector_needs_none_in_the_parent(cluster: Cluster) -> None:
    def answer(document: Json) -> Json:
        made = config_map(document["parent"], "plain")
        del made["metadata"]["labels"]
        return {"children": [made]}

    async with hooks() as served:
        served.answers["/sync"] = answer
        await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync")}, generateSelector=True))
        made = await cluster.client.create(cat(selector=None))
        found = await cluster.eventually(ConfigMap, "plain")
        assert found.metadata.labels == {"controller-uid": made["metadata"]["uid"]}


async def test_existing_children_are_left_alone_by_default_and_recreated_on_request(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers["/sync"] = copies
        for_delete = composite_of("cats", {"sync": served.hook("/sync")}, [child("configmaps")])
        manager = await started(served, cluster, for_delete)
        client, eventually = cluster.client, cluster.eventually
        await client.create(cat())
        first = await eventually(ConfigMap, "tom-0")
        await client.patch(CAT, "tom", MergePatch({"spec": {"template": {"value": "2"}}}))
        await eventually(CAT, "tom", lambda each: each["status"]["observedGeneration"] == 2)
        assert (await client.get(ConfigMap, "tom-0")).data == {"value": "1"}
        await manager.end()
        recreating = composite_of("cats", {"sync": served.hook("/sync")}, [child("configmaps", method="Recreate")])
        await started(served, cluster, recreating)
        second = await eventually(ConfigMap, "tom-0", lambda each: each.data == {"value": "2"})
        assert second.metadata.uid != first.metadata.uid
        await client.patch(ConfigMap, "tom-0", MergePatch({"data": {"other": "field"}}))  # of somebody else
        await client.patch(CAT, "tom", MergePatch({"metadata": {"annotations": {"now": "1"}}}))
        seen = len(served.of("/sync"))
        await eventually(lambda: len(served.of("/sync")) > seen)
        assert (await client.get(ConfigMap, "tom-0")).metadata.uid == second.metadata.uid


def pods(document: Json) -> Json:
    parent = document["parent"]
    value, labels = parent["spec"]["template"]["value"], {"cat": parent["metadata"]["name"]}
    made = []
    for number in range(parent["spec"]["count"]):
        containers = [{"name": "main", "image": f"image:{value}"}]
        metadata = {"name": f"tom-{number}", "labels": labels}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}})
    return {"children": made, "status": {}}


def image(pod: Pod) -> str | None:
    assert pod.spec is not None
    return pod.spec.containers[0].image


async def set_ready(cluster: Cluster, name: str, status: str = "True") -> None:
    condition = {"type": "Ready", "status": status}
    await cluster.client.patch(Pod, name, MergePatch({"status": {"conditions": [condition]}}), subresource="status")


async def test_a_rolling_update_recreates_one_child_at_a_time_and_waits_for_its_condition(cluster: Cluster) -> None:
    """Like CatSet: the next Pod is replaced when the one before is Ready."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    rolling = [child("pods", method="RollingRecreate", statusChecks=ready)]
    async with hooks() as served:
        served.answers["/sync"] = pods
        history = {"revisionHistory": {"fieldPaths": ["spec.template"]}}
        definition = composite_of("cats", {"sync": served.hook("/sync")}, rolling, history)
        manager = await started(served, cluster, definition)
        client, eventually = cluster.client, cluster.eventually
        await client.create(cat(count=3))
        for number in range(3):
            await eventually(Pod, f"tom-{number}")
            await set_ready(cluster, f"tom-{number}")
        [first] = await eventually(lambda: client.list(REVISION))
        assert first["parentPatch"] == {"spec": {"template": cat()["spec"]["template"]}}
        assert first["children"] == [{"apiGroup": "", "kind": "Pod", "names": ["tom-0", "tom-1", "tom-2"]}]
        await client.patch(CAT, "tom", MergePatch({"spec": {"template": {"value": "2"}}}))
        await eventually(Pod, "tom-0", lambda each: image(each) == "image:2")
        await eventually(CAT, "tom", lambda each: "Pod tom-0 failed status check" in _updated(each)["message"])
        assert [image(await client.get(Pod, f"tom-{number}")) for number in (1, 2)] == ["image:1", "image:1"]
        assert len(await client.list(REVISION)) == 2
        await manager.end()  # killed in the middle: the revisions say where to continue
        await started(served, cluster, definition)
        for number in range(3):
            await eventually(Pod, f"tom-{number}", lambda each: image(each) == "image:2")
            await set_ready(cluster, f"tom-{number}")
        await eventually(CAT, "tom", lambda each: _updated(each)["reason"] == "OnLatestRevision")
        [last] = await eventually(lambda: _only(client.list(REVISION)))
        assert last["parentPatch"]["spec"]["template"]["value"] == "2"


async def _only(listing: Any) -> Any:
    found = await listing
    return found if len(found) == 1 else None


def _updated(parent: Json) -> Json:
    found = [each for each in parent["status"]["conditions"] if each["type"] == "Updated"]
    return dict(found[0])


async def test_finalize_is_called_until_it_is_done_and_may_change_children(cluster: Cluster) -> None:
    def finalize(document: Json) -> Json:
        left = document["children"]["ConfigMap.v1"]
        kept = [each for name, each in left.items() if name != max(left)]
        return {"children": kept, "finalized": not left, "status": {"left": len(left)}}

    async with hooks() as served:
        served.answers |= {"/sync": copies, "/finalize": finalize}
        given = {"sync": served.hook("/sync"), "finalize": served.hook("/finalize")}
        await started(served, cluster, composite_of("cats", given))
        await cluster.client.create(cat(count=2))
        found = await cluster.eventually(CAT, "tom", lambda each: each["status"]["copies"] == 2)
        assert found["metadata"]["finalizers"] == ["metacontroller.io/compositecontroller-cats"]
        await cluster.client.delete(CAT, "tom")
        await cluster.eventually(CAT, "tom", gone=True)
        asked = served.of("/finalize")
        assert all(each["finalizing"] for each in asked)
        assert [len(each["children"]["ConfigMap.v1"]) for each in asked][-1] == 0
        assert not await cluster.client.list(ConfigMap, labels="cat")


async def test_a_parent_that_is_not_selected_any_more_is_finalized(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers |= {"/sync": copies, "/finalize": {"children": [], "finalized": True}}
        given = {"sync": served.hook("/sync"), "finalize": served.hook("/finalize", "v2")}
        definition = composite_of("cats", given, parent={"labelSelector": {"matchLabels": {"on": "yes"}}})
        await started(served, cluster, definition)
        plain, selected = cat("plain"), cat()
        selected["metadata"]["labels"] = {"on": "yes"}
        await cluster.client.create(plain)
        await cluster.client.create(selected)
        await cluster.eventually(ConfigMap, "tom-0")
        await cluster.client.patch(CAT, "tom", MergePatch({"metadata": {"labels": {"on": None}}}))
        await cluster.eventually(ConfigMap, "tom-0", gone=True)
        await cluster.eventually(CAT, "tom", lambda each: not each["metadata"].get("finalizers"))
        assert {each["parent"]["metadata"]["name"] for each in served.of("/sync")} == {"tom"}


async def test_customize_selects_related_objects_whose_changes_call_the_hook(cluster: Cluster) -> None:
    """Like global-configmap: the hook copies what it finds elsewhere."""

    def sync(document: Json) -> Json:
        related = document["related"]["Secret.v1"]
        return {"children": [config_map(document["parent"], "copy", names=",".join(sorted(related)))], "status": {}}

    rules = [{"apiVersion": "v1", "resource": "secrets", "labelSelector": {"matchLabels": {"copied": "yes"}}}]
    async with hooks() as served:
        served.answers |= {"/sync": sync, "/customize": {"relatedResources": rules}}
        given = {"sync": served.hook("/sync", "v2"), "customize": served.hook("/customize", "v2")}
        await started(served, cluster, composite_of("cats", given))
        client, eventually = cluster.client, cluster.eventually
        await client.create(cat())
        await eventually(ConfigMap, "copy", lambda each: each.data == {"names": ""})
        for namespace, name in (("kube-system", "far"), ("", "near")):
            metadata = {"name": name, "labels": {"copied": "yes"}} | ({"namespace": namespace} if namespace else {})
            await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        both = f"{cluster.namespace}/near,kube-system/far"
        await eventually(ConfigMap, "copy", lambda each: each.data == {"names": both})
        await client.patch(Secret, "near", MergePatch({"metadata": {"labels": None}}))
        await eventually(ConfigMap, "copy", lambda each: each.data == {"names": "kube-system/far"})
        assert len(served.of("/customize")) == 1  # once for each generation
        assert set(served.of("/customize")[0]) == {"controller", "parent"}


async def test_a_namespaced_parent_of_v1_hooks_sees_its_own_namespace(cluster: Cluster) -> None:
    rules = [{"apiVersion": "v1", "resource": "secrets", "namespace": "kube-system"}]
    async with hooks() as served:
        served.answers |= {"/sync": copies, "/customize": {"relatedResources": rules}}
        given = {"sync": served.hook("/sync"), "customize": served.hook("/customize")}
        served.fails = True
        await started(served, cluster, composite_of("cats", given))
        await cluster.client.create(cat())
        await cluster.events.expect("SyncError", regarding="tom", note="use hook version v2")
        assert not served.of("/sync")


async def test_a_busy_hook_is_called_again_after_its_delay_without_an_event(cluster: Cluster) -> None:
    def busy(document: Json) -> Any:
        if len(served.of("/sync")) < 3:
            return web.Response(status=429, headers={"Retry-After": "0"})
        return copies(document)

    async with hooks() as served:
        served.answers["/sync"] = busy
        await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync")}))
        await cluster.client.create(cat())
        await cluster.eventually(ConfigMap, "tom-0")
        assert not await cluster.events.list("SyncError")


async def test_bad_answers_are_events_and_change_nothing(cluster: Cluster) -> None:
    answers: list[Any] = [
        web.Response(status=500, text="no way"),
        web.Response(text="<html>"),
        {"children": [{"kind": "ConfigMap", "metadata": {"name": "x"}}]},
        {"children": "none"},
        {"children": [], "chidlren": []},
        {"children": [{**config_map(cat(), "stray"), "metadata": {"name": "stray"}}]},
    ]
    notes = ["status 500: no way", "not JSON", "apiVersion is missing", "Expected `array", "'chidlren'", "orphaned"]

    async with hooks() as served:
        served.answers["/sync"] = copies
        manager = await started(served, cluster, composite_of("cats", {"sync": served.hook("/sync", "v2")}))
        await cluster.client.create(cat())
        await cluster.eventually(ConfigMap, "tom-0")
        for answer, note in zip(answers, notes, strict=True):
            text = answer.body if isinstance(answer, web.Response) else None
            served.answers["/sync"] = (
                answer
                if text is None
                else lambda _document, status=answer.status, text=text: web.Response(status=status, body=text)
            )
            await cluster.client.patch(CAT, "tom", MergePatch({"metadata": {"annotations": {"try": note}}}))
            await cluster.eventually(lambda note=note: any(note in str(each.error) for each in manager.errors))
        assert await cluster.events.expect("SyncError", regarding="tom")
        served.fails = True
        assert await cluster.client.get(ConfigMap, "tom-0")
        served.answers["/sync"] = {"children": [], "status": None}
        await cluster.client.patch(CAT, "tom", MergePatch({"metadata": {"annotations": {"try": "good"}}}))
        await cluster.eventually(ConfigMap, "tom-0", gone=True)


async def test_definitions_of_the_cluster_are_followed(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers |= {"/sync": copies, "/other": {"children": [], "status": {"other": True}}}
        meta = MetaControllers(selector="team=a")
        await cluster.install(PARENTS)
        served.managers.append(cluster.manager(rbac=False))
        await served.managers[0].start(meta)
        client, eventually = cluster.client, cluster.eventually
        await client.create(cat())
        definition = composite_of("cats", {"sync": served.hook("/sync")})
        await client.create({**composite_of("unselected", {"sync": served.hook("/other")})})
        definition["metadata"]["labels"] = {"team": "a"}
        await client.create(definition)
        await eventually(ConfigMap, "tom-0")
        assert meta.running == ("composite.cats",)
        other = {"spec": {"hooks": {"sync": served.hook("/other")}}}
        await client.patch(COMPOSITE, "cats", MergePatch(other))
        await eventually(ConfigMap, "tom-0", gone=True)
        await client.delete(COMPOSITE, "cats")
        await eventually(lambda: meta.running == ())
        await client.create(cat("felix"))
        assert not served.of("/sync")[-1:] or served.of("/sync")[-1]["parent"]["metadata"]["name"] == "tom"


async def test_a_definition_that_cannot_run_does_not_stop_the_others(cluster: Cluster) -> None:
    async with hooks() as served:
        served.answers["/sync"] = copies
        later = composite_of("later", {"sync": served.hook("/sync")}, [child("dogs", "example.dev/v1")])
        await started(served, cluster, later, composite_of("cats", {"sync": served.hook("/sync")}))
        await cluster.client.create(cat())
        await cluster.eventually(ConfigMap, "tom-0")


def services(document: Json) -> Json:
    target = document["object"]
    name = target["metadata"]["name"]
    attached = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-extra"}, "data": {"of": name}}
    return {"attachments": [attached], "labels": {"decorated": "yes", "former": None}, "annotations": {"by": "hook"}}


def decorator_of(name: str, hooks: Json, **resource: Any) -> Json:
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "DecoratorController",
        "metadata": {"name": name},
        "spec": {
            "resources": [{"apiVersion": "v1", "resource": "secrets", **resource}],
            "attachments": [child("configmaps", method="InPlace")],
            "hooks": hooks,
        },
    }


def secret(name: str, **annotations: str) -> Json:
    metadata = {"name": name, "annotations": annotations, "labels": {"former": "x"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def test_a_decorator_attaches_objects_and_cleans_up_when_an_object_opts_out(cluster: Cluster) -> None:
    """Like service-per-pod, with its finalize hook."""
    selector = {"annotationSelector": {"matchExpressions": [{"key": "on", "operator": "Exists"}]}}
    async with hooks() as served:
        served.answers |= {"/sync": services, "/finalize": lambda each: {"finalized": not _attached(each)}}
        given = {"sync": served.hook("/sync"), "finalize": served.hook("/finalize")}
        await started(served, cluster, decorator_of("extras", given, **selector))
        client, eventually = cluster.client, cluster.eventually
        await client.create(secret("plain"))
        await client.create(secret("one", on="yes"))
        made = await eventually(ConfigMap, "one-extra")
        assert made.metadata.annotations["metacontroller.k8s.io/decorator-controller"] == "extras"
        found = await eventually(Secret, "one", lambda each: each.metadata.labels == {"decorated": "yes"})
        assert found.metadata.annotations == {"on": "yes", "by": "hook"}
        assert found.metadata.finalizers == ["metacontroller.io/decoratorcontroller-extras"]
        await client.patch(Secret, "one", MergePatch({"metadata": {"annotations": {"on": None}}}))
        await eventually(ConfigMap, "one-extra", gone=True)
        await eventually(Secret, "one", lambda each: not each.metadata.finalizers)
        await client.patch(Secret, "one", MergePatch({"metadata": {"annotations": {"on": "again"}}}))
        await eventually(ConfigMap, "one-extra")
        await client.delete(Secret, "one")
        await eventually(Secret, "one", gone=True)
        assert {each["object"]["metadata"]["name"] for each in served.of("/sync")} == {"one"}
        assert set(served.of("/sync")[0]) == {"controller", "object", "attachments", "related", "finalizing"}


def _attached(document: Json) -> Json:
    return dict(document["attachments"]["ConfigMap.v1"])


async def test_two_decorators_of_one_object_leave_each_others_attachments_alone(cluster: Cluster) -> None:
    def second(document: Json) -> Json:
        metadata = {"name": f"{document['object']['metadata']['name']}-second"}
        return {"attachments": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}]}

    async with hooks() as served:
        served.answers |= {"/sync": services, "/second": second}
        first = decorator_of("first", {"sync": served.hook("/sync")}, labelSelector={"matchLabels": {"former": "x"}})
        await started(served, cluster, first, decorator_of("second", {"sync": served.hook("/second")}))
        await cluster.client.create(secret("one"))
        await cluster.eventually(ConfigMap, "one-extra")
        await cluster.eventually(ConfigMap, "one-second")
        await cluster.client.patch(Secret, "one", MergePatch({"data": {"a": "MQ=="}}))
        await cluster.eventually(lambda: [each for each in served.of("/second") if "data" in each["object"]])
        assert await cluster.client.get(ConfigMap, "one-extra")
