"""Repeated keys, read as Go reads them into its types."""

from __future__ import annotations

import json

import pytest

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import builtin_schemas
from ostinato.api.wire import decode_json
from ostinato.api.wire.duplicate_keys import decode_repeated, repeats_keys

DEPLOYMENT = builtin_schemas().of(GroupVersionKind("apps", "v1", "Deployment"))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('{"kind": "a", "kind": "b"}', {"kind": "b"}),
        # A struct is read over the first.
        (
            '{"metadata": {"name": "a", "uid": "u"}, "metadata": {"name": "b"}}',
            {"metadata": {"name": "b", "uid": "u"}},
        ),
        # A map, too, but not the values in it.
        ('{"metadata": {"labels": {"a": "1"}, "labels": {"b": "2"}}}', {"metadata": {"labels": {"a": "1", "b": "2"}}}),
        # A list is read over its elements.
        (
            (
                '{"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}],'
                ' "containers": [{"name": "c"}]}}}}'
            ),
            {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}},
        ),
        # What has no fields that are known is taken as it is.
        ('{"odd": {"a": 1}, "odd": {"b": 2}}', {"odd": {"b": 2}}),
        ('{"odd": [1], "odd": [2, {"x": 1, "x": 2}]}', {"odd": [2, {"x": 2}]}),
    ],
)
def test_the_second_value_is_read_over_the_first(text: str, meaning: object) -> None:
    assert DEPLOYMENT is not None
    assert decode_repeated(text.encode(), DEPLOYMENT) == meaning


def test_a_text_without_duplicate_keys_is_decoded_normally() -> None:
    assert DEPLOYMENT is not None
    value = {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}, "odd": [{}]}
    text = json.dumps(value).encode()
    assert decode_repeated(text, DEPLOYMENT) == value
    assert not repeats_keys(text, value)


def test_a_repeated_key_is_noticed_wherever_it_is() -> None:
    for text in (
        b'{"a": 1, "a": 2}',
        b'{"a": [{"b": 1, "b": 1}]}',
        b'{"a": {"\\u0061": 1, "a": 2}}',
        b'{"a": 1, "a": "\\u003a"}',  # as many colons as in what it means
        b'{"a": ":", "a": "\\":"}',
    ):
        assert repeats_keys(text, decode_json(text))


def test_colons_in_values_are_not_taken_for_those_of_keys() -> None:
    for text in (b'{"a": ":::"}', b'{"image": "a:1", "\\u003a": "b:2"}', b'{ "a" : "\\":" }', b'{"\\\\": 1}'):
        value = decode_json(text)
        assert not repeats_keys(text, value) or len(value) == 1
