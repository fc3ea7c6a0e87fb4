"""Object operations: all nine, their flags, and what is refused before anything is executed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.unit.frontends.hooks.stage import CONFIG_MAP, config_map

from ostinato.client import Client, MergePatch
from ostinato.frontends.kernel.operations.executor import OperationExecutor
from ostinato.frontends.kernel.operations.specification import (
    OperationError,
    on_hook_error,
    parse_operations,
)
from ostinato.testing import VirtualClock

TARGET = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"}


async def execute(client: Client, *documents: dict[str, Any]) -> None:
    data = "\n".join(map(json.dumps, documents)).encode()
    await OperationExecutor(client).execute(parse_operations(data))


async def data_of(client: Client, name: str = "a") -> Any:
    found = await client.get(CONFIG_MAP, name, missing=None)
    return None if found is None else found.get("data")


async def test_create_fails_for_an_object_that_exists(client: Client) -> None:
    await execute(client, {"operation": "Create", "object": config_map("a", x="1")})
    with pytest.raises(OperationError, match=r'Create ConfigMap default/a: configmaps "a" already exists'):
        await execute(client, {"operation": "Create", "object": config_map("a", x="2")})
    await execute(client, {"operation": "CreateIfNotExists", "object": config_map("a", x="3")})
    assert await data_of(client) == {"x": "1"}
    await execute(client, {"operation": "CreateOrUpdate", "object": config_map("a", y="4")})
    assert await data_of(client) == {"y": "4"}
    await execute(client, {"operation": "CreateOrUpdate", "object": json.dumps(config_map("b", z="5"))})
    assert await data_of(client, "b") == {"z": "5"}


async def test_patches_change_objects(client: Client) -> None:
    await client.create(config_map("a", x="1", y="2"))
    await execute(
        client,
        {"operation": "MergePatch", **TARGET, "mergePatch": {"data": {"x": None, "z": "3"}}},
        {"operation": "JSONPatch", **TARGET, "kind": "cm", "jsonPatch": [{"op": "remove", "path": "/data/y"}]},
        {"operation": "JQPatch", **TARGET, "apiVersion": "", "jqFilter": '.data.w = "4"'},
        {"operation": "MergePatch", **TARGET, "mergePatch": "data:\n  v: '5'\n"},
    )
    assert await data_of(client) == {"z": "3", "w": "4", "v": "5"}


async def test_a_missing_object_is_an_error_unless_ignored(client: Client) -> None:
    patch = {"operation": "MergePatch", **TARGET, "mergePatch": {"data": {"x": "1"}}}
    with pytest.raises(OperationError, match="not found"):
        await execute(client, patch)
    await execute(client, {**patch, "ignoreMissingObject": True})
    await execute(client, {"operation": "JQPatch", **TARGET, "jqFilter": ".", "ignoreMissingObject": True})


async def test_later_operations_are_executed_after_a_failure(client: Client) -> None:
    with pytest.raises(OperationError, match="MergePatch ConfigMap default/a"):
        await execute(
            client,
            {"operation": "MergePatch", **TARGET, "mergePatch": {"data": {"x": "1"}}},
            {"operation": "Create", "object": config_map("b", x="1")},
        )
    assert await data_of(client, "b") == {"x": "1"}


async def test_deletes_differ_in_what_happens_to_dependents(client: Client) -> None:
    for verb, finalizers in (("DeleteInBackground", None), ("DeleteNonCascading", ["orphan"])):
        await client.create(config_map("a"))
        await execute(client, {"operation": verb, **TARGET})
        found = await client.get(CONFIG_MAP, "a", missing=None)
        assert (None if found is None else found["metadata"]["finalizers"]) == finalizers


async def test_deleting_a_missing_object_is_no_error(client: Client) -> None:
    for verb in ("Delete", "DeleteInBackground", "DeleteNonCascading"):
        await execute(client, {"operation": verb, **TARGET})


async def test_delete_ends_when_the_object_is_gone(client: Client, clock: VirtualClock) -> None:
    await client.create(config_map("a"))

    async def collect() -> None:  # what the garbage collector does
        await clock.advance(3)
        await client.patch(CONFIG_MAP, "a", MergePatch({"metadata": {"finalizers": None}}))

    collecting = asyncio.ensure_future(collect())
    await execute(client, {"operation": "Delete", **TARGET})
    await collecting
    assert 3 <= clock.monotonic() < 6
    assert await client.get(CONFIG_MAP, "a", missing=None) is None


async def test_delete_waits_until_the_object_is_gone(client: Client, clock: VirtualClock) -> None:
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.dev/held"]
    await client.create(held)
    with pytest.raises(OperationError, match="still exists after 20 s; check its finalizers"):
        await execute(client, {"operation": "Delete", **TARGET})
    assert 20 <= clock.monotonic() < 25


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("operation: Remove", "operation 1: operation: 'Remove' is none of Create, "),
        ("operation: Delete\nkind: Pod", r"operation 1 \(Delete\): name: required"),
        ("operation: Create\nobject: {kind: Pod}", r"object.apiVersion: required"),
        ("operation: Delete\nkind: Pod\nname: a\nnames: b", "unknown field 'names'"),
        ("operation: MergePatch\nkind: Pod\nname: a", "mergePatch: required"),
        ("operation: JQPatch\nkind: Pod\nname: a\njqFilter: '.a |'", "jqFilter: jq filter '.a |': syntax error"),
        (
            "operation: JSONPatch\nkind: Pod\nname: a\njsonPatch: [{op: add, path: /a}]",
            r"jsonPatch\[0\].value: required",
        ),
        (
            "operation: Delete\nkind: Pod\nname: a\nignoreMissingObject: 1",
            "ignoreMissingObject: expected true or false",
        ),
        ("- a\n- b", "operation 1: expected an object with `operation`, got list"),
        ("a: [", "neither JSON nor YAML"),
    ],
)
def test_a_wrong_operation_is_named(document: str, problem: str) -> None:
    with pytest.raises(OperationError, match=problem):
        parse_operations(document.encode())


def test_operations_are_yaml_documents_or_json_values() -> None:
    yaml = b"operation: Delete\nkind: Pod\nname: a\n---\noperation: Delete\nkind: Pod\nname: b\n"
    values = b'{"operation":"Delete","kind":"Pod","name":"a"}{"operation":"Delete","kind":"Pod",\n"name":"b"}\n'
    for data in (yaml, values):
        assert [each.name for each in parse_operations(data)] == ["a", "b"]
    assert parse_operations(b" \n") == []


def test_only_marked_patches_of_the_status_survive_a_failure() -> None:
    patch = {"operation": "MergePatch", **TARGET, "mergePatch": {"status": {"x": 1}}}
    marked = {**patch, "subresource": "/status", "ignoreHookError": True}
    others = [patch, {**patch, "ignoreHookError": True}, {**patch, "subresource": "status"}]
    found = parse_operations("\n".join(map(json.dumps, [marked, *others])).encode())
    assert on_hook_error(found) == [found[0]]
