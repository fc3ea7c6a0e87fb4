"""Descriptions in OpenAPI, from models of the official Python client."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ostinato.server.publish.openapi.client_models import Descriptions
from ostinato.server.publish.openapi.definitions import Definitions

POD_SPEC = "io.k8s.api.core.v1.PodSpec"
PYDANTIC = '''
class V1PodSpec(BaseModel):
    """
    A description
    of a pod.

    Attributes:
      openapi_types (dict): not of interest
    """ # noqa: E501
    affinity: Optional[V1Affinity] = None
    containers: List[V1Container] = Field(description="The \\"main\\" containers, with (brackets).")
    node_name: Optional[StrictStr] = Field(default=None, serialization_alias="nodeName", description="The node.")
'''
DOCSTRINGS = '''
class V1PodSpec(object):
    """NOTE: This class is auto generated."""
    attribute_map = {
        'containers': 'containers',
        'node_name': 'nodeName'
    }

    @property
    def node_name(self):
        """Gets the node_name of this V1PodSpec.  # noqa: E501

        The node.  # noqa: E501

        :return: The node_name of this V1PodSpec.  # noqa: E501
        """
        return self._node_name
'''


def models(tmp_path: Path, **sources: str) -> Descriptions:
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    return Descriptions(tmp_path)


def test_kinds_and_fields_are_described_by_models_of_pydantic(tmp_path: Path) -> None:
    found = models(tmp_path, v1_pod_spec=PYDANTIC).of(POD_SPEC)
    assert found.text == "A description of a pod."
    assert found.fields == {"containers": 'The "main" containers, with (brackets).', "nodeName": "The node."}


def test_fields_are_described_by_docstrings_of_older_models(tmp_path: Path) -> None:
    found = models(tmp_path, v1_pod_spec=DOCSTRINGS).of(POD_SPEC)
    assert (found.text, found.fields) == ("", {"nodeName": "The node."})


def test_a_kind_that_several_groups_have_is_that_of_its_group(tmp_path: Path) -> None:
    source = PYDANTIC.replace("V1PodSpec", "V1Event")
    found = models(tmp_path, core_v1_event=source, events_v1_event=source.replace("of a pod", "of an event"))
    assert found.of("io.k8s.api.core.v1.Event").text == "A description of a pod."
    assert found.of("io.k8s.api.events.v1.Event").text == "A description of an event."


@pytest.mark.parametrize("name", ["io.k8s.api.core.v1.Nothing", "Nothing", "io.k8s.apimachinery.pkg.version.Info"])
def test_other_definitions_have_no_description(tmp_path: Path, name: str) -> None:
    assert models(tmp_path, v1_pod_spec=PYDANTIC).of(name) == ("", {})


def test_documents_contain_the_descriptions_and_are_otherwise_the_same(tmp_path: Path) -> None:
    described = Definitions(models(tmp_path, v1_pod_spec=PYDANTIC))
    bare = Definitions(Descriptions(None))
    spec, plain = described.v2[POD_SPEC], bare.v2[POD_SPEC]
    assert spec["description"] == "A description of a pod."
    assert spec["properties"]["nodeName"] == {"description": "The node.", **plain["properties"]["nodeName"]}
    assert spec["properties"]["affinity"] == plain["properties"]["affinity"]
    third = msgspec.json.decode(described.v3([POD_SPEC])[POD_SPEC])
    assert third["properties"]["nodeName"]["description"] == "The node."
    assert "description" not in plain
    assert "description" not in plain["properties"]["nodeName"]


def test_the_installed_client_describes_nearly_every_kind() -> None:
    pytest.importorskip("kubernetes")
    found = Descriptions.installed()
    definitions = Definitions(found)
    fields = sum(
        "description" in node for raw in definitions.v2.values() for node in raw.get("properties", {}).values()
    )
    assert fields > 1500
