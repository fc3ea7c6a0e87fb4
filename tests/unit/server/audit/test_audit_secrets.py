"""No audit event holds a Secret's data or a token, whatever the policy says: tried with every way to send one."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.stage.api import APPLY, MERGE
from tests.unit.server.audit.auditing import Scene, audited

SECRET = "hunter2-is-the-password"
ENCODED = base64.b64encode(SECRET.encode()).decode()
SECRETS = "/api/v1/namespaces/default/secrets"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _assert_clean(scene: Scene) -> None:
    text = scene.log.read_text()
    assert SECRET not in text
    assert ENCODED not in text
    assert SECRET[:12] not in text
    assert ENCODED[:12] not in text


def test_the_data_of_a_secret_is_never_written(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        kept = json.dumps({"stringData": {"password": SECRET}})
        metadata = {"name": "a", "annotations": {LAST_APPLIED: kept}}
        assert (await scene.post(SECRETS, {"metadata": metadata, "data": {"password": ENCODED}})).code == 201
        assert (await scene.post(SECRETS, {"metadata": {"name": "b"}, "stringData": {"password": SECRET}})).code == 201
        assert (await scene.get(f"{SECRETS}/a")).code == 200
        assert (await scene.get(SECRETS)).code == 200
        assert (await scene.put(f"{SECRETS}/a", {"metadata": metadata, "data": {"password": ENCODED}})).code == 200
        assert (await scene.merge(f"{SECRETS}/a", {"stringData": {"other": SECRET}})).code == 200
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        assert (await scene.get(f"{SECRETS}?includeObject=Object", accept=table)).code == 200
        assert (await scene.ask("DELETE", SECRETS)).code == 200

    scene = audited(tmp_path, test)
    _assert_clean(scene)
    created = next(event for event in scene.events() if event["stage"] == "ResponseComplete")
    assert created["requestObject"]["data"] == {"password": "[masked]"}
    assert created["responseObject"]["data"] == {"password": "[masked]"}


@pytest.mark.parametrize(
    ("media", "body"),
    [
        (MERGE, {"data": {"password": ENCODED}}),
        ("application/strategic-merge-patch+json", {"stringData": {"password": SECRET}}),
        ("application/json-patch+json", [{"op": "add", "path": "/data/password", "value": ENCODED}]),
        ("application/json-patch+json", [{"op": "replace", "path": "", "value": {"data": {"password": ENCODED}}}]),
        ("application/json-patch+json", [{"op": "test", "path": "/data/k", "value": ENCODED}]),
        (APPLY, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"p": SECRET}}),
        (MERGE, {"metadata": {"annotations": {LAST_APPLIED: SECRET}}}),
        (MERGE, {"data": SECRET}),
        (MERGE, {"data": {"password": SECRET}, "type": 7}),
    ],
)
def test_a_patch_of_a_secret_is_masked(tmp_path: Path, media: str, body: object) -> None:
    async def test(scene: Scene) -> None:
        await scene.post(SECRETS, {"metadata": {"name": "a"}, "data": {"k": "dg=="}})
        await scene.ask("PATCH", f"{SECRETS}/a?fieldManager=m&force=true", body, content_type=media)

    _assert_clean(audited(tmp_path, test))


@pytest.mark.parametrize(
    "body",
    [
        {"stringData": {"p": SECRET}, "kind": "Pod"},
        {"stringData": SECRET},
        {"data": {"password": SECRET + "!"}},
        {"metadata": {"name": "A B"}, "stringData": {"p": SECRET}},
        SECRET,
        [SECRET],
    ],
)
def test_a_refused_secret_is_not_quoted(tmp_path: Path, body: object) -> None:
    async def test(scene: Scene) -> None:
        assert (await scene.post(SECRETS, body)).code >= 400
        assert (await scene.ask("PUT", f"{SECRETS}/a", body)).code >= 400

    _assert_clean(audited(tmp_path, test))


def test_tokens_are_never_written(tmp_path: Path) -> None:
    issued = []

    async def test(scene: Scene) -> None:
        await scene.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "a"}})
        answer = await scene.post("/api/v1/namespaces/default/serviceaccounts/a/token", {"spec": {}})
        assert answer.code == 201
        issued.append(answer.body["status"]["token"])
        review = {"spec": {"token": issued[0]}}
        assert (await scene.post("/apis/authentication.k8s.io/v1/tokenreviews", review)).code == 201

    scene = audited(tmp_path, test)
    assert issued[0] not in scene.log.read_text()
    assert issued[0].rpartition(".")[2] not in scene.log.read_text()
    (review,) = [e for e in scene.events() if e["requestURI"].endswith("tokenreviews") and "requestObject" in e]
    assert review["requestObject"]["spec"]["token"] == "[masked]"


def test_other_objects_are_written_as_they_are(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}, "data": {"token": "t"}})

    assert audited(tmp_path, test).last()["requestObject"]["data"] == {"token": "t"}
