"""Sync: requests and results as JSON, and the keys of kinds and objects."""

from __future__ import annotations

import msgspec
import pytest

from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.kernel.sync import (
    Ready,
    SyncEvent,
    SyncRequest,
    SyncResult,
    Trigger,
    kind_key,
    object_key,
    parse_kind_key,
)


@pytest.mark.parametrize("key", ["Pod.v1", "Deployment.apps/v1", "Foo.samplecontroller.k8s.io/v1alpha1"])
def test_a_kind_key_is_parsed_back(key: str) -> None:
    assert kind_key(parse_kind_key(key)) == key


def test_a_kind_key_has_the_api_version() -> None:
    assert parse_kind_key("Deployment.apps/v1") == GroupVersionKind("apps", "v1", "Deployment")


@pytest.mark.parametrize("key", ["", "Pod", ".v1", "Pod.", "Pod.a/b/c"])
def test_a_malformed_kind_key_is_an_error(key: str) -> None:
    with pytest.raises(ValueError, match=r"a/b/c|write it as"):
        parse_kind_key(key)


def test_an_object_key_has_the_namespace_if_there_is_one() -> None:
    assert object_key({"metadata": {"namespace": "default", "name": "web"}}) == "default/web"
    assert object_key({"metadata": {"name": "node-1"}}) == "node-1"


def test_a_request_and_a_result_survive_json() -> None:
    request = SyncRequest(
        controller="widgets",
        trigger=Trigger(type="Schedule", reasons=["every minute"], data={"binding": "main"}),
        parent={"kind": "Widget", "metadata": {"name": "a"}},
        children={"Pod.v1": {"default/a": {"kind": "Pod"}}, "ConfigMap.v1": {}},
        snapshots={"pods": [{"filterResult": 1}]},
        finalizing=True,
        attempt=3,
    )
    result = SyncResult(
        children=[],
        status={"phase": "Up"},
        labels={"a": None},
        events=[SyncEvent("Synced", "done")],
        resync_after=1.5,
        finalized=False,
        ready=Ready(ready=True, reason="AllUp"),
    )
    assert msgspec.json.decode(msgspec.json.encode(request), type=SyncRequest) == request
    assert msgspec.json.decode(msgspec.json.encode(result), type=SyncResult) == result
    assert b'"resyncAfter":1.5' in msgspec.json.encode(result)


def test_no_children_and_children_left_alone_are_different_in_json() -> None:
    assert msgspec.json.encode(SyncResult(children=[])) == b'{"children":[]}'
    assert msgspec.json.encode(SyncResult()) == b"{}"
