"""Custom resources: writing, reading, Tables, versions and subresources."""

from __future__ import annotations

import json
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

ONE = f"{DEFINITIONS}/{NAME}"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SECOND = WIDGETS.replace("/v1/", "/v2/")
INTEGER = {"type": "integer"}


async def change_schema(api: Api, openapi: Json, at: int = 0) -> None:
    found = await api.good("GET", ONE)
    found["spec"]["versions"][at]["schema"]["openAPIV3Schema"] = openapi
    await api.good("PUT", ONE, found)


# Writing


def test_unknown_fields_are_pruned_and_reported() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n=INTEGER))))
        body = {**widget("w", {"n": 1, "odd": 2}), "top": 3}
        made = await api("POST", WIDGETS, body)
        assert made.body["spec"] == {"n": 1}
        assert "top" not in made.body
        assert made.warnings == ['299 - "unknown field \\"spec.odd\\""', '299 - "unknown field \\"top\\""']
        assert (
            await api("POST", f"{WIDGETS}?fieldValidation=Ignore", {**body, "metadata": {"name": "x"}})
        ).warnings == []
        strict = await api("POST", f"{WIDGETS}?fieldValidation=Strict", {**body, "metadata": {"name": "y", "odd": 1}})
        assert strict.code == 400
        assert strict.body["message"] == (
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
            'unknown field "metadata.odd", unknown field "spec.odd", unknown field "top"'
        )

    run(talk)


def test_a_null_that_a_patch_adds_is_pruned_and_reported() -> None:
    async def talk(api: Api) -> None:
        openapi = schema(n=INTEGER)
        openapi["properties"]["more"] = {"type": "string"}
        await api.define(definition(version(openapi=openapi)))
        await api.good("POST", WIDGETS, widget("w", {"n": 1}))
        nulls = [{"op": "add", "path": path, "value": None} for path in ("/odd", "/more")]
        patched = await api("PATCH", f"{WIDGETS}/w", nulls, content_type="application/json-patch+json")
        assert patched.code == 200
        assert patched.body.keys() == {"apiVersion", "kind", "metadata", "spec"}
        assert patched.warnings == ['299 - "unknown field \\"odd\\""']

    run(talk)


@pytest.mark.parametrize(
    ("field", "applied", "kept"),
    [
        ("annotations", {"q": None}, {"q": ""}),
        ("labels", {"q": None}, {"q": ""}),
        ("annotations", None, None),
        ("labels", None, None),
        ("finalizers", None, None),
        ("ownerReferences", None, None),
    ],
)
def test_nulls_in_applied_metadata_become_empty_or_absent(field: str, applied: Any, kept: Any) -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        config = widget("w")
        config["metadata"][field] = applied
        for _ in range(2):  # a create, then an update
            made = await api.good("PATCH", f"{WIDGETS}/w?fieldManager=m", config, content_type=APPLY)
            assert made["metadata"].get(field) == kept
            config["spec"] = {"a": 1}

    run(talk)


def test_an_object_that_breaks_its_schema_is_refused_with_every_reason() -> None:
    async def talk(api: Api) -> None:
        openapi = schema(a={"type": "string", "enum": ["x"]}, b={"type": "integer", "minimum": 1})
        openapi["properties"]["spec"]["required"] = ["c"]
        openapi["properties"]["spec"]["properties"]["c"] = {"type": "string", "maxLength": 2}
        await api.define(definition(version(openapi=openapi)))
        refused = await api("POST", WIDGETS, widget("w", {"a": "y", "b": 0}))
        assert (refused.code, refused.body["reason"]) == (422, "Invalid")
        assert refused.causes == [
            'spec.a: Unsupported value: "y": supported values: "x"',
            "spec.b: Invalid value: 0: spec.b in body should be greater than or equal to 1",
            "spec.c: Required value",
        ]
        refused = await api("POST", WIDGETS, widget("w", {"c": "long"}))
        assert refused.causes == ["spec.c: Too long: may not be more than 2 bytes"]
        assert (await api("GET", f"{WIDGETS}/w")).code == 404

    run(talk)


def test_an_unchanged_value_that_breaks_a_new_schema_may_stay() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n=INTEGER, m=INTEGER))))
        await api.good("POST", WIDGETS, widget("w", {"n": 1}))
        await change_schema(api, schema(n={**INTEGER, "minimum": 5}, m=INTEGER))
        found = await api.good("PATCH", f"{WIDGETS}/w", {"spec": {"m": 2}}, content_type=MERGE)
        assert found["spec"] == {"n": 1, "m": 2}
        refused = await api("PATCH", f"{WIDGETS}/w", {"spec": {"n": 2}}, content_type=MERGE)
        assert refused.causes == ["spec.n: Invalid value: 2: spec.n in body should be greater than or equal to 5"]

    run(talk)


def test_sets_may_keep_repetitions_that_they_had() -> None:
    async def talk(api: Api) -> None:
        items = {"type": "array", "items": {"type": "string"}}
        await api.define(definition(version(openapi=schema(l=items, m=INTEGER))))
        await api.good("POST", WIDGETS, widget("w", {"l": ["a", "a"]}))
        await change_schema(api, schema(l={**items, "x-kubernetes-list-type": "set"}, m=INTEGER))
        await api.good("PATCH", f"{WIDGETS}/w", {"spec": {"m": 1}}, content_type=MERGE)
        assert (await api("POST", WIDGETS, widget("x", {"l": ["a", "a"]}))).causes == [
            'spec.l[1]: Duplicate value: "a"'
        ]
        await api.good("PATCH", f"{WIDGETS}/w", {"spec": {"l": ["a"]}}, content_type=MERGE)
        assert (await api("PATCH", f"{WIDGETS}/w", {"spec": {"l": ["a", "a"]}}, content_type=MERGE)).code == 422

    run(talk)


def test_an_update_must_name_the_version_that_it_replaces() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        made = await api.good("POST", WIDGETS, widget("w", {"n": 1}))
        assert (await api("PUT", f"{WIDGETS}/w", widget("w", {"n": 2}))).code == 422
        made["spec"]["n"] = 3
        assert (await api.good("PUT", f"{WIDGETS}/w", made))["metadata"]["generation"] == 2
        assert (await api("PUT", f"{WIDGETS}/w", made)).code == 409

    run(talk)


def test_strategic_merge_patches_are_not_for_custom_resources() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        await api.good("POST", WIDGETS, widget("w"))
        strategic = "application/strategic-merge-patch+json"
        assert (await api("PATCH", f"{WIDGETS}/w", {}, content_type=strategic)).code == 415

    run(talk)


@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        (
            widget("w") | {"kind": "Gadget"},
            422,
            'Gadget.example.com "w" is invalid: kind: Invalid value: "Gadget": must be Widget',
        ),
        (
            widget("w", api_version="v1"),
            400,
            "the API version in the data (v1) does not match the expected API version (example.com/v1)",
        ),
        ({"metadata": {"name": "w"}}, 400, "Object 'Kind' is missing in"),
        ({"kind": "Widget"}, 400, "the API version in the data () does not match"),
        (
            widget("w", {}) | {"metadata": {"labels": {"a": 1}}},
            400,
            "json: cannot unmarshal number into Go struct field",
        ),
    ],
)
def test_a_body_must_be_an_object_of_the_kind(body: Json, code: int, why: str) -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        refused = await api("POST", WIDGETS, body)
        assert refused.code == code
        assert why in refused.body["message"]

    run(talk)


def test_whole_numbers_are_stored_as_integers() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        spec = b'{"a": 1.0, "b": [2.0, 0.5, {"c": 1e3}], "d": 1e30, "e": [1]}'
        body = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":' + spec + b"}"
        assert (await api("POST", WIDGETS, body)).code == 201
        text = (await api("GET", f"{WIDGETS}/w")).text
        assert '"spec":{"a":1,"b":[2,0.5,{"c":1000}],"d":1e30,"e":[1]}' in text

    run(talk)


def test_finalizers_that_may_be_anybodys_are_warned_of() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        body = widget("w")
        body["metadata"]["finalizers"] = ["plain", "with.dots", "example.com/good", "orphan"]
        made = await api("POST", WIDGETS, body)
        prefer = "prefer a domain-qualified finalizer name"
        avoid = 'to avoid accidental conflicts with other finalizer writers"'
        assert made.warnings == [
            f'299 - "metadata.finalizers: \\"plain\\": {prefer} {avoid}',
            f'299 - "metadata.finalizers: \\"with.dots\\": {prefer} including a path (/) {avoid}',
        ]

    run(talk)


# Defaults, on write and on read


def test_defaults_are_set_where_fields_are_absent_or_null() -> None:
    async def talk(api: Api) -> None:
        openapi = schema(
            a={"type": "string", "default": "d"},
            n={"type": "string", "nullable": True, "default": "d"},
            o={"type": "object", "default": {}, "properties": {"p": {**INTEGER, "default": 2}}},
            x={"type": "string"},
        )
        await api.define(definition(version(openapi=openapi)))
        made = await api.good("POST", WIDGETS, widget("w", {"a": None, "n": None, "x": None}))
        assert made["spec"] == {"a": "d", "n": None, "o": {"p": 2}}
        assert "spec" not in await api.good("POST", WIDGETS, widget("bare"))

    run(talk)


def test_a_patch_keeps_fields_that_it_does_not_name() -> None:
    async def talk(api: Api) -> None:
        openapi = {
            "type": "object",
            "properties": {
                "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "spec": {"type": "object", "properties": {"a": {"type": "string", "default": "d"}, "b": INTEGER}},
                "other": {"type": "object", "properties": {"n": INTEGER}},
            },
        }
        await api.define(definition(version(openapi=openapi)))
        made = {**widget("w", {"b": 1}), "kept": {"x": [None, {"y": 1}]}, "other": {"n": 2}}
        await api.good("POST", WIDGETS, made)
        change = {"metadata": {"labels": {"a": "b"}}, "other": {"n": 3}, "kind": "Widget"}
        new = await api.good("PATCH", f"{WIDGETS}/w", change, content_type=MERGE)
        assert (new["kept"], new["spec"], new["other"]) == ({"x": [None, {"y": 1}]}, {"a": "d", "b": 1}, {"n": 3})
        new = await api.good("PATCH", f"{WIDGETS}/w", {"spec": {"a": None}}, content_type=MERGE)
        assert (new["kept"], new["spec"], new["other"]) == ({"x": [None, {"y": 1}]}, {"a": "d", "b": 1}, {"n": 3})
        assert await api.good("GET", f"{WIDGETS}/w") == new

    run(talk)


def test_a_new_default_applies_on_read_without_a_write() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n=INTEGER))))
        made = await api.good("POST", WIDGETS, widget("w", {"n": 1}))
        await change_schema(api, schema(n=INTEGER, late={"type": "string", "default": "now"}))
        found = await api.good("GET", f"{WIDGETS}/w")
        assert found["spec"] == {"n": 1, "late": "now"}
        assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert (await api.good("GET", WIDGETS))["items"][0]["spec"] == {"n": 1, "late": "now"}

    run(talk)


def test_a_field_that_a_schema_loses_is_pruned_on_read() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n=INTEGER, m=INTEGER))))
        await api.good("POST", WIDGETS, widget("w", {"n": 1, "m": 2}))
        await change_schema(api, schema(n=INTEGER))
        assert (await api.good("GET", f"{WIDGETS}/w"))["spec"] == {"n": 1}

    run(talk)


def test_a_watch_begins_after_a_definition_has_changed() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n=INTEGER))))
        await change_schema(api, schema(n=INTEGER, m=INTEGER))
        events = await api.watch(WIDGETS)
        await api.good("POST", WIDGETS, widget("later", {"m": 1}))
        assert json.loads(await anext(events))["object"]["metadata"]["name"] == "later"
        await events.aclose()

    run(talk)


def test_watches_end_when_a_definition_changes() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n=INTEGER))))
        await api.good("POST", WIDGETS, widget("w", {"n": 1}))
        events = await api.watch(WIDGETS)
        await anext(events)
        await change_schema(api, schema(m=INTEGER))
        with pytest.raises(StopAsyncIteration):
            await anext(events)

    run(talk)


# Versions


def test_versions_with_one_schema_differ_only_in_name() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version("v1"), version("v2", storage=False)))
        await api.good("POST", WIDGETS, widget("w", {"n": 1}))
        found = await api.good("GET", f"{SECOND}/w")
        assert (found["apiVersion"], found["spec"]) == ("example.com/v2", {"n": 1})
        made = await api.good("POST", SECOND, widget("x", {"n": 2}, api_version="example.com/v2"))
        assert made["apiVersion"] == "example.com/v2"
        items = (await api.good("GET", WIDGETS))["items"]
        assert [item["apiVersion"] for item in items] == ["example.com/v1", "example.com/v1"]

    run(talk)


def test_each_version_is_pruned_to_its_own_schema() -> None:
    async def talk(api: Api) -> None:
        first, second = schema(a=INTEGER, c=INTEGER), schema(b={**INTEGER, "default": 7}, c=INTEGER)
        await api.define(definition(version("v1", first), version("v2", second, storage=False)))
        await api.good("POST", WIDGETS, widget("w", {"a": 1, "c": 3}))
        assert (await api.good("GET", f"{SECOND}/w"))["spec"] == {"c": 3}
        made = await api.good("POST", SECOND, widget("x", {"b": 2, "c": 4}, api_version="example.com/v2"))
        assert made["spec"] == {"c": 4}
        assert (await api.good("GET", f"{WIDGETS}/x"))["spec"] == {"c": 4}
        assert [item["spec"] for item in (await api.good("GET", SECOND))["items"]] == [{"c": 3}, {"c": 4}]

    run(talk)


def test_an_object_stored_in_an_older_version_keeps_that_versions_fields() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version("v1", schema(a=INTEGER)), version("v2", schema(b=INTEGER), storage=False)))
        await api.good("POST", WIDGETS, widget("w", {"a": 1}))
        found = await api.good("GET", ONE)
        found["spec"]["versions"][0]["storage"], found["spec"]["versions"][1]["storage"] = False, True
        await api.good("PUT", ONE, found)
        assert (await api.good("GET", f"{WIDGETS}/w"))["spec"] == {"a": 1}
        await api.good("PATCH", f"{WIDGETS}/w", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE)
        assert (await api.good("GET", f"{WIDGETS}/w"))["spec"] == {}

    run(talk)


def test_a_version_that_is_not_served_has_no_paths() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version("v1"), version("v2", storage=False) | {"served": False}))
        assert (await api("GET", SECOND)).code == 404
        found = await api.good("GET", ONE)
        found["spec"]["versions"][1]["served"] = True
        await api.good("PUT", ONE, found)
        assert (await api("GET", SECOND)).code == 200

    run(talk)


def test_a_deprecated_version_warns_and_names_a_better_one() -> None:
    async def talk(api: Api) -> None:
        old, own = (
            version("v1alpha1", storage=False, deprecated=True),
            version("v1beta1", storage=False, deprecated=True),
        )
        await api.define(definition(version("v1"), old, own | {"deprecationWarning": "go away"}))
        base = "/apis/example.com/{}/widgets"
        assert (await api("GET", base.format("v1"))).warnings == []
        assert (await api("GET", base.format("v1beta1"))).warnings == ['299 - "go away"']
        assert (await api("GET", base.format("v1alpha1"))).warnings == [
            '299 - "example.com/v1alpha1 Widget is deprecated; use example.com/v1 Widget"'
        ]
        found = await api.good("GET", ONE)
        found["spec"]["versions"][0]["deprecated"] = True
        await api.good("PUT", ONE, found)
        assert (await api("GET", base.format("v1"))).warnings == ['299 - "example.com/v1 Widget is deprecated"']

    run(talk)


# Subresources


def with_status(**more: Any) -> Json:
    openapi = schema(n=INTEGER)
    openapi["properties"]["status"] = {"type": "object", "properties": {"m": INTEGER}}
    return version(openapi=openapi, subresources={"status": {}}, **more)


def test_spec_and_status_are_written_apart() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(with_status()))
        made = await api.good("POST", WIDGETS, widget("w", {"n": 1}, status={"m": 1}))
        assert "status" not in made
        change = {"metadata": {"labels": {"a": "b"}}, "spec": {"n": 9}, "status": {"m": 2}}
        found = await api.good("PATCH", f"{WIDGETS}/w/status", change, content_type=MERGE)
        assert (found["spec"], found["status"], "labels" in found["metadata"]) == ({"n": 1}, {"m": 2}, False)
        assert found["metadata"]["generation"] == 1
        found = await api.good("PATCH", f"{WIDGETS}/w", change, content_type=MERGE)
        assert (found["spec"], found["status"], found["metadata"]["generation"]) == ({"n": 9}, {"m": 2}, 2)
        found = await api.good("PATCH", f"{WIDGETS}/w/status", {"status": None}, content_type=MERGE)
        assert "status" not in found
        refused = await api("PATCH", f"{WIDGETS}/w/status", {"status": {"m": "x"}}, content_type=MERGE)
        assert refused.causes == ['status.m: Invalid value: "string": m in body must be of type integer: "string"']

    run(talk)


def test_without_a_status_subresource_the_status_is_a_field_like_others() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        await api.good("POST", WIDGETS, widget("w", status={"m": 1}))
        assert (await api("GET", f"{WIDGETS}/w/status")).code == 404
        found = await api.good("PATCH", f"{WIDGETS}/w", {"status": {"m": 2}}, content_type=MERGE)
        assert (found["status"], found["metadata"]["generation"]) == ({"m": 2}, 2)

    run(talk)


SCALE = {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r", "labelSelectorPath": ".status.s"}


def test_the_scale_subresource_reads_and_writes_the_replicas() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(subresources={"status": {}, "scale": SCALE})))
        await api.good("POST", WIDGETS, widget("w", {"r": 2}))
        await api.good("PATCH", f"{WIDGETS}/w/status", {"status": {"r": 1, "s": "a=b"}}, content_type=MERGE)
        scale = await api.good("GET", f"{WIDGETS}/w/scale")
        assert (scale["kind"], scale["spec"], scale["status"]) == (
            "Scale",
            {"replicas": 2},
            {"replicas": 1, "selector": "a=b"},
        )
        await api.good("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 5}}, content_type=MERGE)
        assert (await api.good("GET", f"{WIDGETS}/w"))["spec"] == {"r": 5}

    run(talk)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"spec": {"r": -1}}, ".spec.r: Invalid value: -1: should be a non-negative integer"),
        ({"spec": {"r": 1 << 31}}, ".spec.r: Invalid value: 2147483648: should be less than or equal to 2147483647"),
        (
            {"spec": {"r": "x"}},
            ".spec.r: Invalid value: 0: .spec.r accessor error: x is of the type string, expected int64",
        ),
        (
            {"spec": [1, None]},
            ".spec.r: Invalid value: 0: .spec.r accessor error: [1 <nil>] is of the type []interface {}, expected map[string]interface{}",  # noqa: E501
        ),
        (
            {"status": {"s": {"a": 1}}},
            '.status.s: Invalid value: "": .status.s accessor error: map[a:1] is of the type map[string]interface {}, expected string',  # noqa: E501
        ),
    ],
)
def test_scale_fields_must_have_the_right_types(fields: Json, why: str) -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(subresources={"scale": SCALE})))
        refused = await api("POST", WIDGETS, {**widget("w"), **fields})
        assert refused.causes == [why]

    run(talk)


# Server-side apply


def test_apply_uses_the_schema_of_the_definition() -> None:
    async def talk(api: Api) -> None:
        ports = {
            "type": "array",
            "items": {"type": "object", "required": ["n"], "properties": {"n": INTEGER, "p": INTEGER}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"],
        }
        await api.define(definition(version(openapi=schema(ports=ports))))
        for manager, port in (("one", 1), ("two", 2)):
            body = widget("w", {"ports": [{"n": port, "p": port}]})
            found = await api.good("PATCH", f"{WIDGETS}/w?fieldManager={manager}", body, content_type=APPLY)
        assert found["spec"]["ports"] == [{"n": 1, "p": 1}, {"n": 2, "p": 2}]
        body = widget("w", {"ports": [{"n": 1, "p": 9}]})
        refused = await api("PATCH", f"{WIDGETS}/w?fieldManager=two", body, content_type=APPLY)
        assert refused.code == 409
        unknown = await api("PATCH", f"{WIDGETS}/w?fieldManager=one", widget("w", {"odd": 1}), content_type=APPLY)
        assert "field not declared in schema" in unknown.text

    run(talk)


# Reading and showing


def test_scopes_are_kept_apart() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(scope="Cluster"))
        made = await api.good("POST", "/apis/example.com/v1/widgets", widget("w"))
        assert "namespace" not in made["metadata"]
        assert (await api("POST", WIDGETS, widget("x"))).text == "404 page not found\n"

    run(talk)


def test_objects_are_selected_by_the_fields_that_their_version_names() -> None:
    async def talk(api: Api) -> None:
        openapi = schema(color={"type": "string"}, on={"type": "boolean"}, n=INTEGER)
        fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}, {"jsonPath": ".spec.n"}]
        await api.define(definition(version(openapi=openapi, selectableFields=fields)))
        await api.good("POST", WIDGETS, widget("a", {"color": "red", "on": True, "n": 3}))
        await api.good("POST", WIDGETS, widget("b", {"color": "blue"}))
        for selector, names in (
            ("spec.color%3Dred", ["a"]),
            ("spec.on%3Dtrue", ["a"]),
            ("spec.n%3D3", ["a"]),
            ("spec.color!%3Dred,spec.n%3D", ["b"]),
            ("metadata.name%3Db", ["b"]),
        ):
            found = await api.good("GET", f"{WIDGETS}?fieldSelector={selector}")
            assert [item["metadata"]["name"] for item in found["items"]] == names
        refused = await api("GET", f"{WIDGETS}?fieldSelector=spec.other%3Dx")
        assert refused.body["message"] == "field label not supported: spec.other"

    run(talk)


def test_a_field_becomes_selectable_for_objects_that_are_there() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(openapi=schema(color={"type": "string"}))))
        await api.good("POST", WIDGETS, widget("a", {"color": "red"}))
        found = await api.good("GET", ONE)
        found["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.color"}]
        await api.good("PUT", ONE, found)
        assert len((await api.good("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dred"))["items"]) == 1
        assert len((await api.good("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dblue"))["items"]) == 0

    run(talk)


COLUMNS = [
    {"name": "Text", "type": "string", "jsonPath": ".spec.t"},
    {"name": "Count", "type": "integer", "jsonPath": ".spec.n", "priority": 1},
    {"name": "Share", "type": "number", "jsonPath": ".spec.f", "description": "how much"},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.b"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.d"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
]


def test_printer_columns_make_the_table() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version(additionalPrinterColumns=COLUMNS)))
        born = (await api.good("POST", WIDGETS, widget("a")))["metadata"]["creationTimestamp"]
        spec = {"t": {"k": [1]}, "n": 2.7, "f": 1, "b": True, "d": born}
        status = {"conditions": [{"type": "Other", "status": "No"}, {"type": "Ready", "status": "Yes"}]}
        await api.good("POST", WIDGETS, widget("b", spec, status=status))
        await api.good("POST", WIDGETS, widget("c", {"t": None, "n": "x", "f": True, "b": 1, "d": "never"}))
        await api.good(
            "POST", WIDGETS, widget("d", {"t": 1.5, "n": True, "f": 0.5, "d": 5}, status={"conditions": "x"})
        )
        await api.server.world.clock.sleep(90)
        table = await api.good("GET", WIDGETS, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == [
            "Name", "Text", "Count", "Share", "On", "Since", "Ready"
        ]  # fmt: skip
        assert (
            table["columnDefinitions"][1]["description"]
            == "Custom resource definition column (in JSONPath format): .spec.t"
        )
        assert table["columnDefinitions"][2]["priority"] == 1
        assert table["columnDefinitions"][3]["description"] == "how much"
        assert [row["cells"] for row in table["rows"]] == [
            ["a", None, None, None, None, None, None],
            ["b", '{"k":[1]}', 2, 1, True, "90s", "Yes"],
            ["c", "<no value>", None, None, None, "<invalid>", None],
            ["d", "1.5", None, 0.5, None, None, None],
        ]

    run(talk)


def test_columns_end_before_the_first_invalid_json_path() -> None:
    async def talk(api: Api) -> None:
        columns = [COLUMNS[0], {"name": "Bad", "type": "string", "jsonPath": ".spec["}, COLUMNS[1]]
        await api.define(definition(version(additionalPrinterColumns=columns)))
        table = await api.good("GET", WIDGETS, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Text"]

    run(talk)


def test_without_columns_a_table_shows_name_and_age() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        await api.good("POST", WIDGETS, widget("a"))
        await api.server.world.clock.sleep(3600)
        table = await api.good("GET", WIDGETS, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
        assert table["rows"][0]["cells"] == ["a", "60m"]

    run(talk)


def test_events_carry_the_version_that_is_watched() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version("v1", schema(a=INTEGER)), version("v2", schema(b=INTEGER), storage=False)))
        since = (await api.good("GET", WIDGETS))["metadata"]["resourceVersion"]
        await api.good("POST", WIDGETS, widget("w", {"a": 1}))
        await api.good("DELETE", f"{WIDGETS}/w")
        events = await api.watch(SECOND, since)
        seen = [json.loads(line) for line in (await anext(events)).splitlines()]
        assert [(e["type"], e["object"]["apiVersion"], e["object"]["spec"]) for e in seen] == [
            ("ADDED", "example.com/v2", {}),
            ("DELETED", "example.com/v2", {}),
        ]
        await events.aclose()

    run(talk)
