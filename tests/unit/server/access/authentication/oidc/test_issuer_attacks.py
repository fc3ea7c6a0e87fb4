"""Issuers that misbehave, and tokens that try to get past them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.server.access.authentication.issuing import HttpsIssuer, Key
from tests.unit.server.access.authentication.serving import Scene, play, until

from ostinato.server.access.authentication.oidc import key_set, reload
from ostinato.server.access.authentication.settings import (
    AuthenticationSettings,
    AuthenticationSettingsError,
    OidcSettings,
)
from ostinato.server.core import Server
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

Test = Callable[[Scene], Awaitable[None]]


def oidc(issuer: HttpsIssuer, **changes: Any) -> AuthenticationSettings:
    given = OidcSettings(issuer_url=f"{issuer.url}/a", client_id="kube", authority=issuer.authority)
    return AuthenticationSettings(oidc=msgspec.structs.replace(given, **changes))


def claims(scene: Scene, **changes: Any) -> dict[str, Any]:
    now = scene.now
    return {"iss": f"{scene.other.url}/a", "aud": "kube", "sub": "jane", "exp": now + 600, "iat": now} | changes


async def bearer(scene: Scene, token: str) -> int:
    return await scene.code(authorization=f"Bearer {token}")


def test_the_options_of_one_issuer_map_its_claims(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        key = scene.other.keys[0]
        assert await scene.review(key.token(claims(scene, roles=["a"], hd="x"))) == {
            "username": f"{scene.other.url}/a#jane",
            "groups": ["r:a", "system:authenticated"],
        }
        assert "required claim hd not present" in await scene.review(key.token(claims(scene)))
        assert await bearer(scene, key.token(claims(scene, hd="x"))) == 200

    play(
        tmp_path,
        lambda issuer: oidc(issuer, groups_claim="roles", groups_prefix="r:", required_claims=(("hd", "x"),)),
        test,
    )


@pytest.mark.parametrize(("prefix", "name"), [("-", "jane"), ("corp:", "corp:jane")])
def test_the_prefix_of_user_names_is_chosen(tmp_path: Path, prefix: str, name: str) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        assert (await scene.review(scene.other.keys[0].token(claims(scene))))["username"] == name

    play(tmp_path, lambda issuer: oidc(issuer, username_prefix=prefix), test)


def test_only_the_chosen_algorithms_are_accepted(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        key = scene.other.keys[0]
        assert "unsupported algorithm" in await scene.review(key.token(claims(scene)))
        assert await bearer(scene, key.token(claims(scene), alg="PS256")) == 200

    play(tmp_path, lambda issuer: oidc(issuer, algorithms=("PS256",)), test)


def test_a_token_of_another_issuers_key_is_refused(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        assert await bearer(scene, Key("one").token(claims(scene))) == 401
        confused = Key("one", elliptic=True)
        assert await bearer(scene, confused.token(claims(scene))) == 401

    play(tmp_path, oidc, test)


def test_new_keys_are_fetched_for_a_token_that_none_verifies_but_not_at_once_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        issuer, new = scene.other, Key("two", elliptic=True)
        issuer.keys.append(new)
        assert await bearer(scene, new.token(claims(scene))) == 401  # fetched less than ten seconds ago
        assert issuer.asked.count("/keys") == 1
        monkeypatch.setattr(key_set, "_PAUSE", 0.0)
        assert await bearer(scene, new.token(claims(scene))) == 200
        assert issuer.asked.count("/keys") == 2
        monkeypatch.setattr(key_set, "_PAUSE", 10.0)
        forged = [Key(f"k{i}", elliptic=True).token(claims(scene)) for i in range(5)]
        assert await asyncio.gather(*(bearer(scene, token) for token in forged)) == [401] * 5
        assert issuer.asked.count("/keys") == 2

    play(tmp_path, lambda issuer: oidc(issuer, algorithms=("RS256", "ES256")), test)


def test_a_stalled_issuer_does_not_delay_other_requests(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        key = scene.other.keys[0]
        await until(lambda: bool(scene.other.asked))
        assert await scene.review(key.token(claims(scene))) == (
            "[invalid bearer token, oidc: authenticator not initialized]"
        )
        assert await bearer(scene, "admin") == 200

    def settings(issuer: HttpsIssuer) -> AuthenticationSettings:
        issuer.stalled = True
        return oidc(issuer)

    play(tmp_path, settings, test)


WELL_KNOWN = "/a/.well-known/openid-configuration"


@pytest.mark.parametrize(
    ("path", "answer", "why"),
    [
        (WELL_KNOWN, (302, {"Location": "/other"}, b""), "status 302, want 200"),
        (WELL_KNOWN, (200, {}, b"[]"), "not a JSON object"),
        (WELL_KNOWN, (200, {}, b"{" * 10_000), "not JSON"),
        (WELL_KNOWN, (200, {}, b'{"issuer":"https://evil.example","jwks_uri":"x"}'), "issuer did not match"),
        (WELL_KNOWN, (200, {}, b" " * (2 << 20)), "more than 1048576 bytes"),
        (WELL_KNOWN, (500, {}, b"secret"), "status 500, want 200"),
    ],
)
def test_a_discovery_document_that_is_not_in_order_is_not_used(
    tmp_path: Path, path: str, answer: tuple[int, dict[str, Any], bytes], why: str
) -> None:
    async def test(scene: Scene) -> None:
        issuers = scene.server.authentication._issuers
        assert issuers is not None
        keys = issuers._issuers[0].keys
        await until(lambda: "not initialized" not in keys.fault)
        assert why in keys.fault
        assert "/other" not in scene.other.asked
        assert await bearer(scene, scene.other.keys[0].token(claims(scene))) == 401

    def settings(issuer: HttpsIssuer) -> AuthenticationSettings:
        issuer.answers[path] = answer
        return oidc(issuer)

    play(tmp_path, settings, test)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://127.0.0.1/keys", "want an https URL"),
        ("https://user@127.0.0.1/keys", "want an https URL"),
        ("file:///etc/passwd", "want an https URL"),
        ("https://127.0.0.1:1/keys\r\nX: y", "contains spaces or control characters"),
        ("https://127.0.0.1:99999/", "is not a URL"),
    ],
)
def test_keys_are_fetched_over_https_alone(tmp_path: Path, location: str, why: str) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        told = await scene.review(scene.other.keys[0].token(claims(scene)))
        assert "failed to verify" in told
        issuers = scene.server.authentication._issuers
        assert issuers is not None
        with pytest.raises(key_set.KeysUnavailable, match=why):
            await issuers._issuers[0].keys._refresh()

    def settings(issuer: HttpsIssuer) -> AuthenticationSettings:
        document = {"issuer": f"{issuer.url}/a", "jwks_uri": location}
        issuer.answers[WELL_KNOWN] = (200, {}, json.dumps(document).encode())
        return oidc(issuer)

    play(tmp_path, settings, test)


def test_malformed_keys_are_ignored_and_the_others_used(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        assert await bearer(scene, scene.other.keys[0].token(claims(scene))) == 200

    def settings(issuer: HttpsIssuer) -> AuthenticationSettings:
        good = issuer.keys[0].jwk()
        bad: list[Any] = [
            None,
            {},
            {"kty": "oct", "k": "AAAA"},
            {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "n": 5, "e": []},
            {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
            {"kty": "EC", "crv": "P-999", "x": "AAAA", "y": "AAAA"},
            {**good, "use": "enc", "kid": "enc"},
            {**good, "kid": 7},
        ]
        issuer.answers["/keys"] = (200, {}, json.dumps({"keys": [*bad, good]}).encode())
        return oidc(issuer)

    play(tmp_path, settings, test)


def test_a_certificate_of_an_unknown_authority_is_not_believed(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        issuers = scene.server.authentication._issuers
        assert issuers is not None
        keys = issuers._issuers[0].keys
        await until(lambda: "not initialized" not in keys.fault)
        assert "certificate signed by unknown authority" in keys.fault

    play(tmp_path, lambda issuer: oidc(issuer, authority=None), test)


def test_an_issuers_token_is_not_accepted_for_another_audience(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        token = scene.other.keys[0].token(claims(scene))
        assert (await scene.review(token))["username"]
        assert await scene.review(token, audiences=["vault"]) == "invalid bearer token"

    play(tmp_path, oidc, test)


def test_groups_that_another_server_holds_are_refused_rather_than_left_out(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.ready()
        sources = {"_claim_names": {"groups": "s"}, "_claim_sources": {"s": {"endpoint": "https://evil.example"}}}
        told = await scene.review(scene.other.keys[0].token(claims(scene, **sources)))
        assert "could not expand distributed claims" in told

    play(tmp_path, lambda issuer: oidc(issuer, groups_claim="groups"), test)


# The file


def written(path: Path, issuer: HttpsIssuer, prefix: str, **more: Any) -> AuthenticationSettings:
    authenticator = {
        "issuer": {
            "url": f"{issuer.url}/a",
            "audiences": ["kube"],
            "certificateAuthority": issuer.authority.read_text(),
        },
        "claimMappings": {"username": {"claim": "sub", "prefix": prefix}},
    }
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    path.write_text(json.dumps({**kind, "jwt": [authenticator], **more}))
    return AuthenticationSettings(config=path)


def test_a_changed_file_is_used_once_its_issuers_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "INTERVAL", 0.02)
    monkeypatch.setattr(reload, "_POLL", 0.01)
    path = tmp_path / "config.yaml"

    async def test(scene: Scene) -> None:
        await scene.ready()
        key = scene.other.keys[0]
        assert (await scene.review(key.token(claims(scene))))["username"] == "one:jane"
        path.write_text("{")
        written(path, scene.other, "two:")
        issuers = scene.server.authentication._issuers
        assert issuers is not None
        used = issuers._issuers
        await until(lambda: issuers._issuers is not used)
        assert (await scene.review(key.token(claims(scene, jti="2"))))["username"] == "two:jane"

    play(tmp_path, lambda issuer: written(path, issuer, "one:"), test)


def test_a_wrong_file_or_changed_anonymous_rules_leave_the_old_ones_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.yaml"

    async def test(scene: Scene) -> None:
        await scene.ready()
        authentication = scene.server.authentication
        assert authentication._file is not None
        assert authentication._issuers is not None
        used = authentication._issuers._issuers
        for text, why in (
            ("{", "could not find expected"),
            ('{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{}]}', "Required"),
            (None, "anonymous: Forbidden: changed from initial configuration file"),
        ):
            caplog.clear()
            if text is None:
                written(path, scene.other, "two:", anonymous={"enabled": False})
            else:
                path.write_text(text)
            await authentication._file._look(authentication._issuers)
            assert authentication._issuers._issuers is used
            assert "authentication config not reloaded" in caplog.text
            assert text == "{" or why in caplog.text

    play(tmp_path, lambda issuer: written(path, issuer, "one:"), test)


def test_a_file_that_cannot_be_used_is_named_at_start(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(AuthenticationSettingsError, match=r"failed to load .*config.yaml: No such file or directory"):
        Server(Simulation(seed=1), MemoryLog(), authentication=AuthenticationSettings(config=path))
    path.write_text('{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{}]}')
    with pytest.raises(AuthenticationSettingsError, match=r"jwt\[0\].issuer.url: Required value"):
        Server(Simulation(seed=1), MemoryLog(), authentication=AuthenticationSettings(config=path))
    path.write_text(
        '{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","anonymous":{"enabled":true}}'
    )
    settings = AuthenticationSettings(config=path, anonymous=False)
    with pytest.raises(AuthenticationSettingsError, match="--anonymous-auth flag cannot be set"):
        Server(Simulation(seed=1), MemoryLog(), authentication=settings)


# Anonymous requests


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/livez", 200),
        ("/readyz", 200),
        ("/%6Civez", 200),
        ("/healthz", 401),
        ("/livez/ping", 401),
        ("//livez", 401),
        ("/livez/../api", 401),
        ("/api", 401),
    ],
)
def test_anonymous_requests_are_allowed_at_the_listed_paths_alone(tmp_path: Path, path: str, code: int) -> None:
    """The codes are those that kube-apiserver was seen to give."""
    anonymous = {"enabled": True, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]}

    async def test(scene: Scene) -> None:
        assert await scene.code(path) == code

    play(tmp_path, lambda issuer: written(tmp_path / "config.yaml", issuer, "", anonymous=anonymous), test)


def test_without_anonymous_requests_everyone_needs_credentials(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        assert [await scene.code(path) for path in ("/livez", "/version", "/api")] == [401] * 3
        assert await scene.code(authorization="Bearer admin") == 200

    play(tmp_path, lambda _: AuthenticationSettings(anonymous=False), test)
