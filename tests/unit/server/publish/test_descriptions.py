"""Descriptions in OpenAPI, from models of the official Python client."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ostinato.server.publish.discovery import Discovery
from ostinato.server.publish.openapi.client_models import Descriptions
from ostinato.server.publish.openapi.definitions import Definitions
from ostinato.server.publish.openapi.operations import COMMON_PARAMETERS
from ostinato.server.publish.openapi.published import OpenAPI

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


NEWER = '''
    def list_priority_class(self, pretty=None):
        """list_priority_class

        :param pretty: If 'true', then more.
        :type pretty: str
        :param _continue: Where to \\"continue\\".
        :param label_selector: By labels.
        """
'''
OLDER = '''
    def list_priority_class(self, **kwargs):  # noqa: E501
        """list_priority_class  # noqa: E501

        :param str name: name of the PriorityClass (required)
        :param bool watch: Watch for changes.
        """
'''


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            NEWER,
            {
                "continue": 'Where to "continue".',
                "labelSelector": "By labels.",
                "pretty": "If 'true', then more.",
            },
        ),
        (OLDER, {"watch": "Watch for changes."}),
    ],
)
def test_query_parameters_are_described_by_the_methods_of_the_client(
    tmp_path: Path, source: str, found: dict[str, str]
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "scheduling_v1_api.py").write_text(source)
    assert Descriptions(tmp_path / "models").of_parameters(COMMON_PARAMETERS) == found


def test_the_document_of_version_2_describes_every_common_parameter_once() -> None:
    document = OpenAPI()
    document.update(Discovery(iter([])))
    parameters = msgspec.json.decode(document.v2().body)["parameters"]
    assert parameters.keys() == set(COMMON_PARAMETERS)
    assert "Watch for changes to the described resources" in parameters["watch"]["description"]
    assert parameters["watch"]["type"] == "boolean"
