"""URLs: absolute URLs and absolute paths, as Go's `url.ParseRequestURI` parses them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote_plus

from ostinato.api.text.go_format import quote
from ostinato.cel.values import CelError, Library

_PREFIX: Final = "URL parse error during conversion from string: "
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_BAD_HOST: Final = re.compile(r"[ \"<>\\^`{|}\x00-\x20]")
_PATH_SAFE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@!'()*[]%")


class Url(Library):
    __slots__ = ("host", "path", "query", "scheme", "text")
    type_name = "kubernetes.URL"

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.text, self.scheme, self.host, self.path, self.query = text, scheme, host, path, query

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and (self.scheme, self.host, self.path, self.query) == (
            other.scheme,
            other.host,
            other.path,
            other.query,
        )

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        name, colon, port = host.rpartition(":")
        return name if colon and (not port or port.isdigit()) else host

    @property
    def port(self) -> str:
        rest = self.host.rpartition("]")[2] if self.host.startswith("[") else self.host
        _, colon, port = rest.rpartition(":")
        return port if colon and port.isdigit() else ""

    def values(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            name, _, value = pair.partition("=")
            found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return found


def url(text: str) -> Url:
    try:
        whole = _read(text)
        part, fragment, _ = text.partition("#")
        return _read(part) if fragment and part else whole
    except ValueError as error:
        raise CelError(f"{_PREFIX}parse {quote(text)}: {error}") from None


def problem(text: str) -> str:
    """Return the error of an invalid URL; "" if it is valid."""
    try:
        _read(text)
    except ValueError as error:
        return f"parse {quote(text)}: {error}"
    return ""


def _read(text: str) -> Url:
    if not text:
        raise ValueError("empty url")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("net/url: invalid control character in URL")
    scheme, rest = _scheme(text)
    if not scheme and not text.startswith("/"):
        raise ValueError("invalid URI for request")
    rest, _, query = rest.partition("?")
    if scheme and not rest.startswith("/"):
        return Url(text, scheme.lower(), "", "", query)  # opaque
    host = ""
    if rest.startswith("//") and scheme:
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(authority), slash + path
    bad = _BAD_ESCAPE.search(rest)
    if bad is not None:
        raise ValueError(f"invalid URL escape {quote(rest[bad.start() : bad.start() + 3])}")
    path = "".join(c if c in _PATH_SAFE else "".join(f"%{b:02X}" for b in c.encode()) for c in rest)
    return Url(text, scheme.lower(), host, path, query)


def _scheme(text: str) -> tuple[str, str]:
    head, colon, rest = text.partition(":")
    if not colon or "/" in head or "?" in head:
        return "", text
    if not head:
        raise ValueError("missing protocol scheme")
    if _SCHEME.fullmatch(head):
        return head, rest
    if head[0].isdigit() or not head[0].isalnum():
        raise ValueError("first path segment in URL cannot contain colon")
    return "", text


def _host(authority: str) -> str:
    host = authority.rpartition("@")[2]
    bad = _BAD_HOST.search(host)
    if bad is not None:
        raise ValueError(f"invalid character {quote(bad.group())} in host name")
    if host.startswith("["):
        if "]" not in host:
            raise ValueError("missing ']' in host")
        port = host.rpartition("]")[2]
    else:
        port = host[host.index(":") :] if ":" in host else ""
    if port and (not port.startswith(":") or not (port == ":" or port[1:].isdigit())):
        raise ValueError(f"invalid port {quote(port)} after host")
    if "%" in host and _BAD_ESCAPE.search(host):
        raise ValueError(f"invalid URL escape {quote(host[host.index('%') :][:3])}")
    return host


def _is_url(text: str) -> bool:
    return not problem(text)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_to_url": url,
    "is_url_string": _is_url,
    "url_get_scheme": lambda value: value.scheme,
    "url_get_host": lambda value: value.host,
    "url_get_hostname": lambda value: value.hostname,
    "url_get_port": lambda value: value.port,
    "url_get_escaped_path": lambda value: value.path,
    "url_get_query": lambda value: value.values(),
}
