"""What admission adds to an audit event: webhooks, policies, and that patches of Secrets stay out."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tests.unit.server.audit.auditing import EVERYTHING, Scene, audited

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
PATCH = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]


def _configuration(resource: str, *names: str, **more: Any) -> Any:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    hooks = [
        {
            "name": name,
            "rules": [rule],
            "clientConfig": {"url": f"https://{name}/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }
        for name in names
    ]
    return {"metadata": {"name": "w"}, "webhooks": hooks}


async def _answer(client: Any, review: bytes, seconds: int) -> bytes:
    request = json.loads(review)["request"]
    response = {"uid": request["uid"], "allowed": True, "auditAnnotations": {"seen": "yes"}}
    if "mutating" in client["url"]:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(PATCH).encode()).decode()}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()


async def _install(scene: Scene, resource: str) -> None:
    scene.server.webhooks.override = _answer
    mutating = _configuration(resource, "mutating.example.com", "other.example.com")
    assert (await scene.post(f"{REGISTRATION}/mutatingwebhookconfigurations", mutating)).code == 201
    validating = _configuration(resource, "validating.example.com")
    assert (await scene.post(f"{REGISTRATION}/validatingwebhookconfigurations", validating)).code == 201


def test_webhook_calls_are_annotated(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await _install(scene, "configmaps")
        assert (await scene.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})).code == 201

    annotations = audited(tmp_path, test).last()["annotations"]
    round_0 = "mutation.webhook.admission.k8s.io/round_0_index_"
    assert json.loads(annotations[round_0 + "0"]) == {
        "configuration": "w",
        "webhook": "mutating.example.com",
        "mutated": True,
    }
    assert json.loads(annotations[round_0 + "1"])["mutated"] is False
    patch = json.loads(annotations["patch.webhook.admission.k8s.io/round_0_index_0"])
    assert (patch["patch"], patch["patchType"]) == (PATCH, "JSONPatch")
    assert "patch.webhook.admission.k8s.io/round_0_index_1" not in annotations
    assert annotations["validating.example.com/seen"] == "yes"


def test_a_patch_of_a_webhook_is_written_from_the_level_request_on(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await _install(scene, "configmaps")
        await scene.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})

    annotations = audited(tmp_path, test, EVERYTHING.replace("RequestResponse", "Metadata")).last()["annotations"]
    assert "mutation.webhook.admission.k8s.io/round_0_index_0" in annotations
    assert not [key for key in annotations if key.startswith("patch.")]


def test_a_patch_of_a_secret_by_a_webhook_is_not_written(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await _install(scene, "secrets")
        assert (await scene.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}})).code == 201

    annotations = audited(tmp_path, test).last()["annotations"]
    assert not [key for key in annotations if key.startswith("patch.")]


def test_webhooks_that_failed_and_were_ignored_are_named(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        async def fails(client: Any, review: bytes, seconds: int) -> bytes:
            return b"nonsense"

        scene.server.webhooks.override = fails
        for sort in ("mutating", "validating"):
            configuration = _configuration("configmaps", f"{sort}.example.com", failurePolicy="Ignore")
            assert (await scene.post(f"{REGISTRATION}/{sort}webhookconfigurations", configuration)).code == 201
        assert (await scene.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})).code == 201

    annotations = audited(tmp_path, test).last()["annotations"]
    assert annotations["failed-open.mutation.webhook.admission.k8s.io/round_0_index_0"] == "mutating.example.com"
    assert annotations["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"] == "validating.example.com"
