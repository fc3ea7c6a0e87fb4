"""Deletions: what the response tells, in the usual form and in others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes import recorder
from ostinato.cache.own_writes.recorder import OwnDeletion

POD = GroupVersionKind("", "v1", "Pod")
KEY = NamespacedName("default", "a")
OWNERS = [{"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "other", "resourceVersion": "9"}]
NAMES = {"name": "a", "generateName": "a-", "namespace": "default"}
VERSION = {"uid": "one", "resourceVersion": "7"}
REST = {"labels": {"uid": "label", "resourceVersion": "8"}, "ownerReferences": OWNERS}
STATUS = {"kind": "Status", "apiVersion": "v1"}


def response(instance: Any) -> bytes:
    return json.dumps(instance, separators=(",", ":")).encode()


def pod(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"uid": "spec"}}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (response(pod({**NAMES, **VERSION, **REST})), ("one", "7")),
        (response({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", **VERSION}}), ("one", "7")),
        (response(pod({**REST, **NAMES, **VERSION})), ("one", "7")),
        (response(pod({**NAMES, "resourceVersion": "7", **REST, "uid": "one"})), ("one", "7")),
        (response(pod({**NAMES, "generateName": 'q"uid":"x"', **VERSION})), ("one", "7")),
        (response(pod({**NAMES, "resourceVersion": "7", **REST})), ("", "7")),
        (response(pod({**NAMES, **REST})), ("", "")),
        (response({"spec": {"uid": "x"}, "metadata": VERSION, "kind": "Pod", "apiVersion": "v1"}), ("one", "7")),
        (json.dumps(pod({**NAMES, **VERSION}), indent=1).encode(), ("one", "7")),
        (response({**STATUS, "metadata": {}, "status": "Success", "details": {"uid": "one"}}), ("one", "")),
        (response({**STATUS, "metadata": VERSION, "details": {"name": "a", "uid": "two"}}), ("two", "")),
        (response({"apiVersion": "v1", "kind": "Status", "metadata": VERSION}), ("", "")),
        (response(pod({**NAMES, **VERSION})).replace(b"one", b"\\u006fne"), ("one", "7")),
        (response(pod({**NAMES, **VERSION})).replace(b"one", "ö".encode()), ("ö", "7")),
        (response(pod({**NAMES, **VERSION})).replace(b"one", b"\xff"), ("", "")),
        (b"", ("", "")),
        (b"not json", ("", "")),
    ],
)
def test_a_deletion_has_the_uid_and_resource_version_of_the_response(body: bytes, wanted: tuple[str, str]) -> None:
    found = OwnDeletion.of(POD, KEY, "", body)
    assert (found.uid, found.resource_version) == wanted
    assert OwnDeletion.of(POD, KEY, "known", body) == OwnDeletion(POD, KEY, "known", wanted[1])


def test_a_response_in_the_usual_form_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_decode_deletion", None)
    assert OwnDeletion.of(POD, KEY, "", response(pod({**NAMES, **VERSION, **REST}))).resource_version == "7"
