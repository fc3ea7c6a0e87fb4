"""Wrong arguments: the error says what was given and what is wanted, and shows nothing of an object's content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import Widget, WidgetSpec, config_map

from ostinato.api.errors import NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MetadataOf, NoSuchKind
from ostinato.kinds.core_v1 import ConfigMap, Secret

Verb = Callable[[Client], Any]


def refused(verb: Verb, error: type[Exception], words: str) -> None:
    @staged
    async def play(stage: Stage) -> None:
        with pytest.raises(error) as caught:
            await verb(stage.client)
        assert str(caught.value) == words

    play()


@pytest.mark.parametrize("verb", ["create", "update", "apply"])
def test_a_class_is_not_an_object(verb: str) -> None:
    refused(
        lambda client: getattr(client, verb)(Widget),
        TypeError,
        f"{verb}() got the class Widget, which is not an object; "
        'pass an instance, e.g. Widget(metadata=ObjectMeta(name="..."), ...)',
    )


def test_a_class_may_be_deleted_or_patched_by_name_alone() -> None:
    example = 'pass an instance, e.g. Widget(metadata=ObjectMeta(name="..."), ...)'
    refused(
        lambda client: client.delete(Widget),
        TypeError,
        f"delete() got the class Widget, which is not an object; {example}, or the class and a name",
    )
    for patch in (lambda client: client.patch(Widget), lambda client: client.patch(Widget, "a")):
        refused(
            patch,
            TypeError,
            f"patch() got the class Widget, which is not an object; {example}, or the class, a name and a patch",
        )


@pytest.mark.parametrize(
    ("given", "summary"),
    [
        (None, "None"),
        ("Widget", "the text 'Widget'"),
        ([config_map("a")], "a list"),
        (WidgetSpec(), "a WidgetSpec"),
        (MetadataOf(ConfigMap), "MetadataOf of ConfigMap"),
        (WidgetSpec, "the class WidgetSpec"),
    ],
)
def test_an_argument_that_is_not_an_object_is_named(given: Any, summary: str) -> None:
    wanted = "an instance of a class of ostinato.kinds or of a CustomResource, or a dict with apiVersion and kind"
    for verb in ("create", "update", "apply", "delete", "patch"):
        refused(
            lambda client, verb=verb: getattr(client, verb)(given),  # type: ignore[misc]
            TypeError,
            f"{verb}() got {summary}, which is not an object; pass {wanted}",
        )


def test_metadata_that_is_a_dict_is_rejected() -> None:
    wrong = Widget(metadata={"name": "a"})  # type: ignore[arg-type]
    for verb in ("create", "update", "apply", "delete", "patch"):
        refused(
            lambda client, verb=verb: getattr(client, verb)(wrong),  # type: ignore[misc]
            TypeError,
            'Widget: metadata: expected ObjectMeta, got dict; write metadata=ObjectMeta(name="...")',
        )


def test_an_object_in_place_of_its_kind_is_named_and_its_content_is_not_shown() -> None:
    secret = Secret(metadata=ObjectMeta(name="a"), string_data={"password": "swordfish"})
    for verb in (
        lambda client: client.get(secret, "a"),
        lambda client: client.list(secret),
        lambda client: client.delete_all_of(secret),
        lambda client: client.wait_for(secret, "a", "Ready", timeout=1),
    ):
        refused(verb, TypeError, "the object Secret a is not a kind; pass its class, Secret")


def test_a_dict_in_place_of_a_patch_is_not_shown() -> None:
    refused(
        lambda client: client.patch(Secret, "a", {"stringData": {"password": "swordfish"}}),
        TypeError,
        "patch() got a dict, which is not a patch; pass its type, e.g. MergePatch({...})",
    )


@pytest.mark.parametrize(
    ("given", "summary"),
    [
        (None, "None"),
        (3, "an int"),
        (("default", "a"), "a tuple"),
        (config_map("a"), "the object ConfigMap default/a"),
    ],
)
def test_an_argument_that_is_not_a_key_is_named(given: Any, summary: str) -> None:
    refused(
        lambda client: client.get(ConfigMap, given),
        TypeError,
        f"ConfigMap: {summary} is not a key; "
        'pass a name, NamespacedName("namespace", "name"), a request or the metadata of an object',
    )


def test_a_selector_that_cannot_be_read_is_shown() -> None:
    refused(
        lambda client: client.list(ConfigMap, labels="a=b=c"),
        ValueError,
        "labels 'a=b=c': found '=', expected: ',' or 'end of string'",
    )


@staged
async def test_the_error_of_a_missing_kind_has_the_name_of_its_definition(stage: Stage) -> None:
    with pytest.raises(NoSuchKind) as caught:
        await stage.client.get(Widget, "a")
    assert str(caught.value) == (
        'no matches for kind "Widget" in version "example.dev/v1"; is its definition widgets.example.dev installed?'
    )


@staged
async def test_a_missing_subresource_is_named(stage: Stage) -> None:
    await stage.client.create(config_map("a"))
    with pytest.raises(NotFound) as caught:
        await stage.client.scale.set(ConfigMap, "a", 3)
    assert str(caught.value) == 'ConfigMap a: the kind has no subresource "scale"'
