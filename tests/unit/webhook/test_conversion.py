"""Conversion reviews: hub and spokes, what is kept, and what one bad object costs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.webhook.samples import (
    Answered,
    Json,
    Widget,
    WidgetSpec,
    WidgetV2,
    WidgetV2Spec,
    WidgetV3,
    conversion_review,
    posted,
    widget,
)

from ostinato import CustomResource, Struct
from ostinato.api.codec import from_dict, to_dict
from ostinato.api.scheme import Scheme
from ostinato.webhook import (
    CertificateFiles,
    Conversions,
    Dispatcher,
    UrlEndpoint,
    Webhooks,
    WebhookServer,
    converter,
)
from ostinato.webhook.hooks import ConversionHook
from ostinato.world import Simulation


@converter
def up(old: Widget) -> WidgetV2:
    return WidgetV2(metadata=old.metadata, spec=WidgetV2Spec(count=old.spec.replicas or 0))


@converter
def down(new: WidgetV2) -> Widget:
    return Widget(metadata=new.metadata, spec=WidgetSpec(replicas=new.spec.count))


@converter(WidgetV2, WidgetV3)
def further(old):  # type: ignore[no-untyped-def]
    return WidgetV3(metadata=old.metadata, amount=str(old.spec.count))


@converter
def back(new: WidgetV3) -> WidgetV2:
    return WidgetV2(metadata=new.metadata, spec=WidgetV2Spec(count=int(new.amount)))


def converted(review: Json | bytes, *hooks: ConversionHook) -> tuple[Answered, Dispatcher]:
    simulation = Simulation(seed=1)
    dispatcher = Dispatcher(simulation)
    dispatcher.add(hooks or (up, down, further, back))
    return Answered(simulation.run(dispatcher.handle(posted(review, "/convert")))), dispatcher


def failure(review: Json | bytes, *hooks: ConversionHook) -> str:
    answer, _ = converted(review, *hooks)
    assert answer.http == 200
    assert answer.response["result"]["status"] == "Failure"
    assert not answer.response["convertedObjects"]
    return answer.message


def test_objects_are_converted() -> None:
    answer, _ = converted(conversion_review([widget(replicas=3), widget("b", replicas=4)]))
    assert answer.review == {
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "response": {
            "uid": "c-1",
            "convertedObjects": [
                {
                    "apiVersion": "example.dev/v2",
                    "kind": "Widget",
                    "metadata": {"name": name, "namespace": "default", "uid": "u-1"},
                    "spec": {"count": count},
                }
                for name, count in (("a", 3), ("b", 4))
            ],
            "result": {"metadata": {}, "status": "Success"},
        },
    }


def test_spokes_are_converted_through_the_hub_and_back() -> None:
    answer, _ = converted(conversion_review([widget(replicas=3)], "example.dev/v3"))
    there = answer.response["convertedObjects"][0]
    assert (there["apiVersion"], there["amount"]) == ("example.dev/v3", "3")
    answer, _ = converted(conversion_review([there], "example.dev/v1"))
    assert answer.response["convertedObjects"] == [widget(replicas=3)]


class Part(Struct):
    size: int = 1


class Bowl(CustomResource, group="example.dev", version="v1"):
    part: Part
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    color: str = "red"


class BowlV2(CustomResource, group="example.dev", version="v2", kind="Bowl"):
    part: Part
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    color: str = "blue"


@converter
def bowl_up(old: Bowl) -> BowlV2:
    return BowlV2(metadata=old.metadata, part=old.part, parts=old.parts, by_name=old.by_name, color=old.color)


@converter
def bowl_down(new: BowlV2) -> Bowl:
    return from_dict(Bowl, {**to_dict(new), "apiVersion": "example.dev/v1"})


def test_values_that_equal_their_default_are_not_lost() -> None:
    """Servers do not apply defaults after a conversion; those of versions may differ."""
    given = {"part": {"size": 1}, "parts": [{"size": 1}, {}], "byName": {"a": {"size": 1}}, "color": "blue"}
    bowl = {"apiVersion": "example.dev/v2", "kind": "Bowl", "metadata": {"name": "a"}, **given}
    answer, _ = converted(conversion_review([bowl], "example.dev/v1"), bowl_up, bowl_down)
    (there,) = answer.response["convertedObjects"]
    assert there == {**bowl, "apiVersion": "example.dev/v1"}
    answer, _ = converted(conversion_review([there], "example.dev/v2"), bowl_up, bowl_down)
    assert answer.response["convertedObjects"] == [bowl]


def test_conversions_of_a_scheme_are_served() -> None:
    scheme = Scheme()
    scheme.register_conversion(Widget, WidgetV2, up.function)
    scheme.register_conversion(WidgetV2, Widget, down.function)
    conversions = Conversions(scheme).serve(Widget, WidgetV2)
    conversions.check()
    simulation = Simulation(seed=1)
    dispatcher = Dispatcher(simulation, conversions=conversions)
    assert dispatcher.paths == ("/convert",)
    answer = Answered(simulation.run(dispatcher.handle(posted(conversion_review([widget(replicas=3)]), "/convert"))))
    assert answer.response["convertedObjects"][0]["spec"] == {"count": 3}


def test_metadata_that_a_converter_forgets_is_kept() -> None:
    @converter
    def forgetful(old: Widget) -> WidgetV2:
        return WidgetV2()

    @converter
    def labelling(old: Widget) -> WidgetV2:
        new = WidgetV2()
        new.metadata.labels = {"a": "b"}
        return new

    answer, _ = converted(conversion_review([widget()]), forgetful)
    assert answer.response["convertedObjects"][0]["metadata"] == widget()["metadata"]
    answer, _ = converted(conversion_review([widget()]), labelling)
    assert answer.response["convertedObjects"][0]["metadata"] == {**widget()["metadata"], "labels": {"a": "b"}}
    answer, _ = converted(conversion_review([{"apiVersion": "example.dev/v1", "kind": "Widget"}]), forgetful)
    assert answer.response["convertedObjects"][0]["metadata"] == {}


@pytest.mark.parametrize(
    ("document", "version", "words"),
    [
        (widget(), "example.dev/v1", "Widget default/a: already has version example.dev/v1"),
        (
            widget(),
            "other.dev/v2",
            "Widget default/a: no conversion from example.dev/v1, Kind=Widget to other.dev/v2",
        ),
        (widget(), "example.dev/v9", "Widget default/a: tests.unit.webhook.samples.Widget is not suitable"),
        ({**widget(), "kind": "Gadget"}, "example.dev/v2", "Gadget default/a: no conversion from"),
        ({**widget(), "apiVersion": "a/b/c"}, "example.dev/v2", "unexpected GroupVersion string: a/b/c"),
        ({**widget(), "apiVersion": "example.dev/v9"}, "example.dev/v2", 'no kind "Widget" is registered for version'),
        (widget(replicas="many"), "example.dev/v2", "Widget default/a: spec.replicas"),
        ({}, "example.dev/v2", "no conversion from"),
    ],
)
def test_one_object_that_cannot_be_converted_fails_the_review_and_is_named(
    document: Json, version: str, words: str
) -> None:
    assert words in failure(conversion_review([document], version))
    fine = {**widget("fine"), "apiVersion": "example.dev/v2"}
    assert failure(conversion_review([document, fine], version))


def test_a_failing_converter_is_reported_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    @converter
    def broken(old: Widget) -> WidgetV2:
        raise ZeroDivisionError("oops")

    @converter
    def exits(old: Widget) -> WidgetV2:
        raise SystemExit(1)

    @converter
    def wrong(old: Widget) -> WidgetV2:
        return WidgetV3()  # type: ignore[return-value]

    answer, dispatcher = converted(conversion_review([widget()]), broken)
    assert answer.message == "Widget default/a: ZeroDivisionError: oops"
    assert answer.response["uid"] == "c-1"
    assert dispatcher.statistics.conversion_panics == 1
    assert "Traceback" in caplog.text
    assert failure(conversion_review([widget()]), exits) == "Widget default/a: SystemExit: 1"
    assert "the converter returned example.dev/v3, Kind=Widget" in failure(conversion_review([widget()]), wrong)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "request body is empty"),
        (b"{", "invalid ConversionReview"),
        (b"[]", "invalid ConversionReview: no request"),
        (b'{"kind":"AdmissionReview","request":{}}', "invalid ConversionReview: no request"),
        (b'{"request":{"uid":3,"objects":[1],"desiredAPIVersion":"a/b"}}', "must be a list of objects"),
    ],
)
def test_a_body_that_is_not_a_review_is_a_bad_request(body: bytes, words: str) -> None:
    answer, _ = converted(body)
    assert answer.http == 400
    assert words in answer.text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"desiredAPIVersion": "a/b/c"}, "desiredAPIVersion: unexpected GroupVersion string: a/b/c"),
        ({"objects": [1]}, "invalid ConversionReview: objects must be a list of objects"),
    ],
)
def test_a_review_with_nonsense_in_it_is_answered(more: Json, words: str) -> None:
    answer, _ = converted(conversion_review([], **more))
    assert (answer.response["uid"], answer.message) == ("c-1", words)


def test_a_review_without_objects_is_answered_with_none() -> None:
    answer, _ = converted(conversion_review([], objects=None))
    assert answer.response["convertedObjects"] == []


def test_a_server_does_not_start_with_half_of_the_converters() -> None:
    simulation = Simulation(1)
    server = WebhookServer(simulation, CertificateFiles(simulation, "/nowhere"), port=0).add(up)
    with pytest.raises(TypeError, match="no conversion from v2 to v1; add a @converter"):
        simulation.run(server.start())


def test_a_v1beta1_review_is_rejected_with_a_remedy() -> None:
    answer, _ = converted({**conversion_review([widget()]), "apiVersion": "apiextensions.k8s.io/v1beta1"})
    assert answer.review["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert 'set conversionReviewVersions to ["v1"]' in answer.message


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ([up], "Widget.example.dev: no conversion from v2 to v1; add a @converter"),
        ([up, down, further], "no conversion from v3 to v1"),
        ([up, down, back], "no conversion from v1 to v3"),
    ],
)
def test_versions_without_a_conversion_path_are_rejected_at_declaration(hooks: list[Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Webhooks(*hooks, endpoint=UrlEndpoint("https://127.0.0.1:9443"))
    Webhooks(up, down, further, back, endpoint=UrlEndpoint("https://127.0.0.1:9443"))
