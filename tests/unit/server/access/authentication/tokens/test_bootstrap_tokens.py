"""Bootstrap tokens: a Secret in kube-system lets a node that joins ask for its certificate."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.stage.api import Api, asking

SECRETS = "/api/v1/namespaces/kube-system/secrets"
ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN = "abcdef.0123456789abcdef"
DATA = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}


def secret(**changes: str | None) -> dict[str, Any]:
    data = {key: value for key, value in (DATA | changes).items() if value is not None}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": encoded}


async def code(api: Api, token: str = TOKEN) -> int:
    return (await api.post(ME, {}, authorization=f"Bearer {token}")).code


@asking
async def test_a_bootstrap_token_authenticates_a_bootstrapper(api: Api) -> None:
    groups = "system:bootstrappers:worker,system:bootstrappers:a"
    assert (await api.post(SECRETS, secret(**{"auth-extra-groups": groups}))).code == 201
    answer = await api.post(ME, {}, authorization=f"Bearer {TOKEN}")
    assert answer.body["status"]["userInfo"] == {
        "username": "system:bootstrap:abcdef",
        "groups": [
            "system:bootstrappers",
            "system:bootstrappers:a",
            "system:bootstrappers:worker",
            "system:authenticated",
        ],
    }
    await api.delete(f"{SECRETS}/bootstrap-token-abcdef")
    assert await code(api) == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"token-secret": "0123456789abcdeg"},
        {"token-id": "abcdeg"},
        {"usage-bootstrap-authentication": None},
        {"usage-bootstrap-authentication": "yes"},
        {"expiration": "2001-01-01T00:00:00Z"},
        {"expiration": "tomorrow"},
        {"auth-extra-groups": "system:masters"},
        {"auth-extra-groups": "system:bootstrappers:a,system:masters"},
        {"auth-extra-groups": "system:bootstrappers:a\nsystem:masters"},
        {"auth-extra-groups": "system:bootstrappers:A"},
    ],
)
def test_an_invalid_bootstrap_secret_does_not_authenticate(changes: dict[str, str | None]) -> None:
    async def play(api: Api) -> None:
        assert (await api.post(SECRETS, secret(**changes))).code == 201
        assert await code(api) == 401

    asking(play)()


@asking
async def test_a_bootstrap_token_of_another_type_name_or_namespace_is_rejected(api: Api) -> None:
    await api.post(SECRETS, {**secret(), "type": "Opaque"})
    assert await code(api) == 401
    await api.delete(f"{SECRETS}/bootstrap-token-abcdef")
    await api.post(SECRETS.replace("kube-system", "default"), secret())
    assert await code(api) == 401
    await api.post(SECRETS, {**secret(), "metadata": {"name": "bootstrap-token-other1"}})
    assert await code(api) == 401


@asking
async def test_a_bootstrap_token_ends_with_its_time_or_when_its_secret_is_being_deleted(api: Api) -> None:
    soon = api.server.world.clock.wall() + 60

    expires = datetime.fromtimestamp(int(soon), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = secret(expiration=expires)
    kept["metadata"]["finalizers"] = ["example.com/kept"]
    await api.post(SECRETS, kept)
    assert await code(api) == 201
    await api.server.world.clock.sleep(61)
    assert await code(api) == 401
    path = f"{SECRETS}/bootstrap-token-abcdef"
    await api.merge(path, {"data": {"expiration": None}})
    assert await code(api) == 201
    await api.delete(path)
    assert (await api.get(path)).code == 200
    assert await code(api) == 401


@asking
async def test_a_malformed_bootstrap_token_is_rejected(api: Api) -> None:
    await api.post(SECRETS, secret())
    for token in (TOKEN.upper(), f"{TOKEN}0", TOKEN.replace(".", "/"), "../../.0123456789abcdef"):
        assert await code(api, token) == 401
