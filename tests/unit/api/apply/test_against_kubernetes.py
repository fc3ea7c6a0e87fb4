"""The same answers as Kubernetes: its own apply machinery was run on these inputs, and its answers were kept.

- `fieldsets.json`: pairs of field sets and what set algebra makes of them.
- `typed.json`: objects, and their fields or the reason why they are refused.
- `scale.json`: managedFields of a parent and of its Scale, told in each other's terms.
- `extract.json`: objects and field sets, and what is left when the fields are extracted or removed.
- `sequences.json`: writes to one object, one after the other. `mode` says what the object is on the server: a Go struct
  ("typed"), JSON under a built-in schema ("unstructured"), under one of `schemas.json` ("crd"), or without ("deduced").
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.apply import ApplyError, FieldManager, ScaleOwnership, field_manager, from_paths, zero_object
from ostinato.api.apply.fieldpath.field_set import (
    FieldSetError,
    difference,
    difference_recursive,
    field_path,
    intersection,
    leaves,
    ordered,
    parse,
    path_text,
    paths,
    union,
    without,
)
from ostinato.api.apply.typed.compare import fields_of
from ostinato.api.apply.typed.merge import extract, remove
from ostinato.api.apply.typed.merge_rules import rules_of
from ostinato.api.apply.typed.validate import TypedError, validate
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema, builtin_schemas

_DATA = Path(__file__).parents[3] / "data" / "apply"


def load(name: str) -> Any:
    return json.loads((_DATA / name).read_text())


_SCHEMAS = load("schemas.json")


def schema_of(case: dict[str, Any], api_version: str | None = None) -> Schema | None:
    api_version = api_version or case.get("apiVersion")
    if "schema" in case:
        return Schema.of(_SCHEMAS[case["schema"]][f"{api_version.rpartition('/')[2]}.Thing"])
    if "kind" not in case or case.get("mode") == "deduced":
        return None
    return builtin_schemas().of(GroupVersionKind.of(api_version, case["kind"]))


def written(fields: dict[str, Any]) -> str:
    return json.dumps(ordered(fields), separators=(",", ":"), ensure_ascii=False)


def rewritten(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("case", load("fieldsets.json"), ids=str)
def test_set_algebra(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(FieldSetError):
            parse(case["a"])
        return
    one, other = parse(case["a"]), parse(case["b"])
    assert written(one) == rewritten(case["canonical"])
    assert written(union(one, other)) == rewritten(case["union"])
    assert written(intersection(one, other)) == rewritten(case["intersection"])
    assert written(difference(one, other)) == rewritten(case["difference"])
    assert written(difference_recursive(one, other)) == rewritten(case["recursive_difference"])
    assert [path_text(path) for path in paths(one)] == case["paths"]
    assert [path_text(path) for path in paths(leaves(one))] == case["leaves"]


@pytest.mark.parametrize("case", load("typed.json"), ids=lambda case: json.dumps(case["object"])[:80])
def test_checks_and_fields(case: dict[str, Any]) -> None:
    rules = rules_of(schema_of(case))
    if "error" in case:
        with pytest.raises(TypedError) as caught:
            validate(case["object"], rules, duplicates=case.get("duplicates", False))
        assert sorted(str(caught.value).split("\n")) == sorted(case["error"].split("\n"))
    else:
        validate(case["object"], rules, duplicates=case.get("duplicates", False))
        assert written(fields_of(case["object"], rules)) == rewritten(case["fields"])


def _without_empties(value: Any) -> Any:
    """What an object and the Go struct made from it have in common."""
    if isinstance(value, dict):
        kept = {name: _without_empties(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in (None, {}, [], "", 0, False)}
    return [_without_empties(item) for item in value] if isinstance(value, list) else value


def _comparable(value: dict[str, Any], mode: str) -> Any:
    metadata = {name: inner for name, inner in value["metadata"].items() if name not in ("managedFields", "uid")}
    value = {**value, "metadata": metadata}
    return _without_empties(value) if mode == "typed" else value


@pytest.mark.parametrize("sequence", load("sequences.json"), ids=lambda sequence: sequence["name"])
def test_sequences_of_writes(sequence: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mode = sequence["mode"]
    if mode != "typed":  # JSON on the server starts with nothing, whatever its kind
        monkeypatch.setattr(
            field_manager, "zero_object", lambda gvk: {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {}}
        )
    live: dict[str, Any] = {}
    for step in sequence["steps"]:
        live = step.get("live", live)
        gvk = GroupVersionKind.of(step["apiVersion"], sequence["kind"])
        manager = FieldManager(
            gvk,
            {version: schema_of(sequence, version) for version in sequence.get("versions", [sequence["apiVersion"]])},
            subresource=step.get("subresource", ""),
            allowed={
                version: without(from_paths(*(field_path(*path) for path in reset)))
                for version, reset in step.get("reset", {}).items()
            },
            convert=lambda value, version: {**value, "apiVersion": version},
        )
        before = live
        given = json.dumps([before, step.get("config"), step.get("new")])
        name = step.get("manager", "")
        outcome: dict[str, Any] | Exception
        try:
            if step["op"] == "apply":
                outcome = manager.apply(live, step["config"], name, step["now"], force=step.get("force", False))
            else:
                outcome = manager.update(live, step["new"], name, step["now"])
        except (APIError, ApplyError) as error:
            outcome = error
        if isinstance(outcome, dict):
            assert "error" not in step
            assert outcome["metadata"].get("managedFields") == step["result"]["metadata"].get("managedFields")
            assert _comparable(outcome, mode) == _comparable(step["result"], mode)
            live = {**step["result"], "metadata": {"uid": "uid", **step["result"]["metadata"]}}
        else:
            assert str(outcome) == step["error"]
            if isinstance(outcome, APIError):
                causes = sorted(f"{cause.message} | {cause.field}" for cause in outcome.causes)
                assert (outcome.code, causes) == (step["code"], step.get("causes", []))
        assert json.dumps([before, step.get("config"), step.get("new")]) == given  # inputs stay as they are


def test_a_kind_starts_as_its_go_struct() -> None:
    assert zero_object(GroupVersionKind("apps", "v1", "Deployment")) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {},
        "spec": {"selector": None, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": None}}},
        "status": {},
    }


@pytest.mark.parametrize("case", load("scale.json"), ids=str)
def test_ownership_through_scale(case: dict[str, Any]) -> None:
    replicas = {version: None if path is None else field_path(*path) for version, path in case["paths"].items()}
    owners = ScaleOwnership(case["parent"], case["apiVersion"], replicas)
    assert owners.to_scale() == (case["toScale"] or [])
    assert owners.to_parent(case["scale"]) == (case["toParent"] or [])


@pytest.mark.parametrize("case", load("extract.json"), ids=lambda case: json.dumps(case["object"])[:80])
def test_extracting_and_removing(case: dict[str, Any]) -> None:
    rules = rules_of(schema_of(case))
    fields = parse(case["fields"])
    assert extract(case["object"], leaves(fields), rules) == case["extracted"]
    assert remove(case["object"], fields, rules) == case["removed"]
