"""Options: query parameters as Go parses them, and invalid combinations."""

from __future__ import annotations

import pytest

from ostinato.api.errors import APIError, BadRequest
from ostinato.server.request import Request
from ostinato.server.request.options import (
    DeleteOptions,
    WriteOptions,
    check_list_options,
    delete_options,
    list_options,
    write_options,
)


def asked(query: str) -> Request:
    return Request("GET", "/", query)


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("-1", -1), ("%2B1", 1), ("", None), ("x", None), ("1_0", None), ("9" * 19, None), ("9" * 5000, None)],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    if number is None:
        with pytest.raises(BadRequest, match=r"strconv\.ParseInt: parsing"):
            list_options(asked(f"limit={text}"))
    else:
        assert list_options(asked(f"limit={text}")).limit == number


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("", True), ("x", True), ("0", False), ("FALSE", False), ("false", False)]
)
def test_a_flag_is_set_by_anything_but_zero_and_false(text: str, *, value: bool) -> None:
    assert list_options(asked(f"allowWatchBookmarks={text}")).bookmarks is value


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("resourceVersionMatch=Exact", ["resourceVersionMatch"]),
        ("resourceVersionMatch=Exact&resourceVersion=0", ["resourceVersionMatch"]),
        ("resourceVersionMatch=Odd&resourceVersion=1&continue=x", ["resourceVersionMatch", "resourceVersionMatch"]),
        ("sendInitialEvents=1", ["sendInitialEvents"]),
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1", []),
    ],
)
def test_invalid_combinations_of_list_options(query: str, fields: list[str]) -> None:
    if not fields:
        check_list_options(list_options(asked(query)), watch=False)
        return
    with pytest.raises(APIError) as refused:
        check_list_options(list_options(asked(query)), watch=False)
    assert [cause.field for cause in refused.value.causes] == fields


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("resourceVersionMatch=NotOlderThan&resourceVersion=1", ["resourceVersionMatch"]),
        ("sendInitialEvents=1&resourceVersionMatch=Exact&continue=x", ["resourceVersionMatch"] * 3),
        ("sendInitialEvents=0", ["resourceVersionMatch"]),
        ("sendInitialEvents=1&resourceVersionMatch=NotOlderThan", []),
    ],
)
def test_invalid_combinations_of_watch_options(query: str, fields: list[str]) -> None:
    if not fields:
        check_list_options(list_options(asked(f"watch=1&{query}")), watch=True)
        return
    with pytest.raises(APIError) as refused:
        check_list_options(list_options(asked(f"watch=1&{query}")), watch=True)
    assert [cause.field for cause in refused.value.causes] == fields


def test_options_of_a_write() -> None:
    assert write_options(asked(""), "CreateOptions") == WriteOptions()
    query = "dryRun=All&dryRun=All&fieldManager=m&fieldValidation=Strict&force=1"
    assert write_options(asked(query), "CreateOptions") == WriteOptions(
        dry_run=True, field_manager="m", field_validation="Strict", force=True
    )
    with pytest.raises(APIError) as refused:
        write_options(asked("dryRun=All&dryRun=&fieldManager=%01&fieldValidation=x"), "CreateOptions")
    assert [cause.field for cause in refused.value.causes] == ["fieldManager", "dryRun", "fieldValidation"]


def test_delete_options_are_read_from_the_body_or_the_query() -> None:
    assert delete_options(asked(""), None) == DeleteOptions()
    query = "gracePeriodSeconds=5&propagationPolicy=Orphan&dryRun=All"
    assert delete_options(asked(query), None) == DeleteOptions(grace=5, propagation="Orphan", dry_run=True)
    body = {"preconditions": {"uid": "u", "resourceVersion": "5"}, "orphanDependents": False}
    assert delete_options(asked(query), body) == DeleteOptions(uid="u", resource_version="5", orphan_dependents=False)
    with pytest.raises(APIError) as refused:
        delete_options(asked("propagationPolicy=x&orphanDependents=&dryRun=x"), None)
    assert [cause.field for cause in refused.value.causes] == ["propagationPolicy", "propagationPolicy", "dryRun"]
