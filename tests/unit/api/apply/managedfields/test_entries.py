"""Entries of managedFields, and those of a Scale."""

from __future__ import annotations

import pytest

from ostinato.api.apply.managedfields.entries import ManagedFieldsError, decode, encode, identity_text
from ostinato.api.apply.managedfields.scale import ScaleOwnership
from ostinato.api.apply.managedfields.updater import Identity


def test_entries_are_written_in_the_order_of_kubernetes() -> None:
    entry = {
        "subresource": "status",
        "fieldsV1": {"f:a": {}},
        "fieldsType": "FieldsV1",
        "time": "2024-01-01T00:00:00Z",
        "apiVersion": "v1",
        "operation": "Update",
        "manager": "m",
    }
    (written,) = encode(decode([entry]))
    assert written == entry
    assert list(written) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"]
    assert (
        identity_text(Identity("m", "Apply", "", "scale"))
        == '{"manager":"m","operation":"Apply","subresource":"scale"}'
    )
    with pytest.raises(ManagedFieldsError, match='invalid fieldsType "F2" in managed fields entry 0'):
        decode([{**entry, "fieldsType": "F2"}])


def test_a_parent_without_replicas_in_a_version_keeps_its_owners() -> None:
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "x/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:a": {}},
    }
    owners = ScaleOwnership([entry], "x/v1", {"x/v1": None})
    assert owners.to_scale() == []
    replicas = {**entry, "manager": "n", "apiVersion": "autoscaling/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    assert owners.to_parent([replicas]) == [entry]
