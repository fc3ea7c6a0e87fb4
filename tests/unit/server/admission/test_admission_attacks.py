"""Published vulnerabilities of admission, tried as attacks on a whole server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.stage.api import Answer, Api, asking
from tests.stage.server import started_server

from ostinato.server.admission.pods.image_policy import ImagePolicy
from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.request import User
from ostinato.server.webhooks.target import CallError, Target
from ostinato.world import Simulation

PODS = "/api/v1/namespaces/default/pods"
POLICY = ImagePolicy(
    backend=Target("h", 443, "h", "/", None, b""), allow_ttl=60, deny_ttl=30, retry_backoff=0.5, default_allow=False
)


async def _strict_account(api: Api) -> None:
    """An account whose Pods may use the Secret `mine` and no other."""
    annotations = {"kubernetes.io/enforce-mountable-secrets": "true"}
    account = {"metadata": {"name": "strict", "annotations": annotations}, "secrets": [{"name": "mine"}]}
    assert (await api.post("/api/v1/namespaces/default/serviceaccounts", account)).code == 201


def _pod(**container: Any) -> Any:
    container = {"name": "c", "image": "i", **container}
    spec = {"serviceAccountName": "strict", "automountServiceAccountToken": False, "containers": [container]}
    return {"metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_cve_2024_3177_secrets_cannot_be_read_through_env_from(kind: str) -> None:
    async def attack(api: Api) -> None:
        await _strict_account(api)
        for theirs, code in (("theirs", 403), ("mine", 201)):
            pod = _pod()
            stolen = {"name": "d", "image": "i", "envFrom": [{"secretRef": {"name": theirs}}]}
            pod["spec"][kind] = [*pod["spec"].get(kind, ()), stolen]
            answer = await api.post(f"{PODS}?dryRun=All", pod)
            assert answer.code == code, answer
            assert code == 201 or "does not reference that secret" in answer.message

    asking(attack)()


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": "x", "valueFrom": {"secretKeyRef": {"name": "theirs", "key": "k"}}}]},
        {"envFrom": [{"secretRef": {"name": "theirs"}}]},
    ],
)
def test_cve_2023_2728_secrets_cannot_be_read_by_ephemeral_containers(container: Any) -> None:
    async def attack(api: Api) -> None:
        await _strict_account(api)
        assert (await api.post(PODS, _pod())).code == 201
        added = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", **container}]}}
        media = "application/strategic-merge-patch+json"
        answer = await api.ask("PATCH", f"{PODS}/p/ephemeralcontainers", added, content_type=media)
        assert answer.code == 500  # as kube-apiserver has it
        assert "does not reference that secret" in answer.message
        assert "ephemeralContainers" not in (await api.get(f"{PODS}/p")).body["spec"]

    asking(attack)()


class Backend:
    """An image policy backend that refuses what is called evil."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.failures = 0

    async def __call__(self, target: Target, body: bytes, seconds: int) -> bytes:
        self.asked.append(json.loads(body)["spec"])
        if self.failures:
            self.failures -= 1
            raise CallError("read: connection reset by peer")
        evil = any("evil" in each["image"] for each in self.asked[-1]["containers"])
        return json.dumps({"status": {"allowed": not evil}}).encode()


def _with_policy(test: Any, policy: ImagePolicy = POLICY) -> None:
    simulation = Simulation(seed=1)
    settings = AdmissionSettings(enabled=("ImagePolicyWebhook",), configuration={"ImagePolicyWebhook": policy})

    async def main() -> None:
        async with started_server(simulation, admission=settings) as server:
            backend = Backend()
            server.webhooks._client = type("Client", (), {"call": backend, "close": lambda *_: None})()  # type: ignore[assignment]
            server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
            api = Api(server)
            account = {"metadata": {"name": "default"}}
            assert (await api.post("/api/v1/namespaces/default/serviceaccounts", account)).code == 201
            await test(api, backend)

    simulation.run(main())


def _image(name: str, image: str) -> Any:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image}]}}


async def _add_ephemeral(api: Api, image: str) -> Answer:
    added = {"spec": {"ephemeralContainers": [{"name": "e", "image": image}]}}
    media = "application/strategic-merge-patch+json"
    return await api.ask("PATCH", f"{PODS}/a/ephemeralcontainers", added, content_type=media)


def test_cve_2023_2727_the_image_policy_holds_for_ephemeral_containers() -> None:
    async def attack(api: Api, backend: Backend) -> None:
        assert (await api.post(PODS, _image("a", "good"))).code == 201
        answer = await _add_ephemeral(api, "evil")
        assert answer.code == 403
        assert "one or more images rejected by webhook backend" in answer.message
        assert backend.asked[-1] == {"containers": [{"image": "evil"}], "namespace": "default"}
        assert (await _add_ephemeral(api, "good")).code == 200

    _with_policy(attack)


def test_the_image_policy_remembers_answers_for_their_time() -> None:
    async def test(api: Api, backend: Backend) -> None:
        for seconds, asked in ((0, 1), (59, 1), (2, 2)):
            await api.server.world.clock.sleep(seconds)
            assert (await api.post(f"{PODS}?dryRun=All", _image("a", "good"))).code == 201
            assert len(backend.asked) == asked
        for seconds, asked in ((0, 3), (29, 3), (2, 4)):
            await api.server.world.clock.sleep(seconds)
            assert (await api.post(f"{PODS}?dryRun=All", _image("a", "evil"))).code == 403
            assert len(backend.asked) == asked

    _with_policy(test)


def test_the_image_policy_webhook_is_retried_then_rejects() -> None:
    async def test(api: Api, backend: Backend) -> None:
        backend.failures = 3
        assert (await api.post(f"{PODS}?dryRun=All", _image("a", "good"))).code == 201
        assert len(backend.asked) == 4
        backend.failures = 5
        answer = await api.post(f"{PODS}?dryRun=All", _image("a", "other"))
        assert (answer.code, answer.message) == (
            403,
            'pods "a" is forbidden: read: connection reset by peer',
        )

    _with_policy(test)


def test_cve_2021_25735_a_validating_webhook_sees_the_stored_node() -> None:
    seen: list[Any] = []

    async def webhook(client: Any, review: bytes, seconds: int) -> bytes:
        request = json.loads(review)["request"]
        seen.append(request)
        allowed = request["oldObject"]["metadata"]["labels"].get("locked") != "true"
        response = {"uid": request["uid"], "allowed": allowed}
        return json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        ).encode()

    async def attack(api: Api) -> None:
        api.server.webhooks.override = webhook
        assert (await api.post("/api/v1/nodes", {"metadata": {"name": "n", "labels": {"locked": "true"}}})).code == 201
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["UPDATE"],
            "resources": ["nodes", "nodes/status"],
        }
        hook = {
            "name": "a.example.com",
            "rules": [rule],
            "clientConfig": {"url": "https://h/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        assert (await api.post(path, {"metadata": {"name": "w"}, "webhooks": [hook]})).code == 201
        unlocked = {"metadata": {"name": "n", "labels": {"locked": "false"}}}
        for answer in (
            await api.put("/api/v1/nodes/n", unlocked),
            await api.merge("/api/v1/nodes/n", unlocked),
            await api.put("/api/v1/nodes/n/status", unlocked),
            await api.apply(
                "/api/v1/nodes/n?fieldManager=m&force=true", {"apiVersion": "v1", "kind": "Node", **unlocked}
            ),
        ):
            assert (answer.code, "denied the request" in answer.message) == (400, True), answer
        assert {each["oldObject"]["metadata"]["labels"]["locked"] for each in seen} == {"true"}
        assert (await api.get("/api/v1/nodes/n")).body["metadata"]["labels"]["locked"] == "true"

    asking(attack)()
