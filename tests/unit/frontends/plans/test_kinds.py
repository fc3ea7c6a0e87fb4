"""A package as a kind of its own: schema, roles, plans and drift repair."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.frontends.plans.conftest import Reach, make_package

from ostinato.api.errors import Invalid
from ostinato.client import MergePatch
from ostinato.frontends.plans import PackageKind, PlanController
from ostinato.frontends.plans.kinds import access_of_templates
from ostinato.frontends.plans.subjects import EVERYTHING
from ostinato.kinds.core_v1 import ConfigMap, Pod, Secret

OPERATOR = """
name: kafka
operatorVersion: 1.0.0
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  scale: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
"""
PARAMS = """
parameters:
- {name: brokers, type: integer, default: 3, trigger: scale, description: Number of brokers.}
- {name: topics, type: array, default: [a]}
- {name: zone, enum: [east, west], immutable: true}
- {name: debug, type: boolean, required: false}
"""
APP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {brokers: "{{ .Params.brokers }}", topics: "{{ .Params.topics | join "," }}"}
"""


def kafka() -> PackageKind:
    spec = make_package(OPERATOR, PARAMS, app=APP).version.spec
    return PackageKind(spec, kind="Kafka", group="example.dev")


def test_the_schema_has_the_parameters_with_their_types() -> None:
    version = kafka().definitions[0]["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert schema["required"] == ["zone"]
    assert schema["properties"]["brokers"] == {
        "type": "integer",
        "format": "int64",
        "description": "Number of brokers. Defaults to '3'. A change runs the plan scale.",
    }
    assert schema["properties"]["zone"]["enum"] == ["east", "west"]
    assert schema["properties"]["zone"]["x-kubernetes-validations"][0]["rule"] == "self == oldSelf"
    assert [each["name"] for each in version["additionalPrinterColumns"]] == ["Plan", "Ready", "Age"]


def test_roles_are_those_of_the_kinds_in_the_templates() -> None:
    found = {(group, name) for each in access_of_templates([APP]) for group in each.groups for name in each.resources}
    assert found == {("", "configmaps"), ("", "secrets")}
    assert access_of_templates(["kind: {{ .Params.kind }}\napiVersion: v1"]) == (EVERYTHING,)


@pytest.mark.parametrize(("kind", "group"), [("kafka", "example.dev"), ("Kafka", "not a group")])
def test_bad_names_are_refused(kind: str, group: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        PackageKind(make_package(OPERATOR, PARAMS, app=APP).version.spec, kind=kind, group=group)


async def test_objects_of_the_kind_run_plans_and_are_repaired(
    cluster: Any, manager: Any, client: Any, clock: Any, reach: Reach, eventually: Any
) -> None:
    subject = kafka()
    await manager.start(PlanController(subject, name="kafka"))
    metadata = {"name": "a", "namespace": "default"}
    instance = {"apiVersion": "example.dev/v1", "kind": "Kafka", "metadata": metadata}
    with pytest.raises(Invalid, match="zone"):
        await client.create({**instance, "spec": {}})
    await client.create({**instance, "spec": {"zone": "east", "topics": ["x", "y"]}})
    await reach("a", "deploy", "COMPLETE", subject.view)
    assert (await client.get(ConfigMap, "a")).data == {"brokers": "3", "topics": "x,y"}
    with pytest.raises(Invalid, match="zone is immutable"):
        await client.patch(subject.view, "a", MergePatch({"spec": {"zone": "west"}}))
    await client.patch(subject.view, "a", MergePatch({"spec": {"brokers": 5}}))
    await reach("a", "scale", "COMPLETE", subject.view)
    assert (await client.get(ConfigMap, "a")).data == {"brokers": "5", "topics": "x,y"}
    await client.delete(ConfigMap, "a")
    assert await eventually(lambda: client.get(ConfigMap, "a", missing=None))


SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Name }}"}
stringData: {password: "{{ randAlphaNum 20 }}", size: "{{ .Params.brokers }}"}
"""


async def test_a_random_value_is_made_once_in_a_run_and_not_repaired(
    cluster: Any, manager: Any, client: Any, clock: Any, reach: Reach, eventually: Any
) -> None:
    operator = OPERATOR.replace(
        "phases: [", "phases: [{name: wait, steps: [{name: s, tasks: [app, slow]}]}, ", 1
    ).replace("tasks: [{", "tasks: [{name: slow, kind: Apply, spec: {resources: [slow.yaml]}}, {", 1)
    slow = "apiVersion: v1\nkind: Pod\nmetadata: {name: slow}\nspec: {containers: [{name: a, image: b}]}\n"
    subject = PackageKind(
        make_package(operator, PARAMS, app=SECRET, slow=slow).version.spec, kind="Kafka", group="example.dev"
    )
    await manager.start(PlanController(subject, name="kafka"))
    metadata = {"name": "a", "namespace": "default"}
    instance = {"apiVersion": "example.dev/v1", "kind": "Kafka", "metadata": metadata, "spec": {"zone": "east"}}
    await client.create(instance)
    await eventually(lambda: client.get(Pod, "slow", missing=None))
    first = (await client.get(Secret, "a")).data
    await clock.advance(10)  # passes that wait for the Pod
    assert (await client.get(Secret, "a")).data == first
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(Pod, "slow", MergePatch({"status": ready}), subresource="status")
    await reach("a", "deploy", "COMPLETE", subject.view)
    await clock.advance(60)
    assert (await client.get(Secret, "a")).data == first
