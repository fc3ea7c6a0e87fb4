"""Pods from templates."""

from __future__ import annotations

from ostinato.api.codec import to_dict
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.kinds.apps_v1 import ReplicaSet, ReplicaSetSpec
from ostinato.kinds.core_v1 import Container, PodSpec, PodTemplateSpec
from ostinato.plane.controllers.workloads.pod_template import pod_from_template

OWNER = ReplicaSet(
    metadata=ObjectMeta(name="web", namespace="shop", uid="u-1"), spec=ReplicaSetSpec(selector=LabelSelector())
)


def template() -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(
            name="ignored", labels={"app": "web"}, annotations={"note": "a"}, finalizers=["example.dev/hold"]
        ),
        spec=PodSpec(containers=[Container(name="c", image="nginx")]),
    )


def test_a_pod_has_its_template_and_a_controller_reference() -> None:
    pod = to_dict(pod_from_template(template(), OWNER))

    assert pod["metadata"] == {
        "namespace": "shop",
        "generateName": "web-",
        "labels": {"app": "web"},
        "annotations": {"note": "a"},
        "finalizers": ["example.dev/hold"],
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert pod["spec"] == {"containers": [{"name": "c", "image": "nginx"}]}


def test_a_pod_shares_nothing_with_its_template() -> None:
    wanted = template()
    pod = pod_from_template(wanted, OWNER)

    pod.spec.containers[0].image = "other"
    pod.metadata.labels["index"] = "0"
    pod.metadata.finalizers.append("example.dev/more")

    assert wanted == template()
