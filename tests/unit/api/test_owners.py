from __future__ import annotations

import json
import re
from pathlib import Path as FilePath
from typing import Any

import pytest

from ostinato.api import owners
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import from_dict, to_dict
from ostinato.api.meta import ObjectMeta, OwnerReference
from ostinato.api.object import CustomResource
from ostinato.api.owners import AlreadyOwned, OwnerError
from ostinato.api.validation.field_errors import Path

GO = json.loads((FilePath(__file__).parents[2] / "data" / "kinds" / "go_owner_references.json").read_text())


class Widget(CustomResource, group="example.dev", version="v1"):
    pass


class WidgetV2(CustomResource, group="example.dev", version="v2", kind="Widget"):
    pass


class Fleet(CustomResource, group="example.dev", version="v1", namespaced=False):
    pass


@pytest.fixture(params=["typed", "dict"])
def form(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def made(form: str, cls: type[CustomResource], name: str, namespace: str = "default", uid: str = "") -> AnyObject:
    instance = cls(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid or f"uid-{name}"))
    return instance if form == "typed" else to_dict(instance)


@pytest.fixture
def owner(form: str) -> AnyObject:
    return made(form, Widget, "owner")


@pytest.fixture
def owned(form: str) -> AnyObject:
    return made(form, Widget, "owned")


def references(instance: AnyObject) -> Any:
    document = instance if isinstance(instance, dict) else to_dict(instance)
    return document["metadata"].get("ownerReferences")


def test_a_controller_manages_and_holds_up_the_deletion_of_its_owner(owner: AnyObject, owned: AnyObject) -> None:
    assert owners.set_controller_reference(owner, owned)
    assert references(owned) == [
        {
            "apiVersion": "example.dev/v1",
            "kind": "Widget",
            "name": "owner",
            "uid": "uid-owner",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert owners.controller_of(owned) == owners.controller_reference_to(owner)
    assert owners.has_owner_reference(owner, owned)


def test_setting_it_again_changes_nothing(owner: AnyObject, owned: AnyObject) -> None:
    owners.set_controller_reference(owner, owned)
    assert not owners.set_controller_reference(owner, owned)
    assert len(owners.owner_references(owned)) == 1


def test_the_deletion_of_the_owner_need_not_wait(owner: AnyObject, owned: AnyObject) -> None:
    owners.set_controller_reference(owner, owned, block_owner_deletion=False)
    assert references(owned)[0]["blockOwnerDeletion"] is False


def test_controlled_by_goes_by_uid_alone(form: str, owner: AnyObject, owned: AnyObject) -> None:
    owners.set_controller_reference(owner, owned)
    assert owners.is_controlled_by(owned, owner)
    assert owners.is_controlled_by(owned, made(form, Fleet, "other", namespace="", uid="uid-owner"))
    assert not owners.is_controlled_by(owned, made(form, Widget, "owner", uid="made-anew"))


def test_an_object_without_a_controller_reference_has_no_controller(owner: AnyObject, owned: AnyObject) -> None:
    owners.set_owner_reference(owner, owned)
    assert owners.controller_of(owned) is None
    assert not owners.is_controlled_by(owned, owner)


def test_another_controller_is_rejected_by_name(form: str, owner: AnyObject, owned: AnyObject) -> None:
    owners.set_controller_reference(owner, owned)
    with pytest.raises(AlreadyOwned) as caught:
        owners.set_controller_reference(made(form, Widget, "thief"), owned)
    assert re.fullmatch(
        r"\w+ default/owned is already owned by another Widget controller owner \(uid uid-owner\); "
        r"use another name, or delete it",
        str(caught.value),
    )
    assert caught.value.owner.uid == "uid-owner"
    assert len(owners.owner_references(owned)) == 1


def test_the_same_owner_in_another_version_replaces_the_reference(
    form: str, owner: AnyObject, owned: AnyObject
) -> None:
    owners.set_controller_reference(owner, owned)
    assert owners.set_controller_reference(made(form, WidgetV2, "owner"), owned)
    assert [each["apiVersion"] for each in references(owned)] == ["example.dev/v2"]


def test_a_plain_owner_is_added_beside_the_controller(form: str, owner: AnyObject, owned: AnyObject) -> None:
    owners.set_controller_reference(owner, owned)
    assert owners.set_owner_reference(made(form, Fleet, "fleet", namespace=""), owned)
    assert not owners.set_owner_reference(made(form, Fleet, "fleet", namespace=""), owned)
    assert references(owned)[1] == {
        "apiVersion": "example.dev/v1",
        "kind": "Fleet",
        "name": "fleet",
        "uid": "uid-fleet",
    }


def test_an_owner_in_another_namespace_is_rejected(form: str, owned: AnyObject) -> None:
    stranger = made(form, Widget, "owner", namespace="other")
    for change in (owners.set_controller_reference, owners.set_owner_reference):
        with pytest.raises(OwnerError) as caught:
            change(stranger, owned)  # type: ignore[operator]
        assert str(caught.value) == (
            "Widget default/owned: cross-namespace owner references are disallowed, its owner is Widget other/owner; "
            "leave out owner=, and delete the object in a finalizer of the owner"
        )


def test_a_namespaced_owner_of_a_cluster_scoped_object_is_rejected(form: str, owner: AnyObject) -> None:
    with pytest.raises(OwnerError) as caught:
        owners.set_controller_reference(owner, made(form, Fleet, "fleet", namespace=""))
    assert str(caught.value) == (
        "Fleet fleet: cluster-scoped resource must not have a namespace-scoped owner, Widget default/owner; "
        "leave out owner=, and delete the object in a finalizer of the owner"
    )


def test_an_owner_that_is_not_stored_yet_is_rejected(form: str, owned: AnyObject) -> None:
    unborn: AnyObject = Widget(metadata=ObjectMeta(name="owner", namespace="default"))
    if form == "dict":
        unborn = to_dict(unborn)  # type: ignore[arg-type]
    with pytest.raises(OwnerError, match="Widget default/owner has no uid"):
        owners.set_controller_reference(unborn, owned)


def test_an_owner_is_removed(form: str, owner: AnyObject, owned: AnyObject) -> None:
    owners.set_controller_reference(owner, owned)
    owners.set_owner_reference(made(form, Fleet, "fleet", namespace=""), owned)
    assert owners.remove_owner_reference(owner, owned)
    assert not owners.remove_owner_reference(owner, owned)
    assert [each["kind"] for each in references(owned)] == ["Fleet"]
    assert owners.remove_owner_reference(made(form, Fleet, "fleet", namespace=""), owned)
    assert references(owned) is None
    assert not owners.has_owner_reference(owner, owned)


@pytest.mark.parametrize("odd", [{}, {"metadata": []}, {"metadata": {"ownerReferences": [1, None]}}])
def test_invalid_references_are_ignored(odd: dict[str, Any]) -> None:
    assert owners.owner_references(odd) == []
    assert owners.controller_of(odd) is None


@pytest.mark.parametrize("case", GO, ids=lambda case: str(len(case["errors"])))
def test_references_are_rejected_in_the_words_of_the_api_server(case: dict[str, Any]) -> None:
    given = [from_dict(OwnerReference, reference) for reference in case["references"]]
    found = owners.validate_owner_references(given, Path("metadata", "ownerReferences"))
    assert [str(error) for error in found] == case["errors"]
