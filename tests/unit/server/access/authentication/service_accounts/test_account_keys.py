"""Keys of service account tokens: rotation, issuers, audiences, and what is remembered of a token."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.stage.api import Api
from tests.stage.server import started_server

from ostinato.server.access.authentication.service_accounts import tokens as account_tokens
from ostinato.server.access.authentication.settings import (
    AuthenticationSettings,
    AuthenticationSettingsError,
    ServiceAccountSettings,
)
from ostinato.server.access.authentication.tokens import jwt, keys
from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def private(path: Path, key: Any) -> Path:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def public(path: Path, *made: Any) -> Path:
    form = PublicFormat.SubjectPublicKeyInfo
    path.write_bytes(b"".join(key.public_key().public_bytes(Encoding.PEM, form) for key in made))
    return path


def served(play: Callable[[Api], Awaitable[None]], **accounts: Any) -> None:
    simulation = Simulation(seed=1)

    async def main() -> None:
        audiences = accounts.pop("audiences", ())
        settings = AuthenticationSettings(audiences=audiences, accounts=ServiceAccountSettings(**accounts))
        async with started_server(simulation, authentication=settings) as server:
            server.authenticator.add("admin", User("admin", groups=("system:masters",)))
            api = Api(server)
            await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
            await play(api)

    simulation.run(main())


async def token(api: Api, **spec: Any) -> str:
    answer = await api.post(f"{ACCOUNTS}/robot/token", {"spec": spec})
    assert answer.code == 201, answer.message
    return str(answer.body["status"]["token"])


async def code(api: Api, text: str) -> int:
    return (await api.post(ME, {}, authorization=f"Bearer {text}")).code


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
    ],
)
def test_a_key_of_each_kind_signs_and_verifies(tmp_path: Path, key: Any, algorithm: str) -> None:
    async def play(api: Api) -> None:
        text = await token(api)
        [known] = json.loads(api.server.publisher._issuer.keys().body)["keys"]
        assert jwt.parse(text).header == {"alg": algorithm, "kid": known["kid"]}
        assert known["alg"] == algorithm
        assert await code(api, text) == 201
        head, body, _ = text.split(".")
        assert await code(api, f"{head}.{body}.{jwt.encode(bytes(64)).decode()}") == 401

    served(play, signing_key=private(tmp_path / "sa.key", key))


def test_tokens_of_an_old_key_are_accepted_until_the_key_is_dropped(tmp_path: Path) -> None:
    old, new = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    old_file, new_file = private(tmp_path / "old.key", old), private(tmp_path / "new.key", new)
    claims: dict[str, Any] = {}

    async def issue(api: Api) -> None:
        claims.update(jwt.parse(await token(api)).claims)

    served(issue, signing_key=old_file)

    async def rotated(api: Api) -> None:
        uid = (await api.get(f"{ACCOUNTS}/robot")).body["metadata"]["uid"]
        claims["kubernetes.io"]["serviceaccount"]["uid"] = uid
        by_old = keys.read_private_key(old_file).sign(json.dumps(claims).encode())
        assert await code(api, by_old) == (201 if len(api.server.authentication.account_tokens.keys.all) == 2 else 401)
        assert jwt.parse(await token(api)).algorithm == "ES256"

    served(rotated, signing_key=new_file, key_files=(public(tmp_path / "old.pub", old),))
    served(rotated, signing_key=new_file)


def test_tokens_of_all_issuers_are_accepted_and_the_first_signs() -> None:
    first, second = "https://a.example", "https://b.example"

    async def play(api: Api) -> None:
        text = await token(api)
        claims = jwt.parse(text).claims
        assert (claims["iss"], claims["aud"]) == (first, [first, second])
        sign = api.server.authentication.account_tokens.keys.signing.sign
        assert await code(api, sign(json.dumps({**claims, "iss": second}).encode())) == 201
        assert await code(api, sign(json.dumps({**claims, "iss": "https://c.example"}).encode())) == 401

    served(play, issuers=(first, second))


def test_a_token_for_another_audience_is_refused() -> None:
    async def play(api: Api) -> None:
        assert await code(api, await token(api)) == 201
        assert await code(api, await token(api, audiences=["vault"])) == 401
        assert await code(api, await token(api, audiences=["api", "vault"])) == 201
        review = await api.post(
            "/apis/authentication.k8s.io/v1/tokenreviews",
            {"spec": {"token": await token(api), "audiences": ["vault"]}},
        )
        assert not review.body["status"].get("authenticated")

    served(play, audiences=("api",))


def test_a_token_lives_no_longer_than_the_operator_allows() -> None:
    async def play(api: Api) -> None:
        answer = await api.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 86_400}})
        assert answer.warnings == ('299 - "requested expiration of 86400 seconds shortened to 7200 seconds"',)
        assert answer.body["spec"]["expirationSeconds"] == 7200
        claims = jwt.parse(answer.body["status"]["token"]).claims
        assert claims["exp"] - claims["iat"] == 7200

    served(play, max_expiration=7200)


def test_discovery_is_not_published_for_an_issuer_that_is_no_https_url() -> None:
    async def play(api: Api) -> None:
        for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
            assert path not in (await api.get("/")).body["paths"]

    served(play, issuers=("kubernetes",))


def test_only_tokens_with_a_valid_signature_are_remembered_and_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(api: Api) -> None:
        accounts = api.server.authentication.account_tokens
        monkeypatch.setattr(account_tokens, "REMEMBERED", 3)
        good = [await token(api) for _ in range(5)]
        assert [await code(api, text) for text in good] == [201] * 5
        assert len(accounts._verified) == 3
        for text in good:
            assert await code(api, f"{text[:-8]}AAAAAAAA") == 401
        assert len(accounts._verified) == 3
        assert [await code(api, text) for text in good] == [201] * 5

    served(play)


def test_a_remembered_token_is_refused_as_soon_as_its_account_is_gone() -> None:
    async def play(api: Api) -> None:
        text = await token(api)
        assert [await code(api, text), await code(api, text)] == [201, 201]
        await api.delete(f"{ACCOUNTS}/robot")
        assert await code(api, text) == 401
        await api.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        assert await code(api, text) == 401

    served(play)


def test_a_token_bound_to_a_node_or_secret_ends_with_it() -> None:
    async def play(api: Api) -> None:
        for path, kind in (("/api/v1/nodes", "Node"), ("/api/v1/namespaces/default/secrets", "Secret")):
            await api.post(path, {"metadata": {"name": "x"}})
            text = await token(api, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": "x"})
            assert await code(api, text) == 201
            await api.delete(f"{path}/x")
            assert await code(api, text) == 401

    served(play)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot read .*sa.key: No such file or directory"),
        (b"nothing", "sa.key: not a private RSA or ECDSA key in PEM"),
        (
            dsa.generate_private_key(1024).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "sa.key: not a private RSA or ECDSA key",
        ),
    ],
)
def test_a_key_that_cannot_be_used_is_named_at_start(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "sa.key"
    if content is not None:
        path.write_bytes(content)
    settings = AuthenticationSettings(accounts=ServiceAccountSettings(signing_key=path))
    with pytest.raises(AuthenticationSettingsError, match=why):
        Server(Simulation(seed=1), MemoryLog(), authentication=settings)
