"""Tokens that a backend reviews."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.server.access.authentication.issuing import HttpsIssuer
from tests.unit.server.access.authentication.serving import Scene, play, until

from ostinato.server.access.authentication.settings import (
    AuthenticationSettings,
    AuthenticationSettingsError,
    TokenWebhookSettings,
)
from ostinato.server.core import Server
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

ISSUER = "https://kubernetes.default.svc"
JANE = {"username": "jane", "uid": "u-1", "groups": ["dev"], "extra": {"example.com/a": ["1", "2"]}}


def settings(other: HttpsIssuer, directory: Path, **changes: Any) -> AuthenticationSettings:
    path = directory / "webhook.kubeconfig"
    cluster = {"server": f"{other.url}/review", "certificate-authority": str(other.authority)}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "backend-secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(kubeconfig))
    path.chmod(0o600)
    return AuthenticationSettings(webhook=TokenWebhookSettings(config=path, **{"version": "v1", **changes}))


def answer(other: HttpsIssuer, code: int = 200, version: str = "v1", **status: Any) -> None:
    review = {"apiVersion": f"authentication.k8s.io/{version}", "kind": "TokenReview", "status": status}
    other.answers["/review"] = (code, {}, json.dumps(review).encode())


def test_a_token_review_is_posted_and_its_result_cached(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        answer(scene.other, authenticated=True, user=JANE)
        assert await scene.review("t-1") == {**JANE, "groups": ["dev", "system:authenticated"]}
        assert await scene.code(authorization="Bearer t-1") == 200
        assert scene.other.asked == ["/review?timeout=10s"]
        assert scene.other.bodies[0]["spec"] == {"token": "t-1", "audiences": [ISSUER]}
        assert scene.other.bodies[0]["apiVersion"] == "authentication.k8s.io/v1"
        assert "Authorization: Bearer backend-secret" in scene.other.heads[0]

    play(tmp_path, lambda other: settings(other, tmp_path), test)


def test_a_refusal_is_kept_and_an_error_is_not(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        answer(scene.other, authenticated=False)
        assert [await scene.review("bad"), await scene.review("bad")] == ["invalid bearer token"] * 2
        assert len(scene.other.asked) == 1
        answer(scene.other, authenticated=False, error="it expired")
        assert [await scene.review("old"), await scene.review("old")] == ["[invalid bearer token, it expired]"] * 2
        assert len(scene.other.asked) == 3
        assert await scene.code(authorization="Bearer bad") == 401

    play(tmp_path, lambda other: settings(other, tmp_path), test)


def test_requests_with_the_same_token_share_one_review(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        answer(scene.other, authenticated=True, user=JANE)
        codes = await asyncio.gather(*(scene.code(authorization="Bearer t-1") for _ in range(20)))
        assert codes == [200] * 20
        assert len(scene.other.asked) == 1

    play(tmp_path, lambda other: settings(other, tmp_path, cache_seconds=0.0), test)


def test_a_cancelled_request_does_not_cancel_the_shared_review(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        answer(scene.other, authenticated=True, user=JANE)
        first = asyncio.ensure_future(scene.code(authorization="Bearer t-1"))
        second = asyncio.ensure_future(scene.code(authorization="Bearer t-1"))
        await until(lambda: bool(scene.other.asked))
        first.cancel()
        assert await second == 200
        assert len(scene.other.asked) == 1

    play(tmp_path, lambda other: settings(other, tmp_path), test)


def test_local_tokens_are_not_sent_to_the_webhook(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        assert await scene.code(authorization="Bearer admin") == 200
        assert await scene.code() == 403
        assert scene.other.asked == []

    play(tmp_path, lambda other: settings(other, tmp_path), test)


@pytest.mark.parametrize(
    ("asked", "told", "got"),
    [
        ([], None, [ISSUER]),
        ([], [ISSUER, "x"], [ISSUER]),
        ([], ["x"], None),
        (["x", "y"], ["y"], ["y"]),
        (["x"], None, None),
    ],
)
def test_a_token_must_be_valid_for_a_requested_audience(
    tmp_path: Path, asked: list[str], told: list[str] | None, got: list[str] | None
) -> None:
    async def test(scene: Scene) -> None:
        answer(scene.other, authenticated=True, user=JANE, **({"audiences": told} if told else {}))
        spec = {"token": "t-1", "audiences": asked}
        status = (await scene.api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": spec})).body["status"]
        assert status.get("audiences") == got
        assert bool(status.get("authenticated")) == (got is not None)

    play(tmp_path, lambda other: settings(other, tmp_path), test)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ((302, {"Location": "/other"}, b""), "302"),
        ((200, {}, b"{"), "truncated"),
        ((200, {}, b'{"status":{"authenticated":"yes"}}'), "Expected `bool`"),
        ((200, {}, b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1"}'), "expected TokenReview"),
        ((200, {}, b""), "0-length response"),
        ((403, {}, b"{}"), "403|forbidden|Forbidden|unknown"),
    ],
)
def test_an_invalid_review_response_does_not_authenticate(
    tmp_path: Path, reply: tuple[int, dict[str, str], bytes], why: str
) -> None:
    async def test(scene: Scene) -> None:
        scene.other.answers["/review"] = reply
        told = await scene.review("t-1")
        assert re.search(why, told), told
        assert await scene.code(authorization="Bearer t-1") == 401
        assert all(path.startswith("/review") for path in scene.other.asked)
        assert "t-1" not in told

    play(tmp_path, lambda other: settings(other, tmp_path), test)


def test_the_configured_review_version_is_sent(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        answer(scene.other, version="v1beta1", authenticated=True, user=JANE)
        assert (await scene.review("t-1"))["username"] == "jane"
        assert scene.other.bodies[0]["apiVersion"] == "authentication.k8s.io/v1beta1"

    play(tmp_path, lambda other: settings(other, tmp_path, version="v1beta1"), test)


def test_a_kubeconfig_that_cannot_be_used_is_named_at_start(tmp_path: Path) -> None:
    chosen = AuthenticationSettings(webhook=TokenWebhookSettings(config=tmp_path / "missing"))
    with pytest.raises(AuthenticationSettingsError, match=r"--authentication-token-webhook-config-file: .*missing"):
        Server(Simulation(seed=1), MemoryLog(), authentication=chosen)
