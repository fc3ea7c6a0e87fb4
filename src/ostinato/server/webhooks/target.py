"""Webhook targets, parsed from `clientConfig`."""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import msgspec

if TYPE_CHECKING:
    from ostinato.client.config.secret import Secret

Json = dict[str, Any]


class CallError(Exception):
    """A webhook call failed or its response is invalid. The message is kube-apiserver's."""


class HttpStatusError(CallError):
    """The response status is not a success."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class UnusableTarget(CallError):  # noqa: N818
    """The `clientConfig` is invalid."""


class Service(NamedTuple):
    """The Service of a webhook."""

    namespace: str
    name: str
    port: int


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Client identity for a webhook: a certificate in PEM, a token, or a user name and password."""

    certificate: bytes = b""
    key: Secret | None = None
    token: Secret | None = None
    token_file: Path | None = None  # read for every call: tokens are rotated
    basic: Secret | None = None  # user name and password in base64

    def authorization(self) -> str:
        """The Authorization header, "" for none; UnusableTarget if the token file cannot be read."""
        if self.token is not None:
            return f"Bearer {self.token.reveal()}"
        if self.token_file is not None:
            try:
                return f"Bearer {self.token_file.read_text().strip()}"
            except OSError as error:
                raise UnusableTarget(f"tokenFile: {self.token_file} cannot be read: {error.strerror}") from None
        return f"Basic {self.basic.reveal()}" if self.basic is not None else ""


class Target(NamedTuple):
    host: str  # verified against the certificate
    port: int
    authority: str  # host and port of the URL
    path: str
    service: Service | None  # resolved to the address to connect to, instead of host and port
    bundle: bytes  # CA bundle in PEM; empty: the system's trust store
    identity: Identity | None = None
    server_name: str = ""  # verified instead of the host
    insecure: bool = False  # skip verification

    @property
    def peer(self) -> Target:
        """The target without its path: the key for connection reuse."""
        return self._replace(path="")

    def url(self, seconds: int) -> str:
        return f"https://{self.authority}{self.path}?timeout={seconds}s"


PostReview = Callable[[Json, bytes, int], Awaitable[bytes]]
"""Post a review to a `clientConfig` with a timeout in seconds and return the response; CallError on failure."""

Locate = Callable[[Service], tuple[str, int]]
"""Resolve a Service to an address and port; CallError if it has no endpoint."""


Identify = Callable[[str, int], Identity | None]
"""The client identity for a host and port."""


def target_of(client: Json) -> Target:
    """Parse a `clientConfig`; UnusableTarget if it is invalid."""
    try:
        bundle = base64.b64decode(client.get("caBundle") or "")
    except (binascii.Error, ValueError):
        raise UnusableTarget("unable to load root certificates: unable to parse bytes as PEM block") from None
    reference = client.get("service")
    if reference is not None:
        service = Service(reference["namespace"], reference["name"], reference.get("port") or 443)
        host = f"{service.name}.{service.namespace}.svc"
        return Target(
            host, service.port, f"{host}:{service.port}", _clean(reference.get("path") or ""), service, bundle
        )
    try:
        url = urlsplit(client.get("url") or "")
        host, port = url.hostname or "", url.port or 443
    except ValueError as error:
        raise UnusableTarget(f"Unparsable URL: {error}") from None
    return Target(host, port, url.netloc, _clean(unquote(url.path)), None, bundle)


def _clean(path: str) -> str:
    """Clean a path as Go's path.Join: no empty segments, no trailing slash."""
    return quote(posixpath.normpath("/" + path.lstrip("/")), safe="/~!$&'()*+,;=:@-._")
