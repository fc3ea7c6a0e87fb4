"""A body that was created before makes the same object again, and is neither decoded nor validated anew."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Answer, Api, asking

from ostinato.server.request import body
from ostinato.server.resources.core.pods import strategy

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": True}


def pod(**metadata: Any) -> dict[str, Any]:
    metadata = {"generateName": "web-", "labels": {"app": "web"}, "ownerReferences": [OWNER], **metadata}
    spec = {"containers": [{"name": "main", "image": "web:1", "ports": [{"containerPort": 80}]}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


async def prepare(api: Api) -> None:
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
    assert (await api.post(ACCOUNTS, account)).code == 201


def without_identity(answer: Answer) -> dict[str, Any]:
    """The object without what every object has of its own."""
    assert answer.code == 201, answer.body
    own = ("name", "uid", "resourceVersion", "creationTimestamp")
    metadata = {name: value for name, value in answer.body["metadata"].items() if name not in own}
    for entry in metadata.get("managedFields", ()):
        assert entry["time"] == answer.body["metadata"]["creationTimestamp"]
        del entry["time"]
    return {**answer.body, "metadata": metadata}


def counting(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[str]:
    calls: list[str] = []
    function = getattr(module, name)

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_pods_of_one_template_are_decoded_and_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counting(monkeypatch, body, "read")
    validations = counting(monkeypatch, strategy, "validate_pod")
    warnings = counting(monkeypatch, strategy, "pod_warnings")

    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        reads.clear()
        found = [await api.post(PODS, pod(labels={"app": "decoded-once"})) for _ in range(10)]
        assert len({each.body["metadata"]["name"] for each in found}) == 10
        assert len({each.body["metadata"]["uid"] for each in found}) == 10
        first, *others = map(without_identity, found)
        assert all(each == first for each in others)
        assert [*map(len, (reads, validations, warnings))] == [1, 1, 1]

    talk()


def test_a_body_that_is_sent_in_another_way_is_decoded_again() -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        first = await api.post(PODS, pod())
        assert first.body["metadata"]["managedFields"][0]["manager"] == "test"
        other = await api.post(f"{PODS}?fieldManager=other", pod())
        assert other.body["metadata"]["managedFields"][0]["manager"] == "other"
        space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}}
        assert (await api.post("/api/v1/namespaces", space)).code == 201
        account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
        assert (await api.post("/api/v1/namespaces/a/serviceaccounts", account)).code == 201
        assert (await api.post("/api/v1/namespaces/a/pods", pod())).body["metadata"]["namespace"] == "a"

    talk()


def test_problems_of_a_repeated_body_are_reported_each_time() -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        odd = {**pod(), "odd": 1}
        for _ in range(2):
            assert (await api.post(PODS, odd)).warnings == ('299 - "unknown field \\"odd\\""',)
            assert (await api.post(f"{PODS}?fieldValidation=Strict", odd)).code == 400
        twice = pod()
        twice["spec"]["containers"][0]["ports"] *= 2  # duplicate ports
        [warning] = {(await api.post(PODS, twice)).warnings for _ in range(2)}
        assert warning
        wrong = pod()
        wrong["spec"]["containers"][0]["image"] = ""
        [problem] = {(await api.post(PODS, wrong)).message.partition("is invalid: ")[2] for _ in range(2)}
        assert problem.startswith("spec.containers[0].image")

    talk()


def test_a_known_spec_is_validated_again_if_the_name_of_its_pod_matters() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}

    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        for name, code in (("a", 201), ("b" * 253, 422)):
            made = pod(name=name, generateName="")
            made["spec"]["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": claim}}]
            assert (await api.post(PODS, made)).code == code

    talk()


def test_pods_of_one_controller_have_the_same_token_volume() -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)

        async def volume(**metadata: Any) -> str:
            answer = await api.post(PODS, pod(**metadata))
            return str(answer.body["spec"]["volumes"][0]["name"])

        assert await volume() == await volume()
        other = [{**OWNER, "uid": "u-2"}]
        assert await volume(ownerReferences=other) != await volume()
        assert await volume(ownerReferences=[]) != await volume(ownerReferences=[])

    talk()


def _widgets(default: str) -> dict[str, Any]:
    fields = {"size": {"type": "string", "default": default}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {"group": "x.dev", "scope": "Namespaced", "names": names, "versions": [version]}


@asking
async def test_a_repeated_body_gets_the_defaults_of_a_changed_definition(api: Api) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = await api.post(definitions, {"metadata": {"name": "widgets.x.dev"}, "spec": _widgets("small")})
    widget = {"kind": "Widget", "apiVersion": "x.dev/v1", "metadata": {"generateName": "w-"}}
    widgets = "/apis/x.dev/v1/namespaces/default/widgets"
    for _ in range(2):
        assert (await api.post(widgets, widget)).body["spec"] == {"size": "small"}
    changed = {**made.body, "spec": _widgets("large")}
    changed["metadata"] = {"name": "widgets.x.dev"}
    current = (await api.get(f"{definitions}/widgets.x.dev")).body["metadata"]["resourceVersion"]
    changed["metadata"]["resourceVersion"] = current
    assert (await api.put(f"{definitions}/widgets.x.dev", changed)).code == 200
    assert (await api.post(widgets, widget)).body["spec"] == {"size": "large"}
