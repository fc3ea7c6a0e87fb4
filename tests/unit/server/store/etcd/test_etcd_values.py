"""Objects in etcd: as kube-apiserver stores them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ostinato.api import protobuf
from ostinato.api.gvk import GroupVersionKind
from ostinato.server.store.collection import Collection
from ostinato.server.store.encryption.configuration import parse
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.etcd.definitions import from_v1beta1
from ostinato.server.store.etcd.layout import Layout
from ostinato.server.store.etcd.values import Values
from ostinato.server.store.records import UnusableStore
from ostinato.world import Simulation

LAYOUT = Layout("/registry")
WIDGET = GroupVersionKind("example.com", "v1", "Widget")


def values(encryption: Encryption | None = None, *, protobuf: bool = True) -> Values:
    return Values(LAYOUT, encryption or Encryption(), Simulation(1).ids, protobuf=protobuf)


def describe(data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
    return {}, {}, ""


MAPS = Collection("configmaps", describe)
SECRETS = Collection("secrets", describe)
WIDGETS = Collection("widgets.example.com", describe, None, WIDGET)


def encoded(used: Values, obj: dict[str, Any]) -> bytes:
    """The object as a verb encodes it."""
    metadata = {**obj["metadata"], "resourceVersion": str(used.placeholder)}
    return msgspec.json.encode({**obj, "metadata": metadata})


@pytest.mark.parametrize("as_protobuf", [True, False])
def test_a_built_in_object_is_read_as_it_was_written_with_its_revision(as_protobuf: bool) -> None:
    used = values(protobuf=as_protobuf)
    obj = {"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "data": {"k": "v"}}
    draft = used.draft(MAPS, b"/registry/configmaps/n/a", encoded(used, obj))
    assert draft.value.startswith(b"k8s\0" if as_protobuf else b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{')
    assert b"resourceVersion" not in draft.value
    whole = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}}
    assert msgspec.json.decode(draft.data(7)) == whole
    other = values(protobuf=not as_protobuf)  # both forms are read
    assert msgspec.json.decode(other.read(MAPS, b"/registry/configmaps/n/a", draft.value, 7)) == whole


def test_a_custom_object_is_stored_as_json_with_its_kind() -> None:
    used = values()
    obj = {
        "apiVersion": "example.com/v1",
        "metadata": {"annotations": {"resourceVersion": ""}, "name": "a", "resourceVersion": ""},
        "spec": 1,
    }
    draft = used.draft(WIDGETS, b"/registry/example.com/widgets/n/a", encoded(used, obj))
    stored = msgspec.json.decode(draft.value)
    assert stored == {
        "kind": "Widget",
        "apiVersion": "example.com/v1",
        "metadata": {"annotations": {"resourceVersion": ""}, "name": "a"},
        "spec": 1,
    }
    read = msgspec.json.decode(used.read(WIDGETS, b"/registry/example.com/widgets/n/a", draft.value, 9))
    assert read == msgspec.json.decode(draft.data(9))
    assert list(read) == ["apiVersion", "metadata", "spec"]


def test_a_value_that_cannot_be_read_names_its_key() -> None:
    for value in (b"", b"k8s\0\xff", b"[]", b'{"spec":1}'):
        with pytest.raises(UnusableStore, match="/registry/configmaps/n/a: the value cannot be read"):
            values().read(MAPS, b"/registry/configmaps/n/a", value, 1)


def test_a_secret_is_encrypted_for_its_key_and_outdated_after_a_rotation() -> None:
    key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

    def encryption(*providers: Any) -> Encryption:
        resources = [{"resources": ["secrets"], "providers": list(providers)}]
        content = {
            "kind": "EncryptionConfiguration",
            "apiVersion": "apiserver.config.k8s.io/v1",
            "resources": resources,
        }
        return parse(content, Simulation(1).ids)

    old = {"aesgcm": {"keys": [{"name": "old", "secret": key}]}}
    new = {"aesgcm": {"keys": [{"name": "new", "secret": key}]}}
    used = values(encryption(old))
    place = b"/registry/secrets/n/a"
    draft = used.draft(SECRETS, place, encoded(used, {"metadata": {"name": "a"}, "data": {"p": "cGFzcw=="}}))
    assert draft.value.startswith(b"k8s:enc:aesgcm:v1:old:")
    assert b"cGFzcw" not in draft.value
    assert b"pass" not in draft.value
    assert msgspec.json.decode(used.read(SECRETS, place, draft.value, 5)) == msgspec.json.decode(draft.data(5))
    assert not used.is_outdated(place)
    rotated = values(encryption(new, old))
    rotated.read(SECRETS, place, draft.value, 5)
    assert rotated.is_outdated(place)
    with pytest.raises(UnusableStore, match="cannot be decrypted"):  # moved to another key
        used.read(SECRETS, b"/registry/secrets/n/b", draft.value, 5)


def test_a_definition_that_kube_apiserver_stored_is_read_in_v1() -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    columns = [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}]
    hook = {"url": "https://h.example"}
    spec = {
        "group": "example.com",
        "version": "v1",
        "names": {"plural": "widgets"},
        "scope": "Namespaced",
        "validation": schema,
        "additionalPrinterColumns": columns,
        "versions": [{"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False}],
        "conversion": {"strategy": "Webhook", "webhookClientConfig": hook, "conversionReviewVersions": ["v1"]},
        "preserveUnknownFields": False,
    }
    common = {"schema": schema, "additionalPrinterColumns": [{**columns[0], "jsonPath": ".spec.size"}]}
    del common["additionalPrinterColumns"][0]["JSONPath"]
    assert from_v1beta1({"spec": spec})["spec"] == {
        "group": "example.com",
        "names": {"plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, **common},
            {"name": "v2", "served": True, "storage": False, **common},
        ],
        "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": hook, "conversionReviewVersions": ["v1"]}},
    }


def test_protobuf_of_a_range_allocation_is_known() -> None:
    assert protobuf.has_protobuf("v1", "RangeAllocation")


def test_a_value_in_another_media_type_or_version_is_outdated() -> None:
    key = b"/registry/configmaps/n/a"
    obj = {"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "data": {"k": "v"}}
    for as_protobuf in (True, False):
        used, other = values(protobuf=as_protobuf), values(protobuf=not as_protobuf)
        draft = used.draft(MAPS, key, encoded(used, obj))
        for reader, is_outdated in ((used, False), (other, True)):
            reader.read(MAPS, key, draft.value, 7)
            assert reader.is_outdated(key) is is_outdated
    scaler = Collection("horizontalpodautoscalers.autoscaling", describe)
    written = b'{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"a"}}'
    as_json = values(protobuf=False)
    as_json.read(scaler, key, written, 7)
    assert as_json.is_outdated(key)
    as_json.read(scaler, key, written.replace(b"autoscaling/v1", b"autoscaling/v2"), 8)
    assert not as_json.is_outdated(key)
