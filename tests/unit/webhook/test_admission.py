"""Reviews put to hooks: what is allowed, refused, warned of and changed, and in which words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from tests.unit.webhook.samples import Json, Widget, WidgetSpec, admission_review, asked, widget

from ostinato.api.errors import Conflict
from ostinato.api.gvk import GroupResource, GroupVersionKind
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.webhook import AdmissionRequest, Denied, defaulter, validator
from ostinato.webhook.response import sanitize_warnings

ODD = FieldError.invalid(Path("spec", "replicas"), 3, "must be even")


# Validators


def test_a_validator_that_finds_nothing_allows() -> None:
    @validator(Widget)
    def check(widget: Widget) -> None: ...

    answer = asked(check, admission_review(widget()))
    assert answer.review == {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": "705ab4f5", "allowed": True, "status": {"metadata": {}, "code": 200}},
    }


def test_a_refusal_is_forbidden_with_its_words() -> None:
    @validator(Widget)
    async def check(widget: Widget) -> None:
        raise Denied("not on Fridays")

    answer = asked(check, admission_review(widget()))
    assert (answer.http, answer.allowed) == (200, False)
    assert answer.status == {
        "metadata": {},
        "status": "Failure",
        "message": "not on Fridays",
        "reason": "Forbidden",
        "code": 403,
    }


def test_field_errors_have_the_servers_format() -> None:
    @validator(Widget)
    def check(widget: Widget) -> None:
        raise Denied(ODD, FieldError.required(Path("spec", "image")))

    answer = asked(check, admission_review(widget()))
    assert answer.status["code"] == 422
    assert answer.status["reason"] == "Invalid"
    assert answer.message == (
        'Widget.example.dev "a" is invalid: [spec.replicas: Invalid value: 3: must be even, spec.image: Required value]'
    )
    assert answer.status["details"]["causes"][0] == {
        "reason": "FieldValueInvalid",
        "message": "Invalid value: 3: must be even",
        "field": "spec.replicas",
    }


def test_a_text_beside_field_errors_is_one_message() -> None:
    @validator(Widget)
    def check(widget: Widget) -> None:
        raise Denied("not so", ODD)

    answer = asked(check, admission_review(widget()))
    assert (answer.status["code"], answer.message) == (403, "not so; spec.replicas: Invalid value: 3: must be even")
    assert str(Denied("not so", ODD)) == "not so; spec.replicas: Invalid value: 3: must be even"


def test_an_error_of_the_api_keeps_its_status() -> None:
    @validator(Widget)
    def check(widget: Widget) -> None:
        raise Conflict.of(GroupResource("example.dev", "widgets"), "a", "wait")

    status = asked(check, admission_review(widget())).status
    assert (status["code"], status["reason"]) == (409, "Conflict")


def returned_text(widget: Widget) -> str:
    return "careful"


def returned_list(widget: Widget) -> list[str]:
    return ["careful"]


async def awaited(widget: Widget) -> list[str]:
    return ["careful"]


def yielded(widget: Widget) -> Iterator[str]:
    yield "careful"


async def streamed(widget: Widget) -> AsyncIterator[str]:
    yield "careful"


def said(widget: Widget, request: AdmissionRequest) -> None:
    request.warn("careful")


@pytest.mark.parametrize("function", [returned_text, returned_list, awaited, yielded, streamed, said])
def test_warnings_may_be_returned_yielded_or_added(function: Any) -> None:
    answer = asked(validator(Widget)(function), admission_review(widget()))
    assert (answer.allowed, answer.warnings) == (True, ["careful"])


def test_warnings_are_shown_with_a_refusal_too() -> None:
    @validator(Widget)
    def check(widget: Widget) -> Iterator[str | FieldError]:
        yield "careful"
        yield ODD
        yield "very"

    answer = asked(check, admission_review(widget()))
    assert (answer.allowed, answer.status["code"]) == (False, 422)
    assert answer.warnings == ["careful", "very"]


def test_a_single_field_error_may_be_returned() -> None:
    answer = asked(validator(Widget)(lambda thing: ODD), admission_review(widget()))
    assert answer.message == 'Widget.example.dev "a" is invalid: spec.replicas: Invalid value: 3: must be even'


def test_an_audit_annotation_is_passed_on() -> None:
    @validator(Widget)
    def check(widget: Widget, request: AdmissionRequest) -> None:
        request.audit("reason", "because")

    assert asked(check, admission_review(widget())).response["auditAnnotations"] == {"reason": "because"}


# What hooks are given


def test_a_hook_receives_user_and_operation() -> None:
    seen: list[AdmissionRequest] = []

    @validator(Widget)
    def check(widget: Widget, request: AdmissionRequest) -> None:
        seen.append(request)

    other = {"group": "example.dev", "version": "v1alpha1", "kind": "Widget"}
    asked(check, admission_review(widget(), dryRun=True, requestKind=other, subResource="status"))
    request = seen[0]
    assert (request.user.username, request.user.uid, request.user.groups) == ("jane", "7", ("dev",))
    assert request.user.extra == {"scopes": ["all"]}
    assert request.dry_run is True
    assert request.operation == "CREATE"
    assert (request.namespace, request.name, request.uid) == ("default", "a", "705ab4f5")
    assert request.kind == GroupVersionKind("example.dev", "v1", "Widget")
    assert request.request_kind == GroupVersionKind("example.dev", "v1alpha1", "Widget")
    assert request.resource.resource == request.request_resource.resource == "widgets"
    assert (request.subresource, request.request_subresource) == ("status", "")
    assert request.options["fieldManager"] == "kubectl"
    assert msgspec.json.decode(request.object) == widget()
    assert request.old_object == b""
    assert str(request) == "CREATE of Widget default/a"


def test_options_that_are_none_are_empty() -> None:
    seen: list[Json] = []

    @validator(Widget)
    def check(widget: Widget, request: AdmissionRequest) -> None:
        seen.append(request.options)
        assert str(request).endswith("(name to be generated)")

    review = admission_review(widget(), options=None, name="", namespace="")
    assert asked(check, review).allowed
    assert asked(check, admission_review(widget(), options=[1], name="", namespace="")).allowed
    deep = b"[" * 400 + b"]" * 400
    too_deep = msgspec.json.encode(admission_review(widget(), options="deep", name="", namespace=""))
    assert asked(check, too_deep.replace(b'"deep"', deep)).allowed
    assert seen == [{}, {}, {}]


def test_the_old_object_is_given_on_update_and_none_otherwise() -> None:
    seen: list[Any] = []

    @validator(Widget, operations=["CREATE", "UPDATE", "DELETE"])
    def check(widget: Widget, old: Widget | None, request: AdmissionRequest) -> None:
        seen.append((request.operation, widget.spec.replicas, old and old.spec.replicas))

    asked(check, admission_review(widget(replicas=1)))
    asked(check, admission_review(widget(replicas=2), old=widget(replicas=1), operation="UPDATE"))
    asked(check, admission_review(None, old=widget(replicas=2), operation="DELETE"))
    assert seen == [("CREATE", 1, None), ("UPDATE", 2, 1), ("DELETE", 2, None)]


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT"])
def test_other_operations_are_allowed_without_asking(operation: str) -> None:
    @validator(Widget, operations=["CREATE"])
    def check(widget: Widget) -> None:
        raise Denied("never")

    assert asked(check, admission_review(widget(), old=widget(), operation=operation)).allowed


def test_a_defaulter_leaves_deletions_alone() -> None:
    @defaulter(Widget)
    def fill_in(widget: Widget) -> None:
        raise Denied("never")

    answer = asked(fill_in, admission_review(None, old=widget(), operation="DELETE"))
    assert (answer.allowed, answer.patch, answer.status["code"]) == (True, [], 200)


def test_an_unknown_operation_is_a_bad_request() -> None:
    answer = asked(validator(Widget)(lambda thing: None), admission_review(widget(), operation="CHANGE"))
    assert (answer.status["code"], answer.message) == (400, 'unknown operation "CHANGE"')


SCALE: Json = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"replicas": 7},
}


def test_objects_of_other_kinds_come_through_subresources() -> None:
    def few(each: Json) -> None:
        if each["spec"]["replicas"] > 5:
            raise Denied("too many")

    def scaled(subresource: str) -> Json:
        return admission_review(SCALE, operation="UPDATE", old=SCALE, subResource=subresource)

    rule = {"apiGroups": ["example.dev"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["widgets/*"]}
    for options in ({"subresources": ["scale"]}, {"subresources": ["*"]}, {"rules": [rule]}):
        assert asked(validator(Widget, **options)(few), scaled("scale")).message == "too many"  # type: ignore[arg-type]
    for options in ({}, {"subresources": ["status"]}):
        answer = asked(validator(Widget, **options)(few), scaled("scale"))  # type: ignore[arg-type]
        assert "handles example.dev/v1, Kind=Widget, not autoscaling/v1, Kind=Scale" in answer.message
    assert asked(validator(Widget, subresources=["scale"])(few), scaled("")).status["code"] == 400

    def even(each: Json) -> FieldError:
        return FieldError.invalid(Path("spec", "replicas"), each["spec"]["replicas"], "must be even")

    told = asked(validator(Widget, subresources=["scale"])(even), scaled("scale")).message
    assert told.startswith('Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: '), "it is no Widget"


def test_an_object_of_another_kind_is_a_bad_request_that_names_both() -> None:
    review = admission_review({**widget(), "apiVersion": "example.dev/v2"})
    answer = asked(validator(Widget)(lambda thing: None), review)
    assert answer.status["code"] == 400
    assert answer.message == (
        "/validate-example-dev-v1-widget handles example.dev/v1, Kind=Widget, not example.dev/v2, Kind=Widget"
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (widget(replicas="many"), "Widget default/a: spec.replicas"),
        ({**widget(), "spec": []}, "Widget default/a: spec"),
        (None, "there is no object to decode"),
    ],
)
def test_an_object_that_cannot_be_read_is_a_bad_request(document: Json | None, words: str) -> None:
    answer = asked(validator(Widget)(lambda thing: None), admission_review(document))
    assert (answer.allowed, answer.status["code"]) == (False, 400)
    assert words in answer.message


def test_a_dict_that_is_none_is_a_bad_request() -> None:
    @validator(Widget)
    def check(thing: dict[str, Any]) -> None: ...

    answer = asked(check, msgspec.json.encode(admission_review(widget(), object=[1])))
    assert answer.message == "cannot decode the object: Widget: expected an object, got list"


# Defaulters


def test_the_changes_of_a_defaulter_are_a_patch() -> None:
    @defaulter(Widget)
    def fill_in(widget: Widget) -> None:
        widget.spec.replicas = 1
        widget.metadata.labels = {"app/part": "web"}

    answer = asked(fill_in, admission_review(widget(image="nginx")))
    assert answer.patch == [
        {"op": "add", "path": "/metadata/labels", "value": {"app/part": "web"}},
        {"op": "add", "path": "/spec/replicas", "value": 1},
    ]


def test_a_defaulter_may_return_another_object() -> None:
    @defaulter(Widget)
    async def fill_in(widget: Widget) -> Widget:
        return Widget(metadata=widget.metadata, spec=WidgetSpec(replicas=2))

    document = widget(image="nginx", tags=["a"])
    assert asked(fill_in, admission_review(document)).applied_to(document) == widget(replicas=2)


def test_unchanged_fields_are_not_patched() -> None:
    @defaulter(Widget)
    def fill_in(widget: Widget) -> None: ...

    answer = asked(fill_in, admission_review(widget(image="", tags=None, unknown=1)))
    assert (answer.allowed, answer.patch) == (True, [])
    assert "patchType" not in answer.response


def test_fields_that_the_class_does_not_know_survive() -> None:
    @defaulter(Widget)
    def fill_in(widget: Widget) -> None:
        widget.spec.replicas = 1

    document = {**widget(unknown={"a": 1}, tags=None, image=""), "extra": [1]}
    answer = asked(fill_in, admission_review(document))
    assert answer.patch == [{"op": "add", "path": "/spec/replicas", "value": 1}]


def test_a_value_that_a_defaulter_sets_to_the_default_of_the_class_is_patched() -> None:
    @defaulter(Widget)
    def fill_in(widget: Widget) -> None:
        widget.spec.image = ""

    answer = asked(fill_in, admission_review(widget(image="nginx", replicas=1, tags=None)))
    assert answer.patch == [{"op": "replace", "path": "/spec/image", "value": ""}]


def test_a_dict_is_changed_in_place_or_replaced() -> None:
    @defaulter(Widget)
    def in_place(thing: dict[str, Any]) -> None:
        thing["spec"]["tags"] = ("a", "b")

    @defaulter(Widget)
    def another(thing: dict[str, Any]) -> dict[str, Any]:
        return {**thing, "spec": {"tags": ["a", "b"]}}

    document = widget()
    for hook in (in_place, another):
        answer = asked(hook, admission_review(document))
        assert answer.patch == [{"op": "add", "path": "/spec/tags", "value": ["a", "b"]}]


def test_a_defaulter_may_refuse() -> None:
    @defaulter(Widget)
    def fill_in(widget: Widget, request: AdmissionRequest) -> None:
        widget.spec.replicas = 1
        request.warn("careful")
        raise Denied(ODD)

    answer = asked(fill_in, admission_review(widget()))
    assert (answer.allowed, answer.status["code"], answer.patch, answer.warnings) == (False, 422, [], ["careful"])


# Hooks that fail


def stopping(thing: Any) -> None:
    raise SystemExit(3)


def broken(thing: Any) -> None:
    raise ZeroDivisionError("division by zero")


async def stopping_later(thing: Any) -> None:
    raise SystemExit(3)


async def waiting_in_vain(thing: Any) -> None:
    other = asyncio.get_running_loop().create_future()
    other.cancel()
    await other


async def broken_later(thing: Any) -> None:
    raise KeyError("spec")


def endless_generator(thing: Any) -> Iterator[str]:
    yield "careful"
    raise TimeoutError


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (broken, "broken failed: ZeroDivisionError: division by zero"),
        (broken_later, "broken_later failed: KeyError: 'spec'"),
        (stopping, "stopping failed: RuntimeError: the hook called sys.exit(3)"),
        (waiting_in_vain, "waiting_in_vain failed: an operation that it awaited was cancelled"),
        (stopping_later, "stopping_later failed: SystemExit: 3"),
        (endless_generator, "endless_generator failed: TimeoutError: "),
        (lambda thing: False, "returned bool; a validator returns warnings, field errors or None"),
        (lambda thing: {"a": 1}, "returned dict; a validator returns"),
        (lambda thing: [1], "returned int; a validator yields warnings (str) or FieldErrors"),
    ],
)
def test_a_validator_that_fails_refuses_with_its_error(
    function: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = asked(validator(Widget)(function), admission_review(widget()))
    assert (answer.http, answer.allowed, answer.status["code"]) == (200, False, 500)
    assert words in answer.message
    assert answer.response["uid"] == "705ab4f5"
    assert "CREATE of Widget default/a" in caplog.text
    assert "callback.py" not in caplog.text  # what leads to the hook hides it


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda thing: 1, "returned int; a defaulter returns None or a Widget"),
        (lambda thing: {"a": 1}, "returned dict; a defaulter returns None or a Widget"),
    ],
)
def test_a_defaulter_that_returns_nonsense_refuses(function: Any, words: str) -> None:
    assert words in asked(defaulter(Widget)(function), admission_review(widget())).message


def test_a_defaulter_of_dicts_that_makes_no_json_refuses() -> None:
    @defaulter(Widget)
    def odd(thing: dict[str, Any]) -> dict[str, Any]:
        return {**thing, "spec": object()}

    @defaulter(Widget)
    def none(thing: dict[str, Any]) -> Any:
        return [thing]

    assert "the result cannot be encoded as JSON" in asked(odd, admission_review(widget())).message
    assert "a defaulter returns None or a dict" in asked(none, admission_review(widget())).message


def test_a_warning_that_is_not_a_string_rejects_the_request() -> None:
    @validator(Widget)
    def check(widget: Widget, request: AdmissionRequest) -> None:
        request.warn(3)  # type: ignore[arg-type]

    answer = asked(check, admission_review(widget()))
    assert (answer.allowed, answer.status["code"]) == (False, 500)
    assert "cannot encode the response" in answer.message


# Reviews that are none


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "request body is empty"),
        (b"{", "invalid AdmissionReview"),
        (b'{"request": {"uid": 1}}', "invalid AdmissionReview: Expected `str`"),
        (b'"\xff"', "invalid AdmissionReview"),
        (b'{"request":{"object":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "expected an AdmissionReview, got v1, Kind=Pod"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "invalid AdmissionReview: no request"),
    ],
)
def test_a_body_that_is_not_a_review_is_a_bad_request(body: bytes, words: str) -> None:
    answer = asked(validator(Widget)(lambda thing: None), body)
    assert (answer.http, answer.allowed, answer.status["code"]) == (200, False, 400)
    assert words in answer.message


def test_an_object_that_is_too_deep_is_a_bad_request() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]

    @validator(Widget)
    def check(thing: dict[str, Any]) -> None: ...

    assert "exceeded max depth" in asked(check, admission_review({**widget(), "deep": deep})).message


def test_a_v1beta1_review_is_rejected_in_v1beta1_with_a_remedy() -> None:
    review = {**admission_review(widget()), "apiVersion": "admission.k8s.io/v1beta1"}
    answer = asked(validator(Widget)(lambda thing: None), review)
    assert answer.review["apiVersion"] == "admission.k8s.io/v1beta1"
    assert (answer.response["uid"], answer.allowed) == ("705ab4f5", False)
    assert 'set admissionReviewVersions to ["v1"]' in answer.message


def test_a_review_without_a_version_counts_as_v1() -> None:
    review = admission_review(widget())
    del review["apiVersion"], review["kind"]
    answer = asked(validator(Widget)(lambda thing: None), review)
    assert (answer.allowed, answer.review["apiVersion"]) == (True, "admission.k8s.io/v1")


# Warnings


@pytest.mark.parametrize(
    ("warnings", "shown"),
    [
        ([], []),
        (["a", "", "a", "b"], ["a", "b"]),
        (["two\nlines\tand \x07 a bell"], ["two lines and a bell"]),
        (["half \ud800 of a pair"], ["half ? of a pair"]),
        (["ü ✓"], ["ü ✓"]),
        (["x" * 4096], ["x" * 4096]),
        (["x" * 4097], ["x" * 255 + "…"]),
        (["x" * 4096, "short"], ["x" * 255 + "…", "short"]),
    ],
)
def test_warnings_are_made_such_that_servers_pass_them_on(warnings: list[str], shown: list[str]) -> None:
    assert sanitize_warnings(warnings) == shown


def test_too_many_warnings_are_counted() -> None:
    shown = sanitize_warnings(f"{number:300}" for number in range(100))
    assert len(shown) == 16
    assert all(len(each) <= 256 for each in shown)
    assert shown[-1] == "… and 85 more warnings"
