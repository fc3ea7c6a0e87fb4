from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage, on_stage
from tests.unit.plane.nodes import running

from ostinato.api.codec import from_dict, to_dict
from ostinato.api.time import Time
from ostinato.client import Unstructured
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.apps_v1 import ReplicaSet
from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from ostinato.kinds.core_v1 import Pod

CONTROLLER = "horizontal-pod-autoscaler-controller"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
POD_METRICS = Unstructured.of("metrics.k8s.io/v1beta1", "PodMetrics")


def autoscaler(name: str = "web", **spec: Any) -> HorizontalPodAutoscaler:
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    wanted = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": [CPU], **spec}
    return from_dict(HorizontalPodAutoscaler, {"metadata": {"name": name}, "spec": wanted})


async def serve_metrics(stage: Stage) -> None:
    """Serve a metrics API with usage that the test sets."""
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "metadata": {
            "name": "pods.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "metrics.k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "pods", "kind": "PodMetrics"},
            "versions": [version],
        },
    }
    await stage.client.create(from_dict(CustomResourceDefinition, definition))
    await stage.settle()


async def workload(stage: Stage, replicas: int) -> None:
    """A ReplicaSet and Pods that have run for an hour."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await stage.client.create(from_dict(ReplicaSet, {"metadata": {"name": "web"}, "spec": spec}))
    for number in range(replicas):
        pod = {"metadata": {"name": f"web-{number}", "labels": {"app": "web"}}, "spec": template["spec"]}
        created = await stage.client.create(from_dict(Pod, pod))
        await stage.set_pod_status(created, **running(stage))
    await stage.world.clock.sleep(3600)


async def use(stage: Stage, cpu: str, *names: str) -> None:
    """Set the current usage of the Pods."""
    for name in names or [pod.metadata.name for pod in await stage.client.list(Pod)]:
        now = str(Time.of(stage.world.clock.now()))
        metrics = {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "PodMetrics",
            "metadata": {"name": name, "labels": {"app": "web"}},
            "timestamp": now,
            "window": "30s",
            "containers": [{"name": "app", "usage": {"cpu": cpu, "memory": "10Mi"}}],
        }
        await stage.client.delete(POD_METRICS, name, missing_ok=True)
        await stage.client.create(metrics)


async def replicas(stage: Stage) -> int | None:
    return (await stage.client.get(ReplicaSet, "web")).spec.replicas


async def status(stage: Stage, name: str = "web") -> dict[str, Any]:
    return to_dict((await stage.client.get(HorizontalPodAutoscaler, name)).status)


async def conditions(stage: Stage, name: str = "web") -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in (await status(stage, name))["conditions"]}


async def message(stage: Stage, kind: str) -> str:
    return str(next(each["message"] for each in (await status(stage))["conditions"] if each["type"] == kind))


def test_a_workload_above_max_replicas_is_scaled_down_and_missing_metrics_are_reported() -> None:
    async def play(stage: Stage) -> None:
        await workload(stage, 5)
        await stage.client.create(autoscaler(maxReplicas=3))
        await stage.world.clock.sleep(10)
        assert await replicas(stage) == 5
        await stage.world.clock.sleep(6)
        assert await replicas(stage) == 3
        found = await status(stage)
        assert (found["currentReplicas"], found["desiredReplicas"], "lastScaleTime" in found) == (5, 3, True)
        assert await conditions(stage) == {"AbleToScale": ("True", "SucceededRescale")}
        await stage.world.clock.sleep(15)
        found = await status(stage)
        assert (found["currentReplicas"], found["desiredReplicas"]) == (3, 3)
        assert await conditions(stage) == {
            "AbleToScale": ("True", "SucceededGetScale"),
            "ScalingActive": ("False", "FailedGetResourceMetric"),
        }
        cause = (
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from "
            "resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
        why = f"the HPA was unable to compute the replica count: {cause}"
        assert await message(stage, "ScalingActive") == why
        first, *others = await stage.events("web")
        reason = "Current number of replicas above Spec.MaxReplicas"
        assert first == ("SuccessfulRescale", f"New size: 3; reason: {reason}")
        summary = (
            f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {cause}"
        )
        assert others == [("FailedGetResourceMetric", cause), ("FailedComputeMetricsReplicas", summary)]

    on_stage(play, CONTROLLER)


def test_too_few_replicas_are_scaled_up_to_min_replicas() -> None:
    async def play(stage: Stage) -> None:
        await workload(stage, 1)
        await stage.client.create(autoscaler(minReplicas=4))
        await stage.world.clock.sleep(20)
        assert await replicas(stage) == 4
        reason = "Current number of replicas below Spec.MinReplicas"
        assert (await stage.events("web"))[0] == ("SuccessfulRescale", f"New size: 4; reason: {reason}")

    on_stage(play, CONTROLLER)


def test_a_workload_scaled_to_zero_is_not_autoscaled() -> None:
    async def play(stage: Stage) -> None:
        await workload(stage, 0)
        await stage.client.create(autoscaler())
        await stage.world.clock.sleep(20)
        assert await replicas(stage) == 0
        assert (await conditions(stage))["ScalingActive"] == ("False", "ScalingDisabled")

    on_stage(play, CONTROLLER)


def test_a_missing_target_is_reported() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(autoscaler())
        await stage.world.clock.sleep(20)
        assert await conditions(stage) == {"AbleToScale": ("False", "FailedGetScale")}
        assert await stage.events("web") == [("FailedGetScale", 'replicasets.apps "web" not found')]

    on_stage(play, CONTROLLER)


def test_a_target_of_an_unknown_kind_is_reported() -> None:
    async def play(stage: Stage) -> None:
        target = {"apiVersion": "example.dev/v1", "kind": "Widget", "name": "web"}
        await stage.client.create(autoscaler(scaleTargetRef=target))
        await stage.world.clock.sleep(20)
        note = 'no matches for kind "Widget" in group "example.dev"'
        assert await stage.events("web") == [("FailedGetScale", note)]

    on_stage(play, CONTROLLER)


def test_usage_above_the_target_scales_up() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 2)
        await use(stage, "100m")
        await stage.client.create(autoscaler())
        await stage.world.clock.sleep(20)
        assert await replicas(stage) == 4
        found = await status(stage)
        assert found["currentMetrics"] == [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 100, "averageValue": "100m"}},
            }
        ]
        assert await conditions(stage) == {
            "AbleToScale": ("True", "SucceededRescale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("False", "DesiredWithinRange"),
        }
        reason = "cpu resource utilization (percentage of request) above target"
        assert await stage.events("web") == [("SuccessfulRescale", f"New size: 4; reason: {reason}")]

    on_stage(play, CONTROLLER)


def test_within_the_tolerance_nothing_is_scaled_or_written() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 4)
        await use(stage, "54m")
        await stage.client.create(autoscaler())
        await stage.world.clock.sleep(20)
        assert (await conditions(stage))["AbleToScale"] == ("True", "ReadyForNewScale")
        before = stage.version
        await stage.world.clock.sleep(600)
        assert await replicas(stage) == 4
        assert stage.version == before

    on_stage(play, CONTROLLER)


def test_it_scales_down_after_the_stabilization_window() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 4)
        await use(stage, "50m")
        await stage.client.create(autoscaler())
        await stage.world.clock.sleep(20)
        await use(stage, "10m")
        await stage.world.clock.sleep(60)
        assert await replicas(stage) == 4
        assert (await conditions(stage))["AbleToScale"] == ("True", "ScaleDownStabilized")
        await stage.world.clock.sleep(300)
        assert await replicas(stage) == 1
        assert ("SuccessfulRescale", "New size: 1; reason: All metrics below target") in await stage.events("web")

    on_stage(play, CONTROLLER)


def test_behavior_limits_the_scaling_rate() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 2)
        await use(stage, "500m")
        up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
        await stage.client.create(autoscaler(behavior={"scaleUp": up}))
        await stage.world.clock.sleep(20)
        assert await replicas(stage) == 3
        assert (await conditions(stage))["ScalingLimited"] == ("True", "ScaleUpLimit")
        await stage.world.clock.sleep(40)
        assert await replicas(stage) == 3
        await stage.world.clock.sleep(20)
        assert await replicas(stage) == 4

    on_stage(play, CONTROLLER)


def test_a_failing_metric_does_not_prevent_scaling_up_by_another() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 2)
        await use(stage, "100m")
        target = {"type": "AverageValue", "averageValue": "10"}
        other = {"type": "Pods", "pods": {"metric": {"name": "requests"}, "target": target}}
        await stage.client.create(autoscaler(metrics=[other, CPU]))
        await stage.world.clock.sleep(20)
        assert await replicas(stage) == 4
        note = (
            "unable to get metric requests: unable to fetch metrics from custom metrics API: no custom metrics API "
            "(custom.metrics.k8s.io) registered"
        )
        assert ("FailedGetPodsMetric", note) in await stage.events("web")

    on_stage(play, CONTROLLER)


def test_a_failing_metric_prevents_scaling_down() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 4)
        await use(stage, "1m")
        target = {"type": "AverageValue", "averageValue": "10"}
        other = {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}
        await stage.client.create(autoscaler(metrics=[other, CPU]))
        await stage.world.clock.sleep(400)
        assert await replicas(stage) == 4
        assert (await conditions(stage))["ScalingActive"] == ("False", "FailedGetExternalMetric")
        cause = (
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: the "
            "server could not find the requested resource (get queue.external.metrics.k8s.io)"
        )
        assert await message(stage, "ScalingActive") == f"the HPA was unable to compute the replica count: {cause}"

    on_stage(play, CONTROLLER)


def test_pods_selected_by_two_autoscalers_are_not_scaled() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 2)
        await use(stage, "100m")
        await stage.client.create(autoscaler("one"))
        await stage.client.create(autoscaler("two"))
        await stage.world.clock.sleep(40)
        assert (await conditions(stage, "one"))["ScalingActive"] == ("False", "AmbiguousSelector")
        note = "pods by selector app=web are controlled by multiple HPAs: [default/one default/two]"
        assert ("AmbiguousSelector", note) in await stage.events("two")

    on_stage(play, CONTROLLER)


def test_a_missing_resource_request_is_reported() -> None:
    async def play(stage: Stage) -> None:
        await serve_metrics(stage)
        await workload(stage, 1)
        memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}
        await use(stage, "100m")
        await stage.client.create(autoscaler(metrics=[{"type": "Resource", "resource": memory}]))
        await stage.world.clock.sleep(20)
        note = "failed to get memory utilization: missing request for memory in container app of Pod web-0"
        assert (await stage.events("web"))[0] == ("FailedGetResourceMetric", note)

    on_stage(play, CONTROLLER)
