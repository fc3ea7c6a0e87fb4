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
    """A webhook could not be asked, or its answer is none. The message says why, in the words of a kube-apiserver."""


class UnusableTarget(CallError):  # noqa: N818
    """Nobody can be asked with such a `clientConfig`."""


class Service(NamedTuple):
    """A Service that a webhook is behind."""

    namespace: str
    name: str
    port: int


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What this server shows a webhook of itself: a certificate in PEM, or a token, or a name and a password."""

    certificate: bytes = b""
    key: Secret | None = None
    token: Secret | None = None
    token_file: Path | None = None  # read for every call: tokens are renewed
    basic: Secret | None = None  # name and password in base64

    def authorization(self) -> str:
        """The Authorization header, "" for none; UnusableTarget if the file cannot be read."""
        if self.token is not None:
            return f"Bearer {self.token.reveal()}"
        if self.token_file is not None:
            try:
                return f"Bearer {self.token_file.read_text().strip()}"
            except OSError as error:
                raise UnusableTarget(f"tokenFile: {self.token_file} cannot be read: {error.strerror}") from None
        return f"Basic {self.basic.reveal()}" if self.basic is not None else ""


class Target(NamedTuple):
    host: str  # whose certificate it must be
    port: int
    authority: str  # host and port as the URL has them
    path: str
    service: Service | None  # which says where to connect to, instead of host and port
    bundle: bytes  # PEM of who signs its certificate; empty: those that this machine trusts
    identity: Identity | None = None
    server_name: str = ""  # whose certificate it must be, if not the host's
    insecure: bool = False  # any certificate will do

    @property
    def peer(self) -> Target:
        """The same for all paths: whom a connection is to."""
        return self._replace(path="")

    def url(self, seconds: int) -> str:
        return f"https://{self.authority}{self.path}?timeout={seconds}s"


PostReview = Callable[[Json, bytes, int], Awaitable[bytes]]
"""Send a review to where a `clientConfig` says, and wait for the answer so many seconds; a CallError if none comes."""

Locate = Callable[[Service], tuple[str, int]]
"""An address and a port that stand for a Service; a CallError if there are none."""


Identify = Callable[[str, int], Identity | None]
"""As whom a host and port are called."""


def target_of(client: Json) -> Target:
    """UnusableTarget if nobody can be called so."""
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
    """A path as Go joins it: without empty steps, and without a slash at its end."""
    return quote(posixpath.normpath("/" + path.lstrip("/")), safe="/~!$&'()*+,;=:@-._")
