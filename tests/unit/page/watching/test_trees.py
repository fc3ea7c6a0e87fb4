"""Owner trees and readiness."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.page.objects import entry, instance

from ostinato.api.selectors import labels
from ostinato.page.facts import Tree
from ostinato.page.watching.readiness import readiness
from ostinato.page.watching.trees import Filter, Owners, Trees
from ostinato.world import World


def owned(kind: str, name: str, owner: str, **others: Any) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner, "controller": True}
    return instance(kind, name, 1, metadata={"ownerReferences": [reference], **others})


OBJECTS = [
    instance("Deployment", "web", 1),
    owned("ReplicaSet", "web-1", "uid-Deployment-web"),
    owned("Pod", "web-1-a", "uid-ReplicaSet-web-1", labels={"app": "web"}),
    owned("Pod", "web-1-b", "uid-ReplicaSet-web-1", deletionTimestamp="2026-01-01T00:00:00Z"),
    instance("ConfigMap", "settings", 1),
    owned("ConfigMap", "orphan", "gone"),
]


def names(trees: list[Tree]) -> Any:
    return {each.ref.name: names(each.children) for each in trees}


def shown(wanted: Filter) -> Any:
    async def build() -> Any:
        owners = Owners(map(entry, OBJECTS))
        trees = Trees(owners, wanted, World.real().clock)
        roots, total = owners.select(wanted)
        return names([await trees.build(each) for each in roots]), total

    return asyncio.run(build())


WEB = {"web": {"web-1": {"web-1-a": {}, "web-1-b": {}}}}


@pytest.mark.parametrize(
    ("wanted", "found", "total"),
    [
        (Filter(), {**WEB, "orphan": {}, "settings": {}}, 6),
        (Filter(kind="Pod"), WEB, 2),
        (Filter(kind="ReplicaSet"), WEB, 1),
        (Filter(labels=labels.parse("app=web")), {"web": {"web-1": {"web-1-a": {}}}}, 1),
        (Filter(text="1-b"), {"web": {"web-1": {"web-1-b": {}}}}, 1),
        (Filter(deleting=True), {"web": {"web-1": {"web-1-b": {}}}}, 1),
        (Filter(root="uid-Pod-web-1-a"), WEB, 1),
        (Filter(namespace="other"), {}, 0),
        (Filter(kind="Secret"), {}, 0),
    ],
)
def test_filters_keep_the_owners_of_what_matches(wanted: Filter, found: Any, total: int) -> None:
    assert shown(wanted) == (found, total)


def test_objects_that_own_each_other_end() -> None:
    first = instance("A", "a", 1, metadata={"ownerReferences": [{"uid": "uid-B-b"}]})
    second = instance("B", "b", 1, metadata={"ownerReferences": [{"uid": "uid-A-a"}]})
    owners = Owners([entry(first), entry(second)])
    assert owners.below("uid-A-a") == {"uid-A-a", "uid-B-b"}
    assert owners.roots == []
    owners.topmost(entry(first))


READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "Waiting", "message": "for a volume"}
FAILED = {"type": "Failed", "status": "True", "reason": "Late"}
WAITING, CRASHES, SOME = "Waiting: for a volume", "main: CrashLoopBackOff back-off 10s", "1 of 3 ready"
BACK_OFF = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}


@pytest.mark.parametrize(
    ("found", "state", "message"),
    [
        (instance("ConfigMap", "a", 1), "ready", ""),
        (instance("Pod", "a", 1, status={"phase": "Running", "conditions": [READY]}), "ready", "Running"),
        (
            instance("Pod", "a", 1, status={"phase": "Pending", "conditions": [NOT_READY]}),
            "progressing",
            "Waiting: for a volume",
        ),
        (
            instance("Pod", "a", 1, status={"containerStatuses": [BACK_OFF]}),
            "failed",
            "main: CrashLoopBackOff back-off 10s",
        ),
        (instance("Pod", "a", 1, status={"phase": "Succeeded"}), "ready", "completed"),
        (
            instance("Deployment", "a", 1, spec={"replicas": 3}, status={"readyReplicas": 1}),
            "progressing",
            "1 of 3 ready",
        ),
        (instance("Deployment", "a", 1, spec={"replicas": 0}, status={}), "ready", "0 of 0 ready"),
        (
            instance("Deployment", "a", 1, metadata={"generation": 2}, status={"observedGeneration": 1}),
            "progressing",
            "generation 2 is not observed yet (last: 1)",
        ),
        (
            instance("Job", "a", 1, status={"conditions": [{"type": "Failed", "status": "True", "reason": "Late"}]}),
            "failed",
            "Late",
        ),
        (instance("Widget", "a", 1, status={"conditions": [NOT_READY]}), "progressing", "Waiting: for a volume"),
        (
            instance("Widget", "a", 1, metadata={"deletionTimestamp": "x", "finalizers": ["f"]}),
            "progressing",
            "being deleted; finalizers: f",
        ),
        ({"kind": "Odd", "apiVersion": "v1", "metadata": None, "status": ["?"], "spec": 3}, "ready", ""),
    ],
)
def test_readiness(found: dict[str, Any], state: str, message: str) -> None:
    assert tuple(readiness(found)) == (state, message)
