"""Public keys of an OIDC issuer: OpenID discovery, fetch over HTTPS, refresh on unknown keys.

- The first fetch starts with the server and is retried every ten seconds. Tokens are rejected until it succeeds.
- A token that no key verifies triggers a refresh, at most every ten seconds: forged tokens cannot flood the issuer.
- HTTPS only, no redirects, responses of at most 1 MiB within 30 seconds. The issuer in the discovery document must be
  the configured one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.server.access.authentication.tokens import jwt
from ostinato.server.access.authentication.tokens.keys import PublicKey, UnusableKey
from ostinato.server.webhooks.target import CallError, Target
from ostinato.world import Clock

Fetch = Callable[[Target, int, int], Awaitable[bytes]]

_SECONDS = 30
_MOST = 1 << 20  # bytes of a document
_MOST_KEYS = 256
_PAUSE = 10.0  # seconds between two fetches
_WELL_KNOWN = "/.well-known/openid-configuration"
_CURVES = {"P-256": "SECP256R1", "P-384": "SECP384R1", "P-521": "SECP521R1"}
_logger = logging.getLogger(__name__)


class KeysUnavailable(Exception):  # noqa: N818 - a state of the issuer
    """The keys could not be fetched."""


class KeySet:
    """`discovery`: URL of the discovery document. Defaults to the well-known path below the issuer URL."""

    def __init__(self, clock: Clock, fetch: Fetch, issuer: str, discovery: str, authority: bytes) -> None:
        self._clock = clock
        self._fetch = fetch
        self._issuer = issuer
        self._discovery = discovery or issuer.removesuffix("/") + _WELL_KNOWN
        self._authority = authority
        self._location = ""  # JWKS URI from the discovery document
        self._keys: list[PublicKey] = []
        self._fetched = -float("inf")  # time of the last fetch
        self._fetching: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self.fault = f"oidc: authenticator for issuer {quote(issuer)} is not initialized"  # "" once it is

    def start(self) -> None:
        """Start fetching."""
        self._starting = asyncio.get_running_loop().create_task(self._begin(), name=f"keys of {self._issuer}")

    def close(self) -> None:
        for task in (self._starting, self._fetching):
            if task is not None:
                task.cancel()

    @property
    def is_ready(self) -> bool:
        return bool(self._location)

    async def verifies(self, token: jwt.Token) -> bool:
        """Whether one of the keys signed the token; KeysUnavailable if the keys cannot be fetched."""
        if self._verified(token):
            return True
        if self._clock.monotonic() - self._fetched < _PAUSE:
            return False
        await self._refreshed()
        return self._verified(token)

    def _verified(self, token: jwt.Token) -> bool:
        wanted = token.key_id
        return any(key.verifies(token) for key in self._keys if not wanted or key.key_id == wanted)

    async def _begin(self) -> None:
        while not self._location:
            try:
                self._location = await self._discovered()
                self.fault = ""
            except KeysUnavailable as error:
                self.fault = str(error)
                _logger.warning("cannot initialize OIDC issuer, retrying issuer=%s error=%s", self._issuer, error)
                await self._clock.sleep(_PAUSE)
            except Exception as error:  # retried; the task must not end silently
                self.fault = f"oidc: authenticator for issuer {quote(self._issuer)}: {type(error).__name__}"
                _logger.exception("cannot initialize OIDC issuer, retrying issuer=%s", self._issuer)
                await self._clock.sleep(_PAUSE)
        try:
            await self._refreshed()
        except KeysUnavailable as error:
            _logger.warning(
                "cannot fetch OIDC keys, retrying with the next token issuer=%s error=%s", self._issuer, error
            )

    async def _discovered(self) -> str:
        """The JWKS URI from the discovery document."""
        document = await self._document(self._discovery)
        if document.get("issuer") != self._issuer:
            got = quote(str(document.get("issuer", "")))
            raise KeysUnavailable(
                f"oidc: issuer did not match the issuer returned by provider, expected {quote(self._issuer)} got {got}"
            )
        location = document.get("jwks_uri")
        if not isinstance(location, str) or not location:
            raise KeysUnavailable("provider did not return JWKS URL")
        return location

    async def _refreshed(self) -> None:
        """Fetch the keys; concurrent callers share one fetch."""
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._refresh(), name=f"keys of {self._issuer}")
            self._fetching.add_done_callback(self._done)
        await asyncio.shield(self._fetching)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        self._fetched = self._clock.monotonic()
        if not task.cancelled():
            task.exception()  # the awaiting requests raise it

    async def _refresh(self) -> None:
        document = await self._document(self._location)
        listed = document.get("keys")
        if not isinstance(listed, list):
            raise KeysUnavailable("oidc: failed to decode keys: keys is not a list")
        self._keys = [key for each in listed[:_MOST_KEYS] if (key := _public_key(each)) is not None]

    async def _document(self, url: str) -> dict[str, Any]:
        try:
            data = await self._fetch(_target(url, self._authority), _SECONDS, _MOST)
            document = msgspec.json.decode(data)
        except CallError as error:
            raise KeysUnavailable(str(error)) from None
        except msgspec.DecodeError as error:
            raise KeysUnavailable(f"Get {quote(url)}: not JSON: {error}") from None
        if not isinstance(document, dict):
            raise KeysUnavailable(f"Get {quote(url)}: not a JSON object")
        return document


def _target(url: str, authority: bytes) -> Target:
    try:
        parts = urlsplit(url)
        port = parts.port or 443
    except ValueError as error:
        raise KeysUnavailable(f"{quote(url)} is not a URL: {error}") from None
    if parts.scheme != "https" or not parts.hostname or parts.username is not None or not url.isascii():
        raise KeysUnavailable(f"{quote(url)}: want an https URL")
    if any(character <= " " for character in url):
        raise KeysUnavailable("the issuer URL contains spaces or control characters")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.hostname, port, parts.netloc, path, None, authority)


def _public_key(described: Any) -> PublicKey | None:
    """Parse a JSON web key; None if its type cannot sign tokens or it is malformed."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415 - loads only where it is needed

    if not isinstance(described, dict) or described.get("use", "sig") != "sig":
        return None
    key_id = described.get("kid", "")
    if not isinstance(key_id, str):
        return None
    try:
        if described.get("kty") == "RSA":
            numbers = rsa.RSAPublicNumbers(_number(described["e"]), _number(described["n"]))
            return PublicKey(numbers.public_key(), key_id)
        if described.get("kty") == "EC":
            curve = getattr(ec, _CURVES[described["crv"]])()
            point = ec.EllipticCurvePublicNumbers(_number(described["x"]), _number(described["y"]), curve)
            return PublicKey(point.public_key(), key_id)
    except (KeyError, ValueError, TypeError, AttributeError, UnusableKey, jwt.MalformedToken) as error:
        _logger.warning("malformed key ignored kid=%s error=%s", key_id[:64], type(error).__name__)
    return None


def _number(text: str) -> int:
    return int.from_bytes(jwt.decode(text), "big")
