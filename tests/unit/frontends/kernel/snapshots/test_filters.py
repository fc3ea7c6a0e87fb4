"""Filters in four languages over the same object."""

from __future__ import annotations

import pytest

from ostinato.frontends.kernel.snapshots.filters import (
    CelFilter,
    Filter,
    FilterError,
    JqFilter,
    JsonPathFilter,
    PythonFilter,
)

POD = b'{"metadata":{"labels":{"b":"1","a":"2"}},"spec":{"containers":[{"name":"x"},{"name":"y"}]}}'


@pytest.mark.parametrize(
    ("reduce", "result"),
    [
        (JqFilter(".metadata.labels"), b'{"a":"2","b":"1"}'),
        (JqFilter(".spec.containers[].name"), b'["x","y"]'),
        (JqFilter("empty"), b"null"),
        (JqFilter('.metadata.labels.a // "none"'), b'"2"'),
        (JsonPathFilter("{.metadata.labels}"), b'{"a":"2","b":"1"}'),
        (JsonPathFilter("{.spec.containers[*].name}"), b'["x","y"]'),
        (JsonPathFilter(".spec.replicas"), b"null"),
        (CelFilter("object.metadata.labels"), b'{"a":"2","b":"1"}'),
        (CelFilter("object.spec.containers.map(c, c.name)"), b'["x","y"]'),
        (PythonFilter(lambda pod: pod["metadata"]["labels"]), b'{"a":"2","b":"1"}'),
    ],
)
def test_a_filter_returns_json_with_sorted_keys(reduce: Filter, result: bytes) -> None:
    assert reduce.apply(POD) == result


@pytest.mark.parametrize(("language", "text"), [(JqFilter, ".a |"), (CelFilter, "object.("), (JsonPathFilter, "{.a[}")])
def test_a_syntax_error_is_reported_when_the_filter_is_made(language: type[Filter], text: str) -> None:
    with pytest.raises(FilterError, match="filter"):
        language(text)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "reduce",
    [JqFilter(".spec.containers.name"), CelFilter("object.missing.field"), PythonFilter(lambda pod: pod["missing"])],
)
def test_an_evaluation_error_names_the_filter(reduce: Filter) -> None:
    with pytest.raises(FilterError) as raised:
        reduce.apply(POD)
    assert reduce.text in str(raised.value)
