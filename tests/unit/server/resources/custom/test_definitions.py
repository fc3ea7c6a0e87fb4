"""CustomResourceDefinitions: validation, accepted names, deletion."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from tests.unit.server.resources.custom.samples import (
    DATA,
    DEFINITIONS,
    MERGE,
    NAME,
    WIDGETS,
    Api,
    Json,
    KeptLog,
    definition,
    run,
    schema,
    version,
    widget,
)

from ostinato.server.controllers.custom_resources import CustomResources
from ostinato.server.resources.apiextensions.strategy import CustomResourceDefinition
from ostinato.server.schema.decoding import builtin

CASES: list[Json] = json.loads((DATA / "definitions.json").read_text())
MODEL = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
ONE = f"{DEFINITIONS}/{NAME}"


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_definitions_are_refused_in_the_words_of_kubernetes(case: Json) -> None:
    obj, _ = builtin.read(MODEL, copy.deepcopy(case["object"]))
    strategy = CustomResourceDefinition()
    strategy.default(obj)
    strategy.prepare_create(obj)
    assert sorted({f"{error.type.value} | {error}" for error in strategy.validate(obj)}) == case["errors"]


FIELDS = [{"jsonPath": ".spec.a"}]
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("second", "path", "told"),
    [
        (
            version("v2", schema(a=TEXT, b=TEXT), storage=False, selectableFields=FIELDS),
            "spec.selectableFields",
            "may only be set when validations.schema is included",
        ),
        (
            version("v2", schema(a=TEXT), storage=False),
            "spec.versions[0].selectableFields",
            "may only be set when `version.schema.openAPIV3Schema` is not included",
        ),
    ],
)
def test_selectable_fields_are_shared_by_all_versions_where_schemas_are(second: Json, path: str, told: str) -> None:
    first = version(openapi=schema(a=TEXT), selectableFields=FIELDS)

    async def talk(api: Api) -> None:
        refused = await api("POST", DEFINITIONS, definition(first, second))
        assert refused.code == 422
        assert refused.body["message"].endswith(f'is invalid: {path}: Invalid value: "": {told}')
        made = await api("POST", DEFINITIONS, definition(first, {**first, "name": "v2", "storage": False}))
        assert made.code == 201

    run(talk)


def conditions(found: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in found["status"]["conditions"]}


def test_a_definition_is_answered_as_it_was_sent_and_established_right_after() -> None:
    async def talk(api: Api) -> None:
        made = await api.define(definition())
        assert made["status"] == {
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": None,
            "storedVersions": ["v1"],
        }
        assert made["spec"]["names"] == {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
        }
        assert made["spec"]["conversion"] == {"strategy": "None"}
        found = await api.good("GET", ONE)
        assert conditions(found) == {
            "NamesAccepted": ("True", "NoConflicts"),
            "Established": ("True", "InitialNamesAccepted"),
        }
        assert found["status"]["acceptedNames"] == found["spec"]["names"]
        assert found["metadata"]["generation"] == 1
        owners = [(entry["manager"], entry.get("subresource")) for entry in found["metadata"]["managedFields"]]
        assert owners == [("kube-apiserver", "status"), ("test", None)]

    run(talk)


def test_every_step_of_a_definition_is_seen_by_a_watch() -> None:
    async def talk(api: Api) -> None:
        since = (await api.good("GET", DEFINITIONS))["metadata"]["resourceVersion"]
        await api.define(definition())
        events = await api.watch(DEFINITIONS, since)
        seen: list[Any] = []
        while len(seen) < 3:
            seen += [json.loads(line) for line in (await anext(events)).splitlines()]
        assert [event["type"] for event in seen] == ["ADDED", "MODIFIED", "MODIFIED"]
        assert conditions(seen[1]["object"]) == {
            "NamesAccepted": ("True", "NoConflicts"),
            "Established": ("False", "Installing"),
        }
        await events.aclose()

    run(talk)


def test_names_of_another_definition_are_not_accepted_until_it_is_deleted() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(shortNames=["wd"]))
        second = definition(plural="gadgets", shortNames=["wd", "gd"])
        second["metadata"]["name"] = "gadgets.example.com"
        await api.define(second)
        where = f"{DEFINITIONS}/gadgets.example.com"
        found = await api.good("GET", where)
        assert conditions(found) == {
            "NamesAccepted": ("False", "ListKindConflict"),
            "Established": ("False", "NotAccepted"),
        }
        assert found["status"]["acceptedNames"] == {"plural": "gadgets", "kind": ""}
        assert (await api("GET", "/apis/example.com/v1/gadgets")).code == 404
        await api.good("DELETE", ONE)
        found = await api.good("GET", where)
        assert conditions(found)["Established"] == ("True", "InitialNamesAccepted")
        assert found["status"]["acceptedNames"]["shortNames"] == ["wd", "gd"]
        assert (await api.good("GET", "/apis/example.com/v1/gadgets"))["kind"] == "WidgetList"

    run(talk)


def test_short_names_that_are_taken_are_named() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(shortNames=["a", "b"]))
        second = definition(plural="gadgets", kind="Gadget", shortNames=["b", "a", "c"])
        second["metadata"]["name"] = "gadgets.example.com"
        await api.define(second)
        found = await api.good("GET", f"{DEFINITIONS}/gadgets.example.com")
        accepted = found["status"]["conditions"][0]
        assert accepted["reason"] == "ShortNamesConflict"
        assert accepted["message"] == '["b" is already in use, "a" is already in use]'
        assert "shortNames" not in found["status"]["acceptedNames"]

    run(talk)


def test_new_short_names_and_categories_are_accepted_later_on() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(shortNames=["wd"]))
        change = {"spec": {"names": {"shortNames": ["wx"], "categories": ["all"]}}}
        await api.good("PATCH", ONE, change, content_type=MERGE)
        found = await api.good("GET", ONE)
        assert found["status"]["acceptedNames"]["shortNames"] == ["wx"]
        assert found["status"]["acceptedNames"]["categories"] == ["all"]
        resource = api.server.registry.get("example.com", "v1", "widgets")
        assert resource is not None
        assert (resource.short_names, resource.categories) == (("wx",), ("all",))
        await api.good("PATCH", ONE, {"spec": {"names": {"shortNames": None, "categories": None}}}, content_type=MERGE)
        assert "shortNames" not in (await api.good("GET", ONE))["status"]["acceptedNames"]

    run(talk)


def test_a_protected_group_has_an_approval_condition() -> None:
    async def talk(api: Api) -> None:
        raw = definition()
        raw["spec"]["group"] = "example.k8s.io"
        raw["metadata"] = {"name": "widgets.example.k8s.io"}
        refused = await api("POST", DEFINITIONS, raw)
        assert refused.code == 422
        assert "protected groups must have approval annotation" in refused.text
        raw["metadata"]["annotations"] = {"api-approved.kubernetes.io": "nonsense"}
        assert "reason starting with" in (await api("POST", DEFINITIONS, raw)).text
        raw["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://example.com/1"}
        await api.define(raw)
        found = await api.good("GET", f"{DEFINITIONS}/widgets.example.k8s.io")
        assert conditions(found)["KubernetesAPIApprovalPolicyConformant"] == ("True", "ApprovedAnnotation")
        change = {"metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}}
        await api.good("PATCH", f"{DEFINITIONS}/widgets.example.k8s.io", change, content_type=MERGE)
        found = await api.good("GET", f"{DEFINITIONS}/widgets.example.k8s.io")
        assert conditions(found)["KubernetesAPIApprovalPolicyConformant"] == ("False", "UnapprovedAnnotation")

    run(talk)


def test_storage_versions_add_up_and_may_not_be_dropped_while_stored() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition(version("v1"), version("v2", storage=False)))
        found = await api.good("GET", ONE)
        found["spec"]["versions"][0]["storage"] = False
        found["spec"]["versions"][1]["storage"] = True
        found = await api.good("PUT", ONE, found)
        assert found["status"]["storedVersions"] == ["v1", "v2"]
        assert found["metadata"]["generation"] == 2
        found = await api.good("GET", ONE)
        del found["spec"]["versions"][0]
        refused = await api("PUT", ONE, found)
        assert refused.code == 422
        assert "v1 was previously a storage version" in refused.text

    run(talk)


def test_fields_that_affect_the_storage_are_immutable() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        for path, value in ((("scope",), "Cluster"), (("names", "kind"), "Other"), (("group",), "other.com")):
            found = await api.good("GET", ONE)
            place = found["spec"]
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            refused = await api("PUT", ONE, found)
            assert f'"{value}": field is immutable' in refused.body["message"]

    run(talk)


def test_unknown_formats_are_warned_of_once() -> None:
    async def talk(api: Api) -> None:
        openapi = schema(
            a={"type": "string", "format": "odd"}, b={"type": "array", "items": {"type": "integer", "format": "x"}}
        )
        made = await api("POST", DEFINITIONS, definition(version(openapi=openapi)))
        assert made.warnings == ['299 - "unrecognized format \\"odd\\""', '299 - "unrecognized format \\"x\\""']
        found = await api.good("GET", ONE)
        found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["c"] = {
            "type": "object",
            "format": "new",
        }
        assert (await api("PUT", ONE, found)).warnings == ['299 - "unrecognized format \\"new\\""']

    run(talk)


def test_the_status_of_a_definition_cannot_be_set_by_its_author() -> None:
    async def talk(api: Api) -> None:
        raw = {
            **definition(),
            "status": {"acceptedNames": {"plural": "x", "kind": "X"}, "conditions": [], "storedVersions": ["v9"]},
        }
        await api.define(raw)
        assert (await api.good("GET", ONE))["status"]["storedVersions"] == ["v1"]
        refused = await api(
            "PATCH", f"{ONE}/status", {"status": {"acceptedNames": {"plural": "NO"}}}, content_type=MERGE
        )
        assert refused.code == 422
        assert refused.body["details"]["causes"][0]["field"] == "status.acceptedNames.plural"

    run(talk)


def test_deleting_a_definition_deletes_its_objects_and_ends_its_watches() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        await api.good("POST", WIDGETS, widget("a"))
        await api.good("POST", WIDGETS, widget("b"))
        events = await api.watch(WIDGETS)
        seen = [json.loads(line) for line in (await anext(events)).splitlines()]
        gone = await api.good("DELETE", ONE)
        assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert gone["metadata"]["deletionTimestamp"]
        assert conditions(gone)["Terminating"] == ("True", "InstanceDeletionPending")
        async for chunk in events:
            seen += [json.loads(line) for line in chunk.splitlines()]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("DELETED", "a"),
            ("DELETED", "b"),
        ]
        assert (await api("GET", ONE)).code == 404
        answer = await api("GET", WIDGETS)
        assert (answer.code, answer.text) == (404, "404 page not found\n")
        await api.define(definition())
        assert (await api.good("GET", WIDGETS))["items"] == []

    run(talk)


def test_a_definition_waits_for_objects_that_have_finalizers() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        held = widget("w")
        held["metadata"]["finalizers"] = ["example.com/x"]
        await api.good("POST", WIDGETS, held)
        await api.good("DELETE", ONE)
        found = await api.good("GET", ONE)
        assert conditions(found)["Terminating"] == ("True", "InstanceDeletionInProgress")
        assert (await api.good("GET", f"{WIDGETS}/w"))["metadata"]["deletionTimestamp"]
        late = await api("POST", WIDGETS, widget("late"))
        assert late.code == 403
        assert "create not allowed while custom resource definition is terminating" in late.body["message"]
        await api.good("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}, content_type=MERGE)
        assert (await api("GET", ONE)).code == 404
        assert (await api("GET", WIDGETS)).code == 404

    run(talk)


def test_a_definition_with_finalizers_of_others_stays_for_them() -> None:
    async def talk(api: Api) -> None:
        raw = definition()
        raw["metadata"]["finalizers"] = ["example.com/mine"]
        await api.define(raw)
        await api.good("DELETE", ONE)
        found = await api.good("GET", ONE)
        assert found["metadata"]["finalizers"] == ["example.com/mine"]
        assert conditions(found)["Terminating"] == ("False", "InstanceDeletionCompleted")
        await api.good("PATCH", ONE, {"metadata": {"finalizers": None}}, content_type=MERGE)
        assert (await api("GET", ONE)).code == 404

    run(talk)


def test_a_definition_that_was_never_established_is_deleted_immediately() -> None:
    async def talk(api: Api) -> None:
        await api.define(definition())
        second = definition(plural="gadgets")
        second["metadata"]["name"] = "gadgets.example.com"
        await api.define(second)
        await api.good("DELETE", f"{DEFINITIONS}/gadgets.example.com")
        assert (await api("GET", f"{DEFINITIONS}/gadgets.example.com")).code == 404

    run(talk)


def test_a_definition_of_a_built_in_resource_is_never_served() -> None:
    async def talk(api: Api) -> None:
        raw = definition(plural="leases", kind="Mine")
        raw["spec"]["group"] = "coordination.k8s.io"
        raw["metadata"] = {
            "name": "leases.coordination.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        }
        await api.define(raw)
        leases = api.server.registry.get("coordination.k8s.io", "v1", "leases")
        assert leases is not None
        assert not leases.custom
        await api.good("DELETE", f"{DEFINITIONS}/leases.coordination.k8s.io")
        assert (await api("GET", f"{DEFINITIONS}/leases.coordination.k8s.io")).code == 404
        assert api.server.registry.get("coordination.k8s.io", "v1", "leases") is leases

    run(talk)


def test_a_definition_that_cannot_be_served_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = CustomResources._serve

    def failing(self: CustomResources, raw: Json) -> None:
        if raw["metadata"]["name"] == NAME:
            raise RuntimeError("cannot be served")
        serve(self, raw)

    monkeypatch.setattr(CustomResources, "_serve", failing)

    async def talk(api: Api) -> None:
        await api.define(definition())
        second = definition(plural="zebras", kind="Zebra")
        second["metadata"]["name"] = "zebras.example.com"
        await api.define(second)
        assert (await api("GET", WIDGETS)).code == 404
        assert (await api("GET", "/apis/example.com/v1/zebras")).code == 200

    run(talk)


def test_definitions_may_be_written_by_many_at_once() -> None:
    async def talk(api: Api) -> None:
        names = [f"kind{i}s" for i in range(8)]
        raws = [definition(plural=name, kind=name.capitalize()) for name in names]
        for name, raw in zip(names, raws, strict=True):
            raw["metadata"]["name"] = f"{name}.example.com"
        await asyncio.gather(*(api.define(raw) for raw in raws))
        for name in names:
            assert (await api("GET", f"/apis/example.com/v1/{name}")).code == 200
        await asyncio.gather(*(api.good("DELETE", f"{DEFINITIONS}/{name}.example.com") for name in names))
        assert (await api.good("GET", DEFINITIONS))["items"] == []

    run(talk)


def test_a_dry_run_defines_nothing() -> None:
    async def talk(api: Api) -> None:
        await api.good("POST", f"{DEFINITIONS}?dryRun=All", definition())
        assert (await api("GET", ONE)).code == 404
        assert (await api("GET", WIDGETS)).code == 404

    run(talk)


def test_definitions_and_their_objects_are_there_after_a_restart() -> None:
    log = KeptLog()

    async def before(api: Api) -> None:
        await api.define(definition(version(openapi=schema(n={"type": "integer", "default": 1})), shortNames=["wd"]))
        await api.good("POST", WIDGETS, widget("w", {}))

    async def after(api: Api) -> None:
        assert (await api.good("GET", f"{WIDGETS}/w"))["spec"] == {"n": 1}
        await api.good("POST", WIDGETS, widget("x", {"n": 2}))
        refused = await api("POST", WIDGETS, widget("y", {"n": "text"}))
        assert refused.code == 422

    run(before, log)
    run(after, log)


def test_an_end_that_was_interrupted_is_finished_after_a_restart() -> None:
    log = KeptLog()

    async def before(api: Api) -> None:
        await api.define(definition())
        held = widget("w")
        held["metadata"]["finalizers"] = ["example.com/x"]
        await api.good("POST", WIDGETS, held)
        await api.good("POST", WIDGETS, widget("x"))
        await api.good("DELETE", ONE)

    async def after(api: Api) -> None:
        assert [item["metadata"]["name"] for item in (await api.good("GET", WIDGETS))["items"]] == ["w"]
        assert (await api("POST", WIDGETS, widget("late"))).code == 403
        await api.good("PATCH", f"{WIDGETS}/w", {"metadata": {"finalizers": None}}, content_type=MERGE)
        assert (await api("GET", ONE)).code == 404

    run(before, log)
    run(after, log)
