"""Conversations with a real kube-apiserver, replayed on the field manager alone.

There is no defaulting, validation or storage here: after each write the object goes on as kube-apiserver answered it,
where it answered in full. What is compared is what belongs to server-side apply: managedFields, conflicts and what a
configuration is refused for.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ostinato.api.apply import ApplyError, FieldManager, ScaleOwnership, field_path, from_paths, without
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema, builtin_schemas

_SCENARIOS = json.loads((Path(__file__).parents[3] / "data" / "apply" / "recorded.json").read_text())
_NOW = "2024-01-01T00:00:00Z"
_KINDS = {
    "configmaps": "ConfigMap",
    "deployments": "Deployment",
    "secrets": "Secret",
    "services": "Service",
    "pods": "Pod",
}
_RESETS = {"": [("status",)], "status": [("spec",), ("metadata", "labels")]}
_CUSTOM_RESETS = {"": [("status",)], "status": [("spec",), ("metadata",)]}


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merged(made.get(name), value)
    return made


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _timeless(entries: list[dict[str, Any]] | None) -> list[str]:
    return sorted(
        json.dumps({name: value for name, value in entry.items() if name != "time"}, sort_keys=True)
        for entry in entries or []
    )


# Conversations in which the field manager has no part.
_SERVER_ALONE = {
    "a field manager is required",
    "an incomplete apply that would create is validated",
    "apply is a create for RBAC",
    "apply must name the object in the path",
    "apply needs apiVersion and kind",
    "apply on the status of a missing object",
    "apply takes a YAML body",
    "apply that fails validation is refused",
    "apply to a missing namespace",
    "apply with duplicate keys in the body",
    "json and apply content types",
    "owner references are keyed by uid",  # the recording hides the uids
}


class Server:
    """As much of a server as these conversations need."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.customs: dict[str, dict[str, Schema]] = {}  # resource -> apiVersion -> schema
        self.compared = 0

    def play(self, step: dict[str, Any]) -> None:
        url = urlsplit(step["path"])
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        place = re.match(
            r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)/(?:namespaces/[^/]+/)?(?P<resource>.+)", url.path
        )
        if place is None or "dryRun" in query:
            return
        resource, _, rest = place["resource"].partition("/")
        name, _, subresource = rest.partition("/")
        version = f"{place['group']}/{place['version']}" if place["group"] else place["version"]
        answer, body = step["answer"], step.get("body")
        if resource == "customresourcedefinitions" and isinstance(body, dict):
            self.define(body)
        if resource not in _KINDS and resource not in self.customs:
            return
        if not name and isinstance(body, dict):
            name = body.get("metadata", {}).get("name", "")
        key = f"{resource}/{name}"
        if step["verb"] == "delete" and step["code"] == 200:
            self.objects.pop(key, None)
        if step["verb"] == "get" and key in self.objects and step["code"] == 200:
            self.compare(self.objects[key], answer)
        if step["verb"] not in ("patch", "put", "post"):
            return
        if not isinstance(body, dict):  # JSON patches and YAML are not for the field manager to read
            if step["code"] < 300 and "kind" in answer:
                self.objects[key] = answer
            return
        manager = query.get("fieldManager", "go-http-client")
        fields = self.manager(resource, version, subresource)
        live = self.objects.get(key)
        before = self.scaled(live, version) if subresource == "scale" and live else live
        try:
            if step.get("type") == "apply":
                if before is not None:
                    before = {**before, "apiVersion": "autoscaling/v1" if subresource == "scale" else version}
                after = fields.apply(before, body, manager, _NOW, force="force" in query)
            else:
                new = _merged(before, body) if step["verb"] == "patch" else body
                new = {**new, "metadata": {"uid": "u", **new["metadata"]}} if live else new
                after = fields.update(before, new, manager, _NOW)
        except (APIError, ApplyError) as error:
            self.compare_refusal(error, step)
            return
        assert step["code"] != 500, answer
        assert "Apply failed" not in str((answer or {}).get("message"))
        if step["code"] < 300:
            # What an update owns of a workload includes defaults, and those are not made here.
            defaulted = resource != "configmaps" and step.get("type") != "apply"
            comparable = not defaulted and "ignore" not in step
            self.store(key, live, after, answer if comparable else {}, version, subresource)
            if defaulted and "kind" in answer:
                self.objects[key] = answer
            elif defaulted and not subresource and "metadata.managedFields" in answer:
                self.objects[key]["metadata"]["managedFields"] = answer["metadata.managedFields"]

    def store(self, key: str, live: Any, after: Any, answer: Any, version: str, subresource: str) -> None:
        if subresource == "scale":
            owners = ScaleOwnership(
                live["metadata"].get("managedFields"), version, {version: field_path("spec", "replicas")}
            )
            entries = owners.to_parent(after["metadata"].get("managedFields"))
            after = _merged(
                live, {"spec": {"replicas": after["spec"]["replicas"]}, "metadata": {"managedFields": entries}}
            )
        else:
            self.compare(after, answer)
            if "kind" in answer and "metadata" in answer:
                after = answer
            for path, value in answer.items():
                if re.fullmatch(r"spec\.[a-zA-Z]+", path):
                    after = _merged(after, {"spec": {path.removeprefix("spec."): value}})
        self.objects[key] = _without_nulls({**after, "metadata": {"uid": "u", **after["metadata"]}})

    def compare_refusal(self, refusal: APIError | ApplyError, step: dict[str, Any]) -> None:
        assert step["code"] >= 400, refusal
        answer = step["answer"]
        if step["code"] in (409, 500):
            self.compared += 1
            assert str(refusal) == answer.get("message", str(refusal))
        if isinstance(refusal, APIError) and step["code"] == 409:
            causes = sorted((cause.field, cause.message) for cause in refusal.causes)
            assert causes == sorted((cause["field"], cause["message"]) for cause in answer["details"]["causes"])

    def compare(self, ours: dict[str, Any], answer: dict[str, Any]) -> None:
        if "metadata.managedFields" in answer:
            theirs = answer["metadata.managedFields"]
        elif "metadata" in answer:
            theirs = answer["metadata"].get("managedFields")
        else:
            return
        self.compared += 1
        assert _timeless(ours["metadata"].get("managedFields")) == _timeless(None if theirs == "<absent>" else theirs)

    def scaled(self, live: dict[str, Any], version: str) -> dict[str, Any]:
        owners = ScaleOwnership(
            live["metadata"].get("managedFields"), version, {version: field_path("spec", "replicas")}
        )
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {**live["metadata"], "managedFields": owners.to_scale()},
            "spec": {"replicas": live["spec"]["replicas"]},
        }

    def manager(self, resource: str, version: str, subresource: str) -> FieldManager:
        if subresource == "scale":
            gvk = GroupVersionKind("autoscaling", "v1", "Scale")
            return FieldManager(gvk, {"autoscaling/v1": builtin_schemas().of(gvk)}, subresource="scale")
        custom = self.customs.get(resource)
        gvk = GroupVersionKind.of(version, "Widget" if custom else _KINDS[resource])
        resets = (_CUSTOM_RESETS if custom else _RESETS)[subresource]
        if custom and not any("status" in str(schema.raw.get("subresources")) for schema in custom.values()):
            resets = []
        if resource in ("configmaps", "secrets"):
            resets = []
        return FieldManager(
            gvk,
            custom or {version: builtin_schemas().of(gvk)},
            subresource=subresource,
            allowed={version: without(from_paths(*(field_path(*path) for path in resets)))},
            convert=lambda value, to: {**value, "apiVersion": to},
        )

    def define(self, body: dict[str, Any]) -> None:
        spec = body["spec"]
        metadata = builtin_schemas().by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").raw
        definitions = {"ObjectMeta": metadata, **builtin_schemas().by_name("io.k8s.api.core.v1.Pod")._definitions}
        self.customs[spec["names"]["plural"]] = {
            f"{spec['group']}/{version['name']}": Schema.of(
                {
                    **version["schema"]["openAPIV3Schema"],
                    "subresources": version.get("subresources"),
                    "properties": {
                        **version["schema"]["openAPIV3Schema"].get("properties", {}),
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"$ref": "#/definitions/ObjectMeta"},
                    },
                },
                definitions,
            )
            for version in spec["versions"]
        }


@pytest.mark.parametrize("scenario", _SCENARIOS, ids=lambda scenario: scenario["name"])
def test_a_conversation(scenario: dict[str, Any]) -> None:
    server = Server()
    for step in scenario["steps"]:
        server.play(step)
    if scenario["name"] not in _SERVER_ALONE:
        assert server.compared
