"""Webhook conversion: objects are served in other versions than the storage version as the webhook converts them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.server.resources.custom.samples import (
    APPLY,
    DEFINITIONS,
    MERGE,
    NAME,
    WIDGETS,
    Api,
    Json,
    definition,
    run,
    schema,
    version,
    widget,
)

from ostinato.server.webhooks import CallError

SECOND = WIDGETS.replace("/v1/", "/v2/")
CLIENT = {"url": "https://127.0.0.1:9443/convert", "caBundle": "Q0E="}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Hook:
    """A webhook that renames `a` of v1 to `b` in v2; `change` modifies its responses."""

    def __init__(self) -> None:
        self.reviews: list[Json] = []
        self.change: Callable[[Json], None] = lambda review: None
        self.gone = False

    async def __call__(self, client: Json, review: bytes, seconds: int) -> bytes:
        assert client == CLIENT
        assert seconds == 30
        if self.gone:
            raise CallError('Post "https://127.0.0.1:9443/convert?timeout=30s": EOF')
        raw = json.loads(review)
        self.reviews.append(raw)
        request = raw["request"]
        converted = [_converted(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
        answer = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        raw = {"apiVersion": raw["apiVersion"], "kind": "ConversionReview", "response": answer}
        self.change(raw)
        return json.dumps(raw).encode()


def _converted(obj: Json, to: str) -> Json:
    spec = dict(obj.get("spec") or {})
    old, new = ("a", "b") if to.endswith("v2") else ("b", "a")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**obj, "apiVersion": to, "spec": spec}


def play(test: Callable[[Api, Hook], Any], *, storage: str = "v2", reviews: str = "v1", **more: Any) -> None:
    """Run a test with a server that has Widgets, stored in one of two versions."""

    async def talk(api: Api) -> None:
        hook = Hook()
        api.server.webhooks.override = hook
        integer = {"type": "integer", "default": 7}
        raw = definition(
            version("v1", schema(a={"type": "string"}, n=integer), storage=storage == "v1", **more),
            version("v2", schema(b={"type": "string"}, n=integer), storage=storage == "v2", **more),
        )
        webhook = {"clientConfig": CLIENT, "conversionReviewVersions": [reviews]}
        raw["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        await api.define(raw)
        await test(api, hook)

    run(talk)


def second(name: str, **spec: Any) -> Json:
    return widget(name, spec, api_version="example.com/v2")


def test_an_object_is_converted_by_the_webhook() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        made = await api.good("POST", WIDGETS, widget("w", {"a": "x"}))
        assert (made["apiVersion"], made["spec"]) == ("example.com/v1", {"a": "x", "n": 7})
        first, back = hook.reviews
        assert first["request"]["desiredAPIVersion"] == "example.com/v2"
        (sent,) = first["request"]["objects"]
        assert (sent["apiVersion"], sent["kind"], sent["spec"]) == ("example.com/v1", "Widget", {"a": "x", "n": 7})
        assert "resourceVersion" not in sent["metadata"]
        assert back["request"]["desiredAPIVersion"] == "example.com/v1"
        stored = await api.good("GET", f"{SECOND}/w")
        assert (stored["apiVersion"], stored["spec"]) == ("example.com/v2", {"b": "x", "n": 7})
        assert len(hook.reviews) == 2  # reading the storage version needs no conversion
        assert stored["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    play(talk)


def test_a_get_calls_the_webhook_each_time_and_a_list_once() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        for name in "abc":
            await api.good("POST", SECOND, second(name, b=name))
        hook.reviews.clear()
        for _ in range(2):
            await api.good("GET", f"{WIDGETS}/a")
        assert len(hook.reviews) == 2
        for _ in range(2):
            listed = await api.good("GET", WIDGETS)
            assert [item["spec"]["a"] for item in listed["items"]] == ["a", "b", "c"]
        assert [len(review["request"]["objects"]) for review in hook.reviews[2:]] == [2]  # one was cached
        page = await api.good("GET", f"{WIDGETS}?limit=2")
        assert [item["spec"]["a"] for item in page["items"]] == ["a", "b"]

    play(talk)


def test_writes_of_one_version_are_seen_in_the_other() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))
        changed = await api.good("PATCH", f"{WIDGETS}/w", {"spec": {"a": "y"}}, content_type=MERGE)
        assert changed["spec"] == {"a": "y", "n": 7}
        assert changed["metadata"]["generation"] == 2
        found = await api.good("GET", f"{SECOND}/w")
        assert found["spec"] == {"b": "y", "n": 7}
        found["spec"]["b"] = "z"
        await api.good("PUT", f"{SECOND}/w", found)
        read = await api.good("GET", f"{WIDGETS}/w")
        assert read["spec"]["a"] == "z"
        read["spec"]["a"] = "stale"
        read["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"]
        assert (await api("PUT", f"{WIDGETS}/w", read)).code == 409
        again = await api.good("PATCH", f"{WIDGETS}/w", {"spec": {"a": "z"}}, content_type=MERGE)
        assert (again["spec"]["a"], again["metadata"]["generation"]) == ("z", 3)  # nothing changes
        gone = await api.good("DELETE", f"{WIDGETS}/w")
        assert gone["status"] == "Success"
        assert (await api("GET", f"{SECOND}/w")).code == 404

    play(talk)


def test_status_and_scale_are_converted_to_the_requested_version() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x", n=1))
        scale = await api.good("GET", f"{WIDGETS}/w/scale")
        assert scale["spec"] == {"replicas": 1}
        scaled = await api.good("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}, content_type=MERGE)
        assert scaled["spec"] == {"replicas": 4}
        found = await api.good("PATCH", f"{WIDGETS}/w/status", {"spec": {"a": "no"}}, content_type=MERGE)
        assert found["spec"] == {"a": "x", "n": 4}
        assert (await api.good("GET", f"{SECOND}/w"))["spec"] == {"b": "x", "n": 4}

    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    play(talk, subresources=subresources)


def test_a_dry_run_is_converted_to_the_storage_version_and_back() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        made = await api.good("POST", f"{WIDGETS}?dryRun=All", widget("w", {"a": "x"}))
        assert made["spec"] == {"a": "x", "n": 7}
        assert [review["request"]["desiredAPIVersion"][-2:] for review in hook.reviews] == ["v2", "v1"]
        hook.gone = True
        assert (await api("POST", f"{WIDGETS}?dryRun=All", widget("w"))).code == 500

    play(talk)


def test_owners_speak_of_their_fields_in_their_own_version() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("PATCH", f"{WIDGETS}/w?fieldManager=one", widget("w", {"a": "x"}), content_type=APPLY)
        body = second("w", b="y")
        refused = await api("PATCH", f"{SECOND}/w?fieldManager=two", body, content_type=APPLY)
        assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "one": .spec.a'
        forced = await api.good("PATCH", f"{SECOND}/w?fieldManager=two&force=true", body, content_type=APPLY)
        assert forced["spec"] == {"b": "y", "n": 7}
        owners = {entry["manager"]: entry["fieldsV1"] for entry in forced["metadata"]["managedFields"]}
        assert owners == {"two": {"f:spec": {"f:b": {}}}}
        # Field ownership that needs the webhook is dropped; the write succeeds.
        await api.good("PATCH", f"{WIDGETS}/w?fieldManager=three", widget("w", {"n": 1}), content_type=APPLY)
        hook.gone = True
        written = await api.good("PATCH", f"{SECOND}/w", {"spec": {"b": "z"}}, content_type=MERGE)
        assert "managedFields" not in written["metadata"]

    play(talk)


def test_events_are_converted() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))
        events = await api.watch(WIDGETS)
        await api.good("PATCH", f"{SECOND}/w", {"spec": {"b": "y"}}, content_type=MERGE)
        await api.good("DELETE", f"{SECOND}/w")
        seen: list[Json] = []
        while len(seen) < 3:
            seen += [json.loads(line) for line in (await anext(events)).splitlines()]
        assert [(event["type"], event["object"]["spec"]) for event in seen] == [
            ("ADDED", {"a": "x", "n": 7}),
            ("MODIFIED", {"a": "y", "n": 7}),
            ("DELETED", {"a": "y", "n": 7}),
        ]
        assert {event["object"]["apiVersion"] for event in seen} == {"example.com/v1"}
        await events.aclose()

    play(talk)


def test_a_watch_ends_with_the_reason_when_an_event_cannot_be_converted() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))
        events = await api.watch(WIDGETS)
        await anext(events)
        hook.gone = True
        await api.good("PATCH", f"{SECOND}/w", {"metadata": {"labels": {"l": "1"}}}, content_type=MERGE)
        last = json.loads(await anext(events))
        assert last["type"] == "ERROR"
        assert last["object"]["message"].endswith('Post "https://127.0.0.1:9443/convert?timeout=30s": EOF')
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        refused = await api("GET", f"{WIDGETS}?watch=1")
        assert refused.code == 429

    play(talk)


def test_selectors_apply_to_converted_objects() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        def label(review: Json) -> None:
            for obj in review["response"]["convertedObjects"]:
                obj["metadata"]["labels"] = {"by": obj["apiVersion"][-2:]}

        await api.good("POST", SECOND, second("w", b="x"))
        hook.change = label
        assert len((await api.good("GET", f"{WIDGETS}?labelSelector=by%3Dv1"))["items"]) == 1
        assert (await api.good("GET", f"{SECOND}?labelSelector=by%3Dv1"))["items"] == []
        table = await api.good("GET", f"{WIDGETS}?labelSelector=by%3Dv1", accept=TABLE)
        assert table["rows"][0]["object"]["metadata"]["labels"] == {"by": "v1"}

    play(talk)


def test_a_new_storage_version_applies_to_later_writes() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", WIDGETS, widget("old", {"a": "x"}))
        found = await api.good("GET", f"{DEFINITIONS}/{NAME}")
        for each in found["spec"]["versions"]:
            each["storage"] = each["name"] == "v2"
        await api.good("PUT", f"{DEFINITIONS}/{NAME}", found)
        hook.reviews.clear()
        assert (await api.good("GET", f"{SECOND}/old"))["spec"] == {"b": "x", "n": 7}
        assert len(hook.reviews) == 1
        await api.good("PATCH", f"{SECOND}/old", {"metadata": {"labels": {"l": "1"}}}, content_type=MERGE)
        hook.gone = True
        assert (await api.good("GET", f"{SECOND}/old"))["spec"] == {"b": "x", "n": 7}

    play(talk, storage="v1")


def test_a_definition_can_be_deleted_without_its_webhook() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", WIDGETS, widget("w", {"a": "x"}))
        hook.gone = True
        await api.good("DELETE", f"{DEFINITIONS}/{NAME}")
        assert (await api("GET", f"{DEFINITIONS}/{NAME}")).code == 404

    play(talk)


def _set(**metadata: Any) -> Callable[[Json], None]:
    return lambda review: review["response"]["convertedObjects"][0]["metadata"].update(metadata)


def _response(**fields: Any) -> Callable[[Json], None]:
    return lambda review: review["response"].update(fields)


def _object(**fields: Any) -> Callable[[Json], None]:
    return lambda review: review["response"]["convertedObjects"][0].update(fields)


ABOUT = "conversion webhook for example.com/v2, Kind=Widget"
BAD_VERSION = "invalid groupVersion (expected example.com/v1, received o/v1)"
NO_KIND = (
    "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind="
)
BAD_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_response(result={"status": "Failed", "message": "cannot"}), f"{ABOUT} failed: cannot"),
        (
            _response(result={"status": "Failure"}),
            f"{ABOUT} failed: response.result.status was 'Failure', not 'Success'",
        ),
        (_response(convertedObjects=[]), f"{ABOUT} returned 0 objects, expected 1"),
        (_response(convertedObjects=[None]), "unexpected end of JSON input"),
        (
            _response(convertedObjects=["x"]),
            "json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (lambda review: review.pop("response"), f"{ABOUT} failed: no response provided"),
        (
            lambda review: review.update(apiVersion="apiextensions.k8s.io/v1beta1"),
            f"{ABOUT} failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
        ),
        (
            lambda review: review.pop("kind"),
            f"{ABOUT} failed: {NO_KIND}",
        ),
        (_set(name="other"), f"{ABOUT} returned invalid object: must have the same name: w != other"),
        (_set(namespace="other"), f"{ABOUT} returned invalid object: must have the same namespace: default != other"),
        (
            _object(kind="Other"),
            f"{ABOUT} returned invalid object at index 0: invalid kind (expected Widget, received Other)",
        ),
        (
            _object(apiVersion="o/v1"),
            f"{ABOUT} returned invalid object at index 0: {BAD_VERSION}",
        ),
        (_object(metadata="x"), f"{ABOUT} returned invalid object: must have the same name: w != "),
        (
            _set(labels={"a b": ""}),
            f'{ABOUT} returned invalid metadata: metadata.labels: Invalid value: "a b": {BAD_NAME}',
        ),
        (
            _set(annotations={"a b": ""}),
            f'{ABOUT} returned invalid metadata: metadata.annotation: Invalid value: "a b": {BAD_NAME}',
        ),
        (
            _set(labels={"a": 1}),
            f"{ABOUT} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            _set(labels="a"),
            f"{ABOUT} returned invalid metadata: invalid metadata.labels of type string in converted object",
        ),
    ],
)
def test_an_invalid_webhook_response_fails_the_request(change: Callable[[Json], Any], message: str) -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))
        hook.change = change
        refused = await api("GET", f"{WIDGETS}/w")
        assert (refused.code, refused.body["message"]) == (500, message)
        assert "reason" not in refused.body
        listed = await api("GET", WIDGETS)
        assert listed.code == 429
        assert listed.body["message"] == (
            f"storage is (re)initializing: failed to list example.com/v1, Kind=Widget: {message}"
        )
        for method, body in (("PATCH", {"spec": {"a": "y"}}), ("DELETE", None)):
            assert (await api(method, f"{WIDGETS}/w", body, content_type=MERGE)).body["message"] == message

    play(talk)


def test_an_answer_to_another_review_is_refused() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))
        hook.change = _response(uid="other")
        refused = await api("GET", f"{WIDGETS}/w")
        uid = hook.reviews[-1]["request"]["uid"]
        assert refused.body["message"] == f'{ABOUT} failed: expected response.uid="{uid}", got "other"'

    play(talk)


def test_a_v1beta1_response_may_have_another_uid() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        hook.change = _response(uid="other")
        await api.good("POST", WIDGETS, widget("w", {"a": "x"}))
        assert hook.reviews[0]["apiVersion"] == "apiextensions.k8s.io/v1beta1"

    play(talk, reviews="v1beta1")


def test_a_webhook_changes_labels_and_annotations_but_no_other_metadata() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        made = await api.good("POST", SECOND, second("w", b="x"))
        hook.change = _set(labels={"l": "1"}, annotations={"a": "1"}, generation=9, finalizers=["x/y"])
        read = await api.good("GET", f"{WIDGETS}/w")
        assert read["metadata"] == {**made["metadata"], "labels": {"l": "1"}, "annotations": {"a": "1"}}

    play(talk)


def test_fields_in_neither_schema_are_pruned() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", SECOND, second("w", b="x"))
        hook.change = _object(spec={"a": "y", "odd": 1})
        assert (await api.good("GET", f"{WIDGETS}/w"))["spec"] == {"a": "y"}

    play(talk)


def test_a_conversion_error_is_reported_before_already_exists() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        await api.good("POST", WIDGETS, widget("w", {"a": "x"}))
        assert (await api("POST", WIDGETS, widget("w", {"a": "x"}))).code == 409
        hook.gone = True
        refused = await api("POST", WIDGETS, widget("w", {"a": "x"}))
        assert refused.body["message"] == (
            "conversion webhook for example.com/v1, Kind=Widget failed: "
            'Post "https://127.0.0.1:9443/convert?timeout=30s": EOF'
        )

    play(talk)


def test_a_webhook_and_its_conditions_see_the_version_that_its_rules_name() -> None:
    async def talk(api: Api, hook: Hook) -> None:
        reviews: list[Json] = []

        async def ask(client: Json, review: bytes, seconds: int) -> bytes:
            if client == CLIENT:
                return await hook(client, review, seconds)
            raw = json.loads(review)
            reviews.append(raw["request"])
            raw["response"] = {"uid": raw.pop("request")["uid"], "allowed": False}
            return json.dumps(raw).encode()

        api.server.webhooks.override = ask
        rule = {"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}
        webhook = {
            "name": "v.example.com",
            "clientConfig": {"url": "https://127.0.0.1:9443/validate"},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "matchConditions": [{"name": "no", "expression": "object.spec.a == 'no'"}],
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await api.good("POST", path, {"metadata": {"name": "v"}, "webhooks": [webhook]})
        await api.good("POST", SECOND, second("w", b="yes"))
        refused = await api("POST", SECOND, second("x", b="no"))
        assert refused.body["message"] == 'admission webhook "v.example.com" denied the request without explanation'
        (review,) = reviews
        assert review["object"]["spec"] == {"a": "no", "n": 7}
        assert (review["kind"]["version"], review["requestKind"]["version"]) == ("v1", "v2")
        assert (await api("PATCH", f"{SECOND}/w", {"spec": {"b": "no"}}, content_type=MERGE)).code == 400
        assert reviews[1]["oldObject"]["spec"] == {"a": "yes", "n": 7}

    play(talk)
