"""Status errors: words and codes compared with Go; how clients read answers."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path as File
from typing import Any

import pytest

from ostinato.api import errors
from ostinato.api.errors import APIError, from_response, from_status, generic
from ostinato.api.gvk import GroupKind, GroupResource
from ostinato.api.status import (
    FIELD_MANAGER_CONFLICT,
    RESOURCE_VERSION_TOO_LARGE,
    UNEXPECTED_SERVER_RESPONSE,
    Status,
    StatusCause,
    StatusDetails,
)
from ostinato.api.validation.field_errors import ErrorType, FieldError, Path

VECTORS = json.loads((File(__file__).parents[2] / "data/errors/status.json").read_text())
PODS = GroupResource("", "pods")

REASONS = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Gone": 410,
    "Expired": 410,
    "RequestEntityTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServerTimeout": 500,
    "StorageReadError": 500,
    "ServiceUnavailable": 503,
    "Timeout": 504,
}


def make(call: str, args: list[Any]) -> APIError:
    if call.startswith("invalid"):
        a = FieldError.invalid(Path("spec", "a"), 1, "bad")
        b = FieldError.required(Path("spec").key("b"))
        lists = [[], [a], [a, a], [a, b], [a, b, a]]
        return errors.Invalid.of(GroupKind("apps", "Deployment"), "x", lists[int(call[-1])])
    args = [GroupResource(*arg) if isinstance(arg, list) else arg for arg in args]
    if call == "generic":
        code, verb, resource, name, message, retry_after, unexpected = args
        return generic(code, verb, resource, name, message, retry_after=retry_after, unexpected=unexpected)
    kind, _, constructor = call.partition(".")
    error = getattr(getattr(errors, kind), constructor)(*args)
    assert isinstance(error, APIError)
    return error


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['call']}-{vector['args']}"[:60])
def test_every_error_is_the_status_that_go_makes(vector: dict[str, Any]) -> None:
    error = make(vector["call"], vector["args"])
    assert error.to_dict() == vector["status"]
    assert str(error) == vector["status"].get("message", "")


def test_keys_are_written_in_the_order_of_kube_apiserver() -> None:
    error = errors.Invalid.of(GroupKind("", "Pod"), "a", [FieldError.required(Path("spec"))])
    answer = error.to_dict()
    assert list(answer) == ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"]
    assert list(answer["details"]) == ["name", "kind", "causes"]
    assert list(answer["details"]["causes"][0]) == ["reason", "message", "field"]
    json.dumps(answer)


@pytest.mark.parametrize(("reason", "code"), REASONS.items())
def test_each_reason_is_a_class_with_its_code(reason: str, code: int) -> None:
    error = from_status({"kind": "Status", "apiVersion": "v1", "reason": reason, "code": code, "message": "m"})
    assert type(error) is getattr(errors, reason)
    assert (error.reason, error.code, error.message) == (reason, code, "m")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.MethodNotAllowed),
        (406, errors.NotAcceptable),
        (409, errors.Conflict),
        (410, errors.Gone),
        (413, errors.RequestEntityTooLarge),
        (415, errors.UnsupportedMediaType),
        (422, errors.Invalid),
        (429, errors.TooManyRequests),
        (500, errors.InternalError),
        (503, errors.ServiceUnavailable),
        (504, errors.Timeout),
        (418, errors.Unknown),
    ],
)
@pytest.mark.parametrize("reason", ["", "NobodyKnowsThis"])
def test_the_code_decides_where_the_reason_is_unknown(code: int, kind: type[APIError], reason: str) -> None:
    error = from_status({"reason": reason, "code": code})
    assert type(error) is kind
    assert error.reason == reason


def test_a_known_reason_beats_the_code() -> None:
    assert type(from_status({"reason": "Expired", "code": 404})) is errors.Expired


@pytest.mark.parametrize(("code", "kind"), [(429, errors.TooManyRequests), (413, errors.RequestEntityTooLarge)])
def test_two_codes_decide_whatever_the_reason(code: int, kind: type[APIError]) -> None:
    assert type(from_status({"reason": "Forbidden", "code": code})) is kind


@pytest.mark.parametrize(("verb", "kind"), [("POST", errors.AlreadyExists), ("PUT", errors.Conflict)])
def test_409_without_a_body_means_exists_for_post_and_conflict_otherwise(verb: str, kind: type[APIError]) -> None:
    error = from_response(409, b"", verb=verb, resource=PODS, name="a")
    assert type(error) is kind
    assert str(error) == f"the server reported a conflict ({verb.lower()} pods a)"


def test_an_unknown_failure_of_the_server_is_an_internal_error() -> None:
    error = from_response(502, b" bad gateway\n", verb="GET")
    assert type(error) is errors.InternalError
    assert str(error) == 'an error on the server ("bad gateway") has prevented the request from succeeding'
    assert error.has_cause("UnexpectedServerResponse")


def test_a_body_that_is_neither_status_nor_text_is_not_quoted() -> None:
    error = from_response(500, b'{"kind":"Pod"}', content_type="application/json")
    assert '"unknown"' in str(error)


def test_a_long_body_is_cut() -> None:
    assert len(str(from_response(500, b"x" * 100_000, content_type="text/plain"))) < 3000


def test_the_retry_after_header_of_a_bare_answer_is_kept() -> None:
    assert from_response(503, b"", retry_after=7).retry_after == 7


def test_a_status_in_the_body_is_read() -> None:
    body = json.dumps(errors.NotFound.of(PODS, "a").to_dict()).encode()
    error = from_response(404, body, verb="GET")
    assert type(error) is errors.NotFound
    assert (error.details.name, error.details.kind) == ("a", "pods")


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff", b"[]", b'{"kind":"Status","apiVersion":"v2"}'])
def test_a_broken_body_still_gives_an_error_for_the_code(body: bytes) -> None:
    assert type(from_response(404, body)) is errors.NotFound


def test_the_http_code_stands_in_for_a_missing_code() -> None:
    error = from_response(403, b'{"kind":"Status","apiVersion":"v1","message":"no"}')
    assert type(error) is errors.Forbidden
    assert error.code == 403


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (errors.TooManyRequests.of("m", 3), 3),
        (errors.TooManyRequests.of("m", 0), None),
        (errors.ServerTimeout.of(PODS, "get", 0), 0),
        (errors.ServerTimeout.of(PODS, "get", 2), 2),
        (errors.BadRequest.of("m"), None),
        (errors.Timeout.resource_version_too_large(9, 5), 1),
        (from_status({"reason": "ServerTimeout"}), None),
    ],
)
def test_a_delay_is_asked_for_by_seconds_or_by_any_server_timeout(error: APIError, seconds: int | None) -> None:
    assert error.retry_after == seconds


def test_values_of_wrong_types_count_as_absent() -> None:
    error = from_status(
        {
            "message": 1,
            "reason": [],
            "code": "x",
            "metadata": 1,
            "details": {"name": 1, "retryAfterSeconds": True, "causes": [1, {"field": 2, "message": "m"}]},
        }
    )
    assert (error.message, error.reason, error.code) == ("", "", 0)
    assert error.causes == (StatusCause(message="m"),)
    assert from_status({"details": {"causes": 1}}).causes == ()


def test_a_status_survives_the_way_there_and_back() -> None:
    status = Status(
        message="m",
        reason="Conflict",
        details=StatusDetails("a", "g", "k", "u", (StatusCause("r", "m", "f"),), 3),
        code=409,
        metadata={"resourceVersion": "1"},
    )
    assert Status.from_dict(status.to_dict()) == status
    assert type(from_status(status)) is errors.Conflict


@pytest.mark.parametrize("vector", VECTORS[:60:7], ids=lambda vector: vector["call"])
def test_errors_can_be_pickled_and_copied(vector: dict[str, Any]) -> None:
    error = make(vector["call"], vector["args"])
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert twin.to_dict() == error.to_dict()


def test_repr_names_the_object_and_quotes_no_values() -> None:
    error = errors.Invalid.of(GroupKind("", "Secret"), "a", [FieldError.invalid(Path("data"), "hunter2", "bad")])
    assert repr(error) == '<Invalid 422 Secret "a">'
    assert "hunter2" not in repr(error)
    assert repr(errors.BadRequest.of("x")) == "<BadRequest 400>"


def test_an_apply_conflict_has_a_cause_a_field() -> None:
    causes = [StatusCause(FIELD_MANAGER_CONFLICT, 'conflict with "x"', ".spec.replicas")]
    error = errors.Conflict.of_apply(causes, "Apply failed with 1 conflict")
    assert error.to_dict()["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "x"', "field": ".spec.replicas"}]
    }


def test_every_type_of_cause_is_there() -> None:
    fields = {
        "NotFound",
        "Required",
        "Duplicate",
        "Invalid",
        "NotSupported",
        "Forbidden",
        "TooLong",
        "TooMany",
        "TypeInvalid",
    }
    assert {f"FieldValue{field}" for field in fields} | {"InternalError"} <= set(ErrorType)
    others = {UNEXPECTED_SERVER_RESPONSE, FIELD_MANAGER_CONFLICT, RESOURCE_VERSION_TOO_LARGE}
    assert others == {"UnexpectedServerResponse", "FieldManagerConflict", "ResourceVersionTooLarge"}


def test_media_types_are_named_in_refusals() -> None:
    types = ["application/json", "application/yaml"]
    assert str(errors.NotAcceptable.of(types)) == (
        "only the following media types are accepted: application/json, application/yaml"
    )
    assert str(errors.NotAcceptable.of(types[:1], converting_to="meta.k8s.io/v1, Kind=Table")) == (
        "only the following media types are accepted when converting to meta.k8s.io/v1, Kind=Table: application/json"
    )
    assert str(errors.UnsupportedMediaType.of(types)) == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml"
    )


def test_an_error_without_a_reason_has_none_in_its_status() -> None:
    assert errors.Unknown.of("oops").to_dict() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "oops",
        "code": 500,
    }
    assert errors.StorageReadError.of("bad").reason == "StorageReadError"


def test_all_are_caught_as_api_errors() -> None:
    with pytest.raises(APIError, match='pods "a" not found'):
        raise errors.NotFound.of(PODS, "a")
