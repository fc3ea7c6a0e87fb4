"""Access to the page: a one-time token in the printed URL is exchanged for a cookie; nothing is answered without it.

- Host: must name the listening address, so that a page of another site whose name resolves to it (DNS rebinding) gets
  nothing, not even with a cookie.
- Origin: requests that change something, and WebSockets, must come from the page itself. Other requests of other sites
  are rejected too, where the browser says so (`Sec-Fetch-Site`).
- The cookie is not readable by scripts and not sent by other sites. Its name contains the port: cookies of one host are
  shared by all ports.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Final

from ostinato.http.hosts import bracketed, join_host_port
from ostinato.http.server import HttpRequest
from ostinato.world import Ids

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_WILDCARDS: Final = ("0.0.0.0", "::", "*")  # noqa: S104 - refused
_MAX_SESSIONS: Final = 100
_SAME: Final = ("same-origin", "none")  # "none": typed into the address bar
_DEFAULT_PORT: Final = 80  # browsers leave it out of Host and Origin

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY_HEADERS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Refused(Exception):  # noqa: N818 - named after the condition
    """A request that is not answered."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def check_host(host: str) -> None:
    """Raise ValueError for a host that a browser cannot name, and whose requests could not be checked."""
    if host in _WILDCARDS:
        raise ValueError(f"{host} is every address of this machine; name the one that browsers will use")


def is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


class Access:
    def __init__(self, ids: Ids, host: str, port: int) -> None:
        """`host`, `port`: on which the page listens."""
        names = {host, *LOOPBACK} if is_loopback(host) else {host}
        hosts = {join_host_port(name, port) for name in names}
        if port == _DEFAULT_PORT:
            hosts |= {bracketed(name) for name in names}
        self._hosts = frozenset(each.lower() for each in hosts)
        self._origins = frozenset(f"http://{each}" for each in self._hosts)
        self._ids = ids
        self._token: str | None = None
        self._sessions: list[str] = []
        self._cookie = f"ostinato-page-{port}"
        self._address = f"http://{join_host_port(host, port)}/"
        self.url = self.renew()

    def renew(self) -> str:
        """Return a URL with a new token. The last one is no longer valid, if it was not used; sessions remain."""
        self._token = _secret(self._ids)
        self.url = f"{self._address}?token={self._token}"
        return self.url

    def exchange(self, token: str) -> str | None:
        """Return the Set-Cookie header for the token; None if it is not, or no longer, valid."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        self._token = None
        session = _secret(self._ids)
        self._sessions = [*self._sessions[-_MAX_SESSIONS + 1 :], session]
        return f"{self._cookie}={session}; Path=/; HttpOnly; SameSite=Strict"

    def check_host(self, request: HttpRequest) -> None:
        """Raise `Refused` unless the request names the listening address."""
        if request.headers.get("host", "").lower() not in self._hosts:
            raise Refused(421, "the Host header does not name the address of this page")

    def check_session(self, request: HttpRequest) -> None:
        """Raise `Refused` unless the request has the cookie."""
        given = [value for name, value in _cookies(request.headers.get("cookie", "")) if name == self._cookie]
        known = [
            each for each in self._sessions for value in given if hmac.compare_digest(value.encode(), each.encode())
        ]
        if not known:
            raise Refused(401, "open the URL that was printed at the start; its token works once")

    def check_site(self, request: HttpRequest, *, changes: bool) -> None:
        """Raise `Refused` for requests of other sites. `changes`: it changes something, or opens a WebSocket."""
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            raise Refused(403, "requests of other origins are not answered")
        site = request.headers.get("sec-fetch-site")
        if site is not None and site not in _SAME:
            raise Refused(403, "requests of other sites are not answered")
        if changes and origin is None and site != "same-origin":
            raise Refused(403, "the request does not say that it comes from this page")


def _secret(ids: Ids) -> str:
    return urlsafe_b64encode(ids.token(32)).decode().rstrip("=")


def _cookies(header: str) -> Iterable[tuple[str, str]]:
    for each in header.split(";"):
        name, _, value = each.strip().partition("=")
        yield name, value
