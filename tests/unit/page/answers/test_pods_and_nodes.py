"""Nodes with what their Pods take, and the scheduler's verdicts, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.unit.page.observed import Observed, observed, query

from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.page.answers.node_facts import NodeFact
from ostinato.plane import scheduler


def node(name: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str, node_name: str | None = None) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "2Gi"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], "nodeName": node_name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def create_node(page: Observed, name: str, cpu: str) -> None:
    """Create a node that is ready; admission has tainted it."""
    await page.client.create(node(name, cpu))
    await page.client.patch(Node, name, MergePatch({"spec": {"taints": None}}))


async def create_account(page: Observed) -> None:
    await page.client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    )


def test_nodes_have_the_shares_that_running_pods_request() -> None:
    async def test(page: Observed) -> None:
        await create_account(page)
        await create_node(page, "node-1", "4")
        await page.client.create(pod("a", "1", "node-1"))
        await page.client.create(pod("b", "2", "node-1"))
        await page.client.create(pod("waiting", "1"))
        await page.passes(1)
        full = NodeFact(name="node-1", ready=True, pods=2, capacity=10, cpu=0.75, memory=0.5, taints=0)
        assert page.nodes.nodes() == [full]

        await page.client.patch(Pod, "b", MergePatch({"status": {"phase": "Succeeded"}}), subresource="status")
        await page.client.patch(
            Node, "node-1", MergePatch({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
        )
        ended = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        await page.client.patch(Node, "node-1", MergePatch(ended), subresource="status")
        await page.passes(1)
        assert page.nodes.nodes() == [
            NodeFact(name="node-1", ready=False, pods=1, capacity=10, cpu=0.25, memory=0.25, taints=1)
        ]

    observed(test)


def test_a_pending_pod_has_the_verdict_of_each_node_and_then_where_it_was_placed() -> None:
    async def test(page: Observed) -> None:
        await create_account(page)
        await create_node(page, "small", "1")
        await page.client.create(pod("big", "2"))
        await page.passes(3)
        found = page.pods.scheduling(query(namespace="default", name="big"))
        assert found.node is None
        attempt = found.attempts[0]
        assert attempt.result == "unschedulable"
        assert attempt.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert [(each.node, each.plugin, each.reason) for each in attempt.nodes] == [
            ("small", "NodeResourcesFit", "Insufficient cpu")
        ]
        assert [(each.reason, each.n) for each in attempt.counts] == [("Insufficient cpu", 1)]

        await create_node(page, "large", "8")
        await page.passes(30)
        found = page.pods.scheduling(query(namespace="default", name="big"))
        assert found.node == "large"
        assert found.attempts[0].result == "scheduled"
        changes = page.history.changes.of_object(found.pod)
        assert [each.controller for each in changes if each.binds()] == ["scheduler"]

    observed(test, scheduler.add_to)


def test_usage_of_a_pod_that_no_agent_measures_says_why() -> None:
    async def test(page: Observed) -> None:
        found = await page.pods.usage(query(namespace="default", name="nobody"))
        assert found.samples == []
        assert found.error is not None
        assert found.error.startswith("no usage: ")

    observed(test)
