"""Content negotiation: Accept headers and content types."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.errors import APIError, UnsupportedMediaType
from ostinato.server.request import Request
from ostinato.server.request.negotiate import PLAIN, Form, body_media, form_of, status_form

META = "g=meta.k8s.io;v=v1"
TABLE = f"application/json;as=Table;{META}"


class Kind:
    """The attributes of a resource that negotiation uses."""

    def __init__(self, *, custom: bool = False, table: bool = True) -> None:
        self.custom = custom
        self.row: Any = list if table else None


def asked(accept: str, query: str = "", agent: str = "go") -> Request:
    return Request("GET", "/", query, {"accept": accept, "user-agent": agent})


def form(accept: str, query: str = "", agent: str = "go", **kind: bool) -> Form:
    resource: Any = Kind(**kind)
    return form_of(asked(accept, query, agent), resource, watchable=True)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("application/json", PLAIN),
        ("application/json;pretty=1", Form(pretty=True)),
        ("text/html, application/yaml;q=0.9, application/json;q=0.8", Form("yaml")),
        ("*/*;q=0.1, application/yaml", Form("yaml")),
        ("application/vnd.kubernetes.protobuf", Form("protobuf")),
        ("application/vnd.kubernetes.protobuf,application/json", PLAIN),
        ("application/vnd.kubernetes.protobuf, */*", PLAIN),
        ("application/json;stream=watch", PLAIN),
        (TABLE, Form(convert="Table")),
        (f"{TABLE}beta1", Form(convert="Table", version="v1beta1")),
        (f"application/json;as=Nonsense;{META}, {TABLE}", Form(convert="Table")),
        (f"{TABLE}, application/json", Form(convert="Table")),
        ("application/json;as=Table;g=other;v=v1, application/json", PLAIN),
        (f"application/yaml;as=PartialObjectMetadata;{META}", Form("yaml", "PartialObjectMetadata")),
        ("application/json;q=nonsense", PLAIN),
        ("application/json;sv=v1;export=1;profile=x;=;a", PLAIN),
    ],
)
def test_the_first_clause_that_can_be_met_counts(accept: str, expected: Form) -> None:
    assert form(accept) == expected


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("text/html", "406: Not Acceptable\n\nAvailable representations: application/json, "),
        ("application/*", "406: Not Acceptable\n\n"),
        ("application", "406: Not Acceptable\n\n"),
        (f"application/json;as=Nonsense;{META}", "only the following media types are accepted: "),
        (f"application/vnd.kubernetes.protobuf;as=Table;{META}", "only the following media types are accepted: "),
        ("application/json;v=v1", "only the following media types are accepted: "),
        ("application/json;sv=v2", "only the following media types are accepted: "),
        ("application/yaml;stream=watch", "only the following media types are accepted: "),
        ("application/json;stream=other", "only the following media types are accepted: "),
    ],
)
def test_if_no_clause_can_be_satisfied_the_supported_types_are_listed(accept: str, message: str) -> None:
    with pytest.raises(APIError) as refused:
        form(accept)
    assert refused.value.code == 406
    assert refused.value.message.startswith(message)
    assert status_form(asked(accept)) in (PLAIN, Form(pretty=True), Form("yaml"))


def test_custom_resources_have_no_protobuf_and_know_wildcards() -> None:
    assert form("application/*", custom=True) == PLAIN
    assert form("*", custom=True) == PLAIN
    for accept in ("application/vnd.kubernetes.protobuf", "a/b/c", "text/html"):
        with pytest.raises(APIError) as refused:
            form(accept, custom=True)
        assert refused.value.message.startswith("only the following media types are accepted: ")


def test_kinds_without_a_table_refuse_one() -> None:
    with pytest.raises(APIError):
        form(TABLE, table=False)


@pytest.mark.parametrize(
    ("query", "agent", "pretty"),
    [
        ("", "curl/8", True),
        ("", "Wget", True),
        ("", "Mozilla/5.0 (X)", True),
        ("", "kubectl", False),
        ("pretty=true", "kubectl", True),
        ("pretty=0", "curl/8", False),
        ("pretty=", "curl/8", True),
        ("pretty=nonsense", "curl/8", False),
    ],
)
def test_people_get_indented_answers(query: str, agent: str, *, pretty: bool) -> None:
    assert form("*/*", query, agent).pretty is pretty
    assert form(TABLE, query, agent).pretty is pretty
    assert status_form(asked("application/json;q=1", query, agent)).pretty is pretty
    assert status_form(asked("", query, agent)).pretty is pretty


def test_a_table_row_includes_the_requested_object() -> None:
    assert form(TABLE, "includeObject=Object").include == "Object"
    assert form(TABLE, "includeObject=").include == "Metadata"
    assert form("application/json;q=1", "includeObject=Nonsense").include == "Metadata"
    with pytest.raises(APIError) as refused:
        form(TABLE, "includeObject=Nonsense")
    assert refused.value.message.startswith("Unable to convert to Table as requested: includeObject: Invalid value: ")


def test_errors_are_never_converted() -> None:
    assert status_form(asked(f"{TABLE}, application/yaml")) == Form("yaml")
    assert status_form(asked(TABLE)) == Form(pretty=True)


@pytest.mark.parametrize(
    ("content_type", "media"),
    [
        ("", "json"),
        ("application/json; charset=utf-8", "json"),
        ("Application/YAML;", "yaml"),
        ("application/vnd.kubernetes.protobuf", "protobuf"),
        ("application/json;foo", None),
        ("text/plain", None),
        (";", None),
    ],
)
def test_bodies_are_read_in_three_forms(content_type: str, media: str | None) -> None:
    request = Request("POST", "/", headers={"content-type": content_type})
    if media is None:
        with pytest.raises(UnsupportedMediaType):
            body_media(request)
    else:
        assert body_media(request) == media


def test_custom_resources_are_not_read_from_protobuf() -> None:
    with pytest.raises(UnsupportedMediaType):
        body_media(Request("POST", "/", headers={"content-type": "application/vnd.kubernetes.protobuf"}), custom=True)
