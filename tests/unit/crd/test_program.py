"""The kinds of a program."""

from __future__ import annotations

from typing import Any

from ostinato import CustomResource, Struct, controller
from ostinato.api.markers import Stored, marked
from ostinato.client.views import Unstructured
from ostinato.controllers import Dependencies, FrontEnd
from ostinato.crd.program import access_of_managers, definitions_of_managers
from ostinato.manager import Manager
from ostinato.webhook import ServiceEndpoint, Webhooks, converter


class Spec(Struct):
    size: int = 1


@marked(Stored())
class Box(CustomResource, group="program.example.dev", version="v1", plural="boxes"):
    spec: Spec


Old: Any = type(
    "Box",
    (CustomResource,),
    {"__annotations__": {"spec": Spec}, "__module__": "elsewhere"},
    group="program.example.dev",
    version="v1beta1",
    plural="boxes",
)


@converter(Old, Box)
def up(old: Old) -> Box:
    return Box(metadata=old.metadata, spec=old.spec)


@converter(Box, Old)
def down(new: Box) -> Old:
    return Old(metadata=new.metadata, spec=new.spec)


@controller(Box)
async def packing(box: Box, ctx: Any) -> None: ...


def test_a_version_of_another_module_is_found_by_its_conversion() -> None:
    manager = Manager().add(packing, Webhooks(up, down, endpoint=ServiceEndpoint("a", "b")))
    (definition,) = definitions_of_managers([manager])
    assert sorted(each["name"] for each in definition["spec"]["versions"]) == ["v1", "v1beta1"]


class Chart(FrontEnd):
    name = "chart"
    reconciles = (Unstructured.of("program.example.dev/v1", "Release"),)
    owns = (Unstructured.of("apps/v1", "Deployment"),)
    definitions = ({"metadata": {"name": "releases.program.example.dev"}},)

    async def run(self, dependencies: Dependencies) -> None: ...


def test_a_front_end_brings_definitions_and_has_a_role() -> None:
    manager = Manager().add(Chart(), packing)
    names = [each["metadata"]["name"] for each in definitions_of_managers([manager])]
    assert names == ["boxes.program.example.dev", "releases.program.example.dev"]
    used = {resource for each in access_of_managers([manager], namespace="a") for resource in each.resources}
    assert {"releases", "releases/status", "deployments", "boxes"} <= used
