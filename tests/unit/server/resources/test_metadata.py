"""Validation of metadata, in new and in updated objects."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Api, asking

MAPS = "/api/v1/namespaces/default/configmaps"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        ({"name": "A_"}, "metadata.name", "a lowercase RFC 1123 subdomain must consist of"),
        ({}, "metadata.name", "Required value: name or generateName is required"),
        ({"generateName": "A_"}, "metadata.generateName", "a lowercase RFC 1123 subdomain must consist of"),
        ({"name": "a", "generation": -1}, "metadata.generation", "must be greater than or equal to 0"),
        ({"name": "a", "labels": {"a b": "c"}}, "metadata.labels", "name part must consist of"),
        ({"name": "a", "labels": {"a": "b c"}}, "metadata.labels", "a valid label must be"),
        ({"name": "a", "annotations": {"a b": "c"}}, "metadata.annotations", "name part must consist of"),
        ({"name": "a", "annotations": {"a": "x" * 262144}}, "metadata.annotations", "Too long: may not be more than"),
        ({"name": "a", "finalizers": ["a b/c"]}, "metadata.finalizers", "a lowercase RFC 1123 subdomain must"),
        ({"name": "a", "finalizers": ["plain"]}, "metadata.finalizers[0]", "name is neither a standard finalizer name"),
        (
            {"name": "a", "finalizers": ["orphan", "foregroundDeletion"]},
            "metadata.finalizers",
            "finalizer orphan and foregroundDeletion cannot be both set",
        ),
        ({"name": "a", "ownerReferences": [{}]}, "metadata.ownerReferences.apiVersion", "version must not be empty"),
        (
            {"name": "a", "ownerReferences": [{**OWNER, "kind": "Event"}]},
            "metadata.ownerReferences",
            "/v1, Kind=Event is disallowed from being an owner",
        ),
    ],
)
def test_invalid_new_metadata_is_reported(metadata: dict[str, Any], field: str, message: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        refused = await api.post(MAPS, {"metadata": metadata})
        assert refused.code == 422
        cause = refused.body["details"]["causes"][0]
        assert cause["field"] == field
        assert message in cause["message"]

    talk()


@asking
async def test_a_namespace_in_the_path_must_be_a_label(api: Api) -> None:
    refused = await api.post("/api/v1/namespaces/A_/configmaps", {"metadata": {"name": "a"}})
    assert refused.code == 404  # it cannot exist


@asking
async def test_objects_outside_of_namespaces_lose_theirs(api: Api) -> None:
    made = await api.post("/api/v1/namespaces", {"metadata": {"name": "x", "namespace": "y"}})
    assert made.code == 201
    assert "namespace" not in made.body["metadata"]


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({"uid": "other"}, ["metadata.uid", "metadata.uid"]),
        ({"deletionGracePeriodSeconds": 5}, ["metadata.deletionGracePeriodSeconds"] * 2),
        ({"deletionTimestamp": "2001-01-01T00:00:00Z"}, ["metadata.deletionTimestamp"] * 2),
        ({"labels": {"a b": "c"}}, ["metadata.labels"] * 4),
        ({"generateName": "A_"}, ["metadata.generateName"]),
        ({"finalizers": ["plain"]}, ["metadata.finalizers[0]"] * 2),
    ],
)
def test_an_invalid_change_is_reported_by_each_rule(metadata: dict[str, Any], fields: list[str]) -> None:
    @asking
    async def talk(api: Api) -> None:
        await api.post(MAPS, {"metadata": {"name": "a"}})
        refused = await api.merge(f"{MAPS}/a", {"metadata": metadata})
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == fields

    talk()


@asking
async def test_a_dying_object_takes_no_more_finalizers(api: Api) -> None:
    await api.post(MAPS, {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    await api.delete(f"{MAPS}/a")
    refused = await api.merge(f"{MAPS}/a", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})
    assert refused.message.endswith('found new finalizers []string{"d.e/f"}')


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"operation": "Odd"}, "metadata.managedFields[0].operation"),
        ({"operation": "Update", "fieldsType": "Odd"}, "metadata.managedFields[0].fieldsType"),
        ({"operation": "Update", "subresource": "x" * 300}, "metadata.managedFields[0].subresource"),
    ],
)
def test_untracked_managed_fields_are_validated(entry: dict[str, Any], field: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        resource = api.server.registry.get("", "v1", "configmaps")
        assert resource is not None
        manager = resource.managers[""]
        with_entry = [{"manager": "m", **entry}]

        class Untracked:
            def update(self, live: Any, new: Any, *_: Any) -> Any:
                return {**new, "metadata": {**new["metadata"], "managedFields": with_entry}}

        resource.managers[""] = Untracked()  # type: ignore[assignment]
        refused = await api.post(MAPS, {"metadata": {"name": "a"}})
        resource.managers[""] = manager
        assert refused.body["details"]["causes"][0]["field"] == field

    talk()
