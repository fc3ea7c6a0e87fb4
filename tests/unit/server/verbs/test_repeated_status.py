"""A patch of the status that is like earlier ones stores what it would store without them, and is not decoded."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.stage.api import Answer, Api, asking

from ostinato.server.request import Request, Response, User
from ostinato.server.resources.core.pods.status_shapes import Shape, StatusShapes
from ostinato.server.verbs.patch import PatchChange

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
OWNER_UID = "6f1c3c1e-0000-4000-8000-000000000000"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": OWNER_UID, "controller": True}
POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"generateName": "web-", "labels": {"app": "web"}, "ownerReferences": [OWNER]},
    "spec": {"containers": [{"name": "main", "image": "web:1"}], "automountServiceAccountToken": False},
}
NODES = ("node-1", "node-2")
TIMES = [f"2031-01-01T00:00:{second:02}Z" for second in range(4)]
ADDRESSES = ["10.0.0.1", "10.0.0.2", "9.0.0.1"]
ID = "simulated://00000000-0000-4000-8000-%012x"


async def prepare(api: Api) -> None:
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
    assert (await api.post("/api/v1/namespaces/default/serviceaccounts", account)).code == 201
    for node in NODES:
        assert (await api.post("/api/v1/nodes", {"metadata": {"name": node}})).code == 201
        user = User(f"system:node:{node}", groups=("system:nodes", "system:authenticated"))
        api.server.authenticator.add(node, user)


async def bound_pod(api: Api, node: str = NODES[0], **fields: Any) -> dict[str, Any]:
    made = await api.post(PODS, {**POD, **fields})
    assert made.code == 201, made.message
    name = made.body["metadata"]["name"]
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    assert (await api.post(f"{PODS}/{name}/binding", binding)).code == 201
    return (await api.get(f"{PODS}/{name}")).body


def report(pod: Mapping[str, Any], number: int = 1, time: str = TIMES[0], address: str = "") -> dict[str, Any]:
    """What a kubelet reports of a running Pod."""
    address = address or f"10.0.0.{number}"
    status = {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
        "containerStatuses": [{"name": "main", "containerID": ID % number, "state": {"running": {"startedAt": time}}}],
        "hostIP": "172.16.0.1",
        "hostIPs": [{"ip": "172.16.0.1"}, {"$patch": "replace"}],
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}, {"$patch": "replace"}],
        "startTime": time,
    }
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}


async def send(api: Api, pod: Mapping[str, Any], patch: Any, **headers: str) -> Answer:
    path = f"{PODS}/{pod['metadata']['name']}/status"
    return await api.ask("PATCH", path, patch, content_type=STRATEGIC, **headers)


async def teach(api: Api, count: int = 2, **fields: Any) -> None:
    for number in range(count):
        pod = await bound_pod(api, **fields)
        assert (await send(api, pod, report(pod, number + 1))).code == 200


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Pods whose patches took the long way."""
    names: list[str] = []
    apply = PatchChange.__call__

    def counted(self: PatchChange, old: dict[str, Any]) -> dict[str, Any]:
        names.append(old["metadata"]["name"])
        return apply(self, old)

    monkeypatch.setattr(PatchChange, "__call__", counted)
    return names


def test_the_third_patch_of_a_shape_is_not_applied_and_stores_the_same(applied: list[str]) -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api)
        assert len(applied) == 2
        pod = await bound_pod(api, "node-2")
        answer = await send(api, pod, report(pod, 7, TIMES[2]))
        assert answer.code == 200
        assert len(applied) == 2, "its result was known"

        pods = api.server.registry.get("", "v1", "pods")
        assert pods is not None
        pods.status_shapes = None
        other = await bound_pod(api, "node-2")
        slow = await send(api, other, report(other, 7, TIMES[2]))
        assert len(applied) == 3
        assert _anonymous(answer.body) == _anonymous(slow.body)
        assert msgspec.json.encode(answer.body["status"]) == msgspec.json.encode(slow.body["status"]), "in this order"
        assert answer.body["metadata"]["uid"] == pod["metadata"]["uid"]
        assert answer.body["spec"] == pod["spec"]
        assert (await api.get(f"{PODS}/{pod['metadata']['name']}")).body == answer.body

    talk()


def _anonymous(pod: dict[str, Any]) -> dict[str, Any]:
    own = ("name", "uid", "resourceVersion")
    return {**pod, "metadata": {name: value for name, value in pod["metadata"].items() if name not in own}}


def test_its_selectable_fields_are_its_own() -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api)
        pod = await bound_pod(api, "node-2")
        assert (await send(api, pod, report(pod, 9))).code == 200
        for selector in ("spec.nodeName=node-2", "status.podIP=10.0.0.9", "status.phase=Running,spec.nodeName=node-2"):
            found = (await api.get(f"{PODS}?fieldSelector={selector.replace('=', '%3D')}")).body["items"]
            assert [each["metadata"]["name"] for each in found] == [pod["metadata"]["name"]], selector

    talk()


def test_a_node_cannot_write_the_status_of_another_nodes_pod(applied: list[str]) -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        for number in range(3):
            pod = await bound_pod(api)
            assert (await send(api, pod, report(pod, number), authorization="Bearer node-1")).code == 200
        assert len(applied) == 2
        pod = await bound_pod(api, "node-2")
        answer = await send(api, pod, report(pod, 7), authorization="Bearer node-1")
        assert answer.code == 403, answer.body
        assert len(applied) == 3

    talk()


def test_servers_with_other_admission_do_not_share_results(applied: list[str]) -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api, 3)
        assert len(applied) == 2

    talk()
    applied.clear()
    talk()


def test_a_patch_for_another_uid_is_refused() -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api, 3)
        pod, other = await bound_pod(api), await bound_pod(api)
        assert (await send(api, pod, report(other, 7))).code == 422
        escaped = msgspec.json.encode(report(other, 7)).replace(b'"uid":"', b'"uid":"\\u0030')
        assert (await _send_text(api, pod, escaped)).status == 422

    talk()


async def _send_text(api: Api, pod: Mapping[str, Any], data: bytes) -> Response:
    headers = {"authorization": "Bearer admin", "content-type": STRATEGIC, "user-agent": "test/1"}
    answer = await api.server.handle(
        Request("PATCH", f"{PODS}/{pod['metadata']['name']}/status", "", headers, body=data)
    )
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"10.0.0.7", b"10.0.0.256"),
        (b"10.0.0.7", b"10.0.0.07"),
        (b'"startTime":"2031-01-01T00:00:00Z"', b'"startTime":"2031-02-30T00:00:00Z"'),
        (b'"hostIP":"172.16.0.1"', b'"hostIP":"172.16.0.2"'),
        (b'"10.0.0.7"', b'"\x01\x60"'),
    ],
)
def test_an_invalid_value_is_refused_although_the_shape_is_known(old: bytes, new: bytes) -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api, 3)
        pod = await bound_pod(api)
        data = msgspec.json.encode(report(pod, 7))
        assert old in data
        assert (await _send_text(api, pod, data.replace(old, new))).status in (400, 422)
        assert (await _send_text(api, pod, data)).status == 200

    talk()


def test_webhooks_and_policies_see_every_patch(applied: list[str]) -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api, 3)
        assert len(applied) == 2
        rules = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]}
        policy = {
            "metadata": {"name": "no"},
            "spec": {
                "matchConstraints": {"resourceRules": [rules]},
                "validations": [{"expression": "object.status.phase != 'Running'", "message": "not today"}],
            },
        }
        group = "/apis/admissionregistration.k8s.io/v1"
        assert (await api.post(f"{group}/validatingadmissionpolicies", policy)).code == 201
        binding = {"metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]}}
        assert (await api.post(f"{group}/validatingadmissionpolicybindings", binding)).code == 201
        pod = await bound_pod(api)
        answer = await send(api, pod, report(pod, 7))
        assert answer.code == 422, answer.body
        assert "not today" in answer.message

    talk()


def test_a_pod_that_changes_in_between_keeps_that_change() -> None:
    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        await teach(api, 3)
        pod = await bound_pod(api)
        changed = await api.merge(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"labels": {"more": "1"}}})
        assert changed.code == 200
        answer = await send(api, pod, report(pod, 7))
        assert answer.body["metadata"]["labels"] == {"app": "web", "more": "1"}
        assert answer.body["status"]["podIP"] == "10.0.0.7"

    talk()


def test_what_a_shape_predicts_is_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random patches, most of them alike, all take the long way: no prediction is wrong, no refused patch has one."""
    predictions: list[bytes | None] = []
    right = 0
    get, learn = StatusShapes.get, StatusShapes.learn

    def look(self: StatusShapes, shape: Shape) -> None:
        get(self, shape)
        known = self._known.get(shape.text)
        predictions.append(None if known is None else known.data(shape, 0))

    def compare(self: StatusShapes, shape: Shape, data: bytes, version: int, fields: Mapping[str, str]) -> None:
        nonlocal right
        known = self._known.get(shape.text)
        if known is not None:
            assert known.data(shape, version) == data
            assert known.fields(shape) == fields
            right += 1
        learn(self, shape, data, version, fields)

    monkeypatch.setattr(StatusShapes, "get", look)
    monkeypatch.setattr(StatusShapes, "learn", compare)
    rng = random.Random(1)

    @asking
    async def talk(api: Api) -> None:
        await prepare(api)
        for _ in range(250):
            spec = {**POD["spec"], "hostNetwork": True} if rng.random() < 0.1 else POD["spec"]
            node = rng.choice(NODES)
            pod = await bound_pod(api, node, spec=spec)
            for _ in range(rng.randint(1, 3)):
                await api.server.world.clock.sleep(rng.choice([0.0, 0.0, 1.0]))
                predictions.clear()
                user = rng.choice(["admin", "admin", "admin", *NODES])
                answer = await send(api, pod, _random_report(rng, pod), authorization=f"Bearer {user}")
                if answer.code != 200:
                    assert predictions in ([], [None]), answer.message

    talk()
    assert right > 60, "many were predicted"


def _random_report(rng: random.Random, pod: Mapping[str, Any]) -> dict[str, Any]:
    def time() -> str:
        return rng.choice([*TIMES[:2], pod["metadata"]["creationTimestamp"]])

    patch = report(pod, rng.randint(1, 30), time(), rng.choice(ADDRESSES))
    status: dict[str, Any] = patch["status"]
    status["startTime"] = time()
    mutations: list[Any] = [
        lambda: status.update(podIPs=[{"ip": each} for each in rng.sample([*ADDRESSES, "fd00::1", "::1"], 2)]),
        lambda: status.update(podIPs=[{"ip": status["podIP"]}, {"ip": rng.choice(["fd00::1", "2001::1"])}]),
        lambda: status.update(hostIP=rng.choice(ADDRESSES)),
        lambda: status.update(podIP=rng.choice(["300.0.0.1", "", "10.0.0.01", "10.128.0.1"])),
        lambda: status["conditions"].append({"type": rng.choice(ADDRESSES), "status": "True"}),
        lambda: status["conditions"].append({"type": "PodScheduled", "lastTransitionTime": time()}),
        lambda: status["conditions"][0].update(message=rng.choice([time(), *ADDRESSES, pod["metadata"]["uid"]])),
        lambda: status["containerStatuses"][0].update(containerID=rng.choice(["x", "a://" + "0" * 64])),
        lambda: status["containerStatuses"][0].update(allocatedResources={"ip": rng.choice(["1", "10.0.0.1"])}),
        lambda: status.update(qosClass=rng.choice(["BestEffort", "Guaranteed"])),
        lambda: status.pop("podIPs"),
        lambda: patch["metadata"].update(labels={"ip": rng.choice(ADDRESSES)}),
        lambda: patch["metadata"].update(annotations={"time": time()}),
        lambda: patch["metadata"].update(resourceVersion="1"),
        lambda: patch["metadata"].update(uid=OWNER_UID),
        lambda: patch.pop("metadata"),
        lambda: patch.update(spec={"nodeName": rng.choice(NODES)}),
    ]
    if rng.random() < 0.4:
        rng.choice(mutations)()
    return patch
