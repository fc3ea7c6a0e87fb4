"""Presentation: Tables, partial objects, and selections."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import TABLE, Api, asking

MAPS = "/api/v1/namespaces/default/configmaps"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@asking
async def test_a_table_has_a_row_for_each_object_and_the_metadata_of_the_list(api: Api) -> None:
    for name in "ab":
        await api.post(MAPS, {"metadata": {"name": name}, "data": {"k": "v"}})
    table = (await api.get(f"{MAPS}?limit=1", accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["metadata"]["remainingItemCount"] == 1
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 1]
    assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "a")


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")]
)
def test_a_row_includes_the_requested_part_of_its_object(include: str, kind: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        await api.post(MAPS, {"metadata": {"name": "a"}})
        table = await api.get(f"{MAPS}/a?includeObject={include}", accept=TABLE)
        assert table.body["rows"][0]["object"]["kind"] == kind
        assert table.body["metadata"]["resourceVersion"]

    talk()


@asking
async def test_a_row_may_omit_its_object(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "a"}})
    assert (await api.get(f"{MAPS}?includeObject=None", accept=TABLE)).body["rows"][0]["object"] is None


@asking
async def test_writes_answer_with_tables_too_but_a_status_stays_a_status(api: Api) -> None:
    made = await api.post(MAPS, {"metadata": {"name": "a"}}, accept=TABLE)
    assert (made.code, made.body["kind"]) == (201, "Table")
    gone = await api.ask("DELETE", f"{MAPS}/a", accept=TABLE)
    assert gone.body["kind"] == "Status"


@asking
async def test_a_partial_object_is_its_metadata(api: Api) -> None:
    made = (await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})).body
    found = (await api.get(f"{MAPS}/a", accept=PARTIAL)).body
    assert found == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    listed = (await api.get(MAPS, accept=PARTIAL.replace("Metadata;", "MetadataList;"))).body
    assert (listed["kind"], listed["items"]) == ("PartialObjectMetadataList", [found])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("labelSelector=x%3D1", "a"),
        ("labelSelector=x!%3D1", "bc"),
        ("labelSelector=x", "ab"),
        ("fieldSelector=metadata.name%3Db", "b"),
        ("fieldSelector=metadata.name!%3Db", "ac"),
        ("fieldSelector=metadata.namespace%3Ddefault", "abc"),
        ("fieldSelector=metadata.namespace%3Dother", ""),
        ("labelSelector=x&fieldSelector=metadata.name!%3Da", "b"),
    ],
)
def test_selectors_select(query: str, found: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {})):
            await api.post(MAPS, {"metadata": {"name": name, "labels": labels}})
        items: list[Any] = (await api.get(f"{MAPS}?{query}")).body["items"]
        assert "".join(item["metadata"]["name"] for item in items) == found

    talk()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            f"{MAPS}?fieldSelector=data.k%3Dv",
            '"data.k" is not a known field selector: only "metadata.name", "metadata.na',
        ),
        ("/api/v1/namespaces/default/pods?fieldSelector=spec.x%3Dv", "field label not supported: spec.x"),
        (f"{MAPS}?labelSelector=a%3D%3D%3Db", "unable to parse requirement: found '=', expected: identifier"),
    ],
)
def test_a_selector_that_cannot_be_met_is_refused(path: str, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        refused = await api.get(path)
        assert refused.code == 400
        assert refused.message.startswith(message)

    talk()
