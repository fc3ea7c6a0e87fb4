"""Admission webhooks: when they are asked, what is waited for, and what comes of their silence."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.stage.api import APPLY, Api, Json, asking

from ostinato.server.core import Server
from ostinato.server.request import Request, Response
from ostinato.server.webhooks import CallError

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
FOR_MAPS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}

Answering = Callable[[Json], Any]


class Hooks:
    """Webhooks by their path; each is given the request of a review, and gives fields of the response."""

    def __init__(self, api: Api, **answers: Answering) -> None:
        self.answers = answers
        self.requests: list[Json] = []
        self.clients: list[Json] = []
        self.seconds: list[int] = []
        api.server.webhooks.override = self

    async def __call__(self, client: Json, review: bytes, seconds: int) -> bytes:
        raw = json.loads(review)
        self.requests.append(raw["request"])
        self.clients.append(client)
        self.seconds.append(seconds)
        answer = self.answers[client["url"].rpartition("/")[2]](raw["request"])
        if asyncio.iscoroutine(answer):
            answer = await answer
        raw["response"] = {"uid": raw.pop("request")["uid"], "allowed": True, **(answer or {})}
        return json.dumps(raw).encode()


def patch(*operations: Json) -> Json:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def hook(name: str, **more: Any) -> Json:
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:9443/{name}"},
        "rules": [FOR_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


async def configure(api: Api, kind: str, *webhooks: Json, name: str = "test") -> None:
    made = await api.post(f"{GROUP}/{kind}webhookconfigurations", {"metadata": {"name": name}, "webhooks": webhooks})
    assert made.code == 201, made.message


def config_map(name: str = "m", **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "b"}}


@asking
async def test_no_webhook_is_called_without_a_configuration(api: Api) -> None:
    hooks = Hooks(api)
    assert (await api.post(MAPS, config_map())).code == 201
    await configure(api, "validating", hook("v", rules=[{**FOR_MAPS, "resources": ["secrets"]}]))
    assert (await api.merge(f"{MAPS}/m", {"data": {"a": "c"}})).code == 200
    assert hooks.requests == []


@asking
async def test_a_configuration_that_is_gone_is_heard_no_more(api: Api) -> None:
    Hooks(api, v=lambda request: {"allowed": False})
    await configure(api, "validating", hook("v"))
    assert (await api.post(MAPS, config_map())).code == 400
    await api.delete(f"{GROUP}/validatingwebhookconfigurations/test")
    assert (await api.post(MAPS, config_map())).code == 201


@asking
async def test_a_changed_configuration_applies_to_the_next_request(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: None)
    await configure(api, "validating", hook("v", timeoutSeconds=7))
    await api.post(MAPS, config_map("a"))
    path = f"{GROUP}/validatingwebhookconfigurations/test"
    found = (await api.get(path)).body
    found["webhooks"][0]["timeoutSeconds"] = 3
    assert (await api.put(path, found)).code == 200
    await api.post(MAPS, config_map("b"))
    assert hooks.seconds == [7, 3]


@asking
async def test_a_webhooks_change_is_stored_without_an_owner(api: Api) -> None:
    Hooks(api, m=lambda request: patch({"op": "add", "path": "/data/x", "value": "y"}))
    await configure(api, "mutating", hook("m"))
    made = (await api.post(MAPS, config_map())).body
    assert made["data"] == {"a": "b", "x": "y"}
    assert (await api.get(f"{MAPS}/m")).body == made
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


@asking
async def test_defaults_are_filled_in_after_a_change(api: Api) -> None:
    container = {"name": "side", "image": "side"}
    Hooks(api, m=lambda request: patch({"op": "add", "path": "/spec/containers/-", "value": container}))
    await configure(api, "mutating", hook("m", rules=[{**FOR_MAPS, "resources": ["pods"]}]))
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
    made = (await api.post("/api/v1/namespaces/default/pods", pod)).body
    side = made["spec"]["containers"][1]
    assert (side["name"], side["terminationMessagePath"], side["imagePullPolicy"]) == (
        "side",
        "/dev/termination-log",
        "Always",
    )
    # The plugins of the server have been asked again: the new container has the token, too.
    assert side["volumeMounts"] == made["spec"]["containers"][0]["volumeMounts"]


@asking
async def test_a_slow_webhook_has_its_timeout(api: Api) -> None:
    async def slow(request: Json) -> None:
        await api.server.world.clock.sleep(5)

    Hooks(api, v=slow)
    await configure(api, "validating", hook("v"), {**hook("v"), "name": "w.example.com"})
    clock = api.server.world.clock
    began = clock.monotonic()
    assert (await api.post(MAPS, config_map())).code == 201
    assert clock.monotonic() - began == 5  # both at once


@asking
async def test_a_request_timeout_limits_webhook_calls(api: Api) -> None:
    async def never(request: Json) -> None:
        await api.server.world.clock.sleep(1000)

    Hooks(api, v=never)
    await configure(api, "validating", hook("v"))
    clock = api.server.world.clock
    began = clock.monotonic()
    refused = await api.post(f"{MAPS}?timeout=2s", config_map())
    assert refused.code == 504
    assert clock.monotonic() - began == 2


def _unreachable(request: Json) -> Any:
    raise CallError('Post "https://127.0.0.1:9443/v?timeout=10s": EOF')


@asking
async def test_failure_policy_decides_when_a_webhook_does_not_respond(api: Api) -> None:
    Hooks(api, v=_unreachable)
    await configure(api, "validating", hook("v", failurePolicy="Ignore"))
    await configure(api, "mutating", hook("v", failurePolicy="Ignore"))
    assert (await api.post(MAPS, config_map("passed"))).code == 201
    await configure(api, "validating", hook("v"), name="strict")
    refused = await api.post(MAPS, config_map())
    why = 'failed calling webhook "v.example.com": failed to call webhook: '
    why += 'Post "https://127.0.0.1:9443/v?timeout=10s": EOF'
    assert (refused.code, refused.message) == (500, f"Internal error occurred: {why}")
    assert refused.body["details"]["causes"] == [{"message": why}]


@asking
async def test_a_dry_run_calls_only_webhooks_without_side_effects(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: None)
    await configure(api, "validating", hook("v", sideEffects="NoneOnDryRun"))
    assert (await api.post(f"{MAPS}?dryRun=All", config_map())).code == 201
    assert hooks.requests[0]["dryRun"] is True


@pytest.mark.parametrize("effects", ["Some", "Unknown"])
def test_an_old_configuration_with_side_effects_refuses_dry_runs(effects: str) -> None:
    @asking
    async def test(api: Api) -> None:
        hooks = Hooks(api, v=lambda request: None)
        await configure(api, "validating", hook("v", failurePolicy="Ignore"))
        _overwrite(api.server, effects)
        refused = await api.post(f"{MAPS}?dryRun=All", config_map())
        assert (refused.code, refused.message) == (400, 'admission webhook "v.example.com" does not support dry run')
        assert hooks.requests == []

    test()


def _overwrite(server: Server, effects: str) -> None:
    """As an older version let it be stored."""
    resource = server.registry.get("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
    assert resource is not None
    assert resource.collection is not None
    entry = resource.collection.entries["test"]
    entry.data = entry.data.replace(b'"sideEffects":"None"', f'"sideEffects":"{effects}"'.encode())


@asking
async def test_webhook_configurations_are_exempt_from_webhooks(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: {"allowed": False}, m=lambda request: {"allowed": False})
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await configure(api, "validating", hook("v", rules=[everything]))
    await configure(api, "mutating", hook("m", rules=[everything]))
    for kind in ("validating", "mutating"):
        path = f"{GROUP}/{kind}webhookconfigurations/test"
        assert (await api.merge(path, {"metadata": {"labels": {"a": "b"}}})).code == 200
        assert (await api.delete(path)).code == 200
    assert hooks.requests == []


@asking
async def test_webhooks_are_called_again_after_a_conflict(api: Api) -> None:
    await api.post(MAPS, config_map())
    raced = False

    async def race(request: Json) -> None:
        nonlocal raced
        if not raced:
            raced = True
            await api.merge(f"{MAPS}/m", {"data": {"other": "1"}})

    hooks = Hooks(api, v=race)
    await configure(api, "validating", hook("v"))
    changed = await api.merge(f"{MAPS}/m", {"data": {"mine": "1"}})
    assert changed.body["data"] == {"a": "b", "other": "1", "mine": "1"}
    seen = [sorted(request["object"]["data"]) for request in hooks.requests]
    assert seen == [["a", "mine"], ["a", "other"], ["a", "mine", "other"]]


@asking
async def test_an_apply_is_a_create_or_an_update(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: None)
    await configure(api, "validating", hook("v"))
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
    for _ in range(2):
        await api.ask("PATCH", f"{MAPS}/m?fieldManager=me", applied, content_type=APPLY)
    assert [request["operation"] for request in hooks.requests] == ["CREATE", "UPDATE"]
    assert hooks.requests[0]["options"]["fieldManager"] == "me"


@asking
async def test_the_review_names_the_requesting_user(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: None)
    await configure(api, "validating", hook("v"))
    await api.post(MAPS, config_map())
    told = hooks.requests[0]["userInfo"]
    assert told["username"]
    assert "system:masters" in told["groups"]


@asking
async def test_deletes_of_a_terminating_definition_call_no_webhook(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: {"allowed": False})
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    made = await api.post(definitions, {"metadata": {"name": "things.example.com"}, "spec": spec})
    assert made.code == 201, made.message
    things = "/apis/example.com/v1/namespaces/default/things"
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert (await api.post(things, thing)).code == 201
    await configure(api, "validating", hook("v", rules=[{**FOR_MAPS, "apiGroups": ["*"], "resources": ["things"]}]))
    assert (await api.delete(f"{things}/t")).code == 400
    assert (await api.delete(f"{definitions}/things.example.com")).code == 200
    assert (await api.get(f"{definitions}/things.example.com")).code == 404
    assert len(hooks.requests) == 1


@asking
async def test_access_reviews_call_webhooks(api: Api) -> None:
    hooks = Hooks(api, v=lambda request: {"allowed": False})
    rule = {**FOR_MAPS, "apiGroups": ["authorization.k8s.io"], "resources": ["*"]}
    await configure(api, "validating", hook("v", rules=[rule]))
    spec = {"nonResourceAttributes": {"path": "/", "verb": "get"}}
    refused = await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec})
    assert refused.code == 400
    assert hooks.requests[0]["kind"]["kind"] == "SelfSubjectAccessReview"


@asking
async def test_a_command_can_be_changed_or_refused_before_it_runs(api: Api) -> None:
    Hooks(api, m=lambda request: patch({"op": "replace", "path": "/command", "value": ["true"]}))
    pods = "/api/v1/namespaces/default/pods"
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "c:1"}]}
    assert (await api.post(pods, {"metadata": {"name": "p"}, "spec": spec})).code == 201
    asked: list[str] = []

    async def agent(request: Request) -> Response:
        asked.append(f"{request.path}?{request.query_string}")
        return Response(200, b"{}")

    api.server.nodes.add("n", agent)
    rule = {**FOR_MAPS, "operations": ["CONNECT"], "resources": ["pods/exec"]}
    await configure(api, "mutating", hook("m", rules=[rule]))
    answer = await api.post(f"{pods}/p/exec?command=rm&command=-rf&stdout=1", None, upgrade="websocket")
    assert answer.code == 200, answer.message
    assert asked == ["/exec/default/p/c?output=1&command=true"]
    Hooks(api, m=lambda request: patch({"op": "replace", "path": "/command", "value": [1]}))
    refused = await api.post(f"{pods}/p/exec?command=rm", None, upgrade="websocket")
    assert refused.message == (
        "Internal error occurred: json: cannot unmarshal number into Go struct field PodExecOptions.command of type "
        "[]string"
    )
    assert len(asked) == 1


@asking
async def test_a_webhook_can_reject_connect_requests(api: Api) -> None:
    seen: list[Any] = []

    def refuse(request: Json) -> Json:
        seen.append((request["kind"]["kind"], request["name"], request["operation"], request["object"].get("path")))
        return {"allowed": False, "status": {"message": "not through here"}}

    Hooks(api, v=refuse)
    rule = {**FOR_MAPS, "operations": ["CONNECT"], "resources": ["pods/proxy", "services/proxy", "nodes/proxy"]}
    await configure(api, "validating", hook("v", rules=[rule]))
    for path in ("namespaces/default/pods/p:80/proxy", "namespaces/default/services/s/proxy/a%20b", "nodes/n/proxy/x"):
        assert (await api.get(f"/api/v1/{path}")).message.endswith("denied the request: not through here")
    assert seen == [
        ("PodProxyOptions", "p:80", "CONNECT", None),
        ("ServiceProxyOptions", "s", "CONNECT", "/a b"),
        ("NodeProxyOptions", "n", "CONNECT", "/x"),
    ]


@pytest.mark.parametrize(("policy", "seen"), [("Never", "early"), ("IfNeeded", "late")])
def test_a_policy_is_reinvoked_after_a_webhook_if_needed(policy: str, seen: str) -> None:
    @asking
    async def test(api: Api) -> None:
        Hooks(api, m=lambda request: patch({"op": "add", "path": "/data/x", "value": "y"}))
        expression = "Object{metadata: Object.metadata{labels: {'seen': 'x' in object.data ? 'late' : 'early'}}}"
        spec = {
            "matchConstraints": {"resourceRules": [FOR_MAPS]},
            "reinvocationPolicy": policy,
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        }
        made = await api.post(f"{GROUP}/mutatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
        assert made.code == 201, made.message
        bound = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
        await api.post(f"{GROUP}/mutatingadmissionpolicybindings", bound)
        await configure(api, "mutating", hook("m"))
        assert (await api.post(MAPS, config_map())).body["metadata"]["labels"] == {"seen": seen}

    test()
