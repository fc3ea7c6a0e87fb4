"""What a type checker makes of the kinds. Never run: `test_typing` has mypy look at it."""

from __future__ import annotations

from typing import assert_type

import msgspec

from ostinato import kinds
from ostinato.api.codec import from_json, list_from_json, to_dict
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource, ObjectList
from ostinato.api.quantity import Quantity
from ostinato.api.struct import Struct
from ostinato.api.time import Time
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Container, Pod, PodSpec


class WidgetSpec(Struct):
    replicas: int = 1
    image: str


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec
    labels: list[str] = msgspec.field(default_factory=list)


def reading(pod: Pod, deployment: Deployment, data: bytes) -> None:
    assert_type(pod.spec.containers[0].name, str)
    assert_type(pod.metadata.name, str)
    assert_type(pod.metadata.labels, dict[str, str])
    assert_type(pod.metadata.creation_timestamp, Time | None)
    assert_type(pod.status.phase, str | None)
    assert_type(deployment.status.available_replicas or 0, int)
    assert_type(deployment.spec.template.spec.containers, list[Container])
    assert_type(from_json(Pod, data), Pod)
    assert_type(list_from_json(Widget, data), ObjectList[Widget])
    assert_type(from_json(Widget, data).spec.image, str)
    assert_type(kinds.batch_v1.JobSpec(template=deployment.spec.template).completions, int | None)
    if pod.spec.containers[0].resources:
        assert_type(pod.spec.containers[0].resources.limits, dict[str, Quantity])


def making() -> None:
    to_dict(Pod(metadata=ObjectMeta(name="a"), spec=PodSpec(containers=[Container(name="c", image="nginx")])))
    to_dict(Widget(spec=WidgetSpec(image="nginx")))


def mistakes() -> None:
    Container(image="nginx")  # type: ignore[call-arg]
    Container(name="c", imagee="nginx")  # type: ignore[call-arg]
    Container(name=5)  # type: ignore[arg-type]
    WidgetSpec()  # type: ignore[call-arg]
    Pod(spec=None)  # type: ignore[arg-type]
