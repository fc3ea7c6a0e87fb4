"""Where a webhook is called: a `clientConfig`, read."""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from ostinato.server.resources.strategy import Json


class CallError(Exception):
    """A webhook could not be asked, or its answer is none. The message says why, in the words of a kube-apiserver."""


class UnusableTarget(CallError):  # noqa: N818
    """Nobody can be asked with such a `clientConfig`."""


class Service(NamedTuple):
    """A Service that a webhook is behind."""

    namespace: str
    name: str
    port: int


class Target(NamedTuple):
    host: str  # whose certificate it must be
    port: int
    authority: str  # host and port as the URL has them
    path: str
    service: Service | None  # which says where to connect to, instead of host and port
    bundle: bytes  # PEM of who signs its certificate; empty: those that this machine trusts

    @property
    def peer(self) -> Target:
        """The same for all paths: whom a connection is to."""
        return self._replace(path="")

    def url(self, seconds: int) -> str:
        return f"https://{self.authority}{self.path}?timeout={seconds}s"


Ask = Callable[[Json, bytes, int], Awaitable[bytes]]
"""Send a review to where a `clientConfig` says, and wait for the answer so many seconds; a CallError if none comes."""

Locate = Callable[[Service], tuple[str, int]]
"""An address and a port that stand for a Service; a CallError if there are none."""


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
