"""URLs as Go's net/url parses and writes them."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from ostinato.gotemplate.library.kinds import kind_of
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.strings import decode, encode, quote

URLS: Final = Registry()
_register = URLS

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_BAD_HOST: Final = re.compile(r"[\x00-\x20\"<>\\^`{|}]")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_PARTS: Final = ("scheme", "host", "path", "query", "opaque", "fragment")


class UrlError(ValueError):
    """A text is not a URL."""


def parse_url(text: str) -> dict[str, str]:
    """Return the parts of a URL; path and fragment are unescaped. Raises UrlError."""
    try:
        return _parsed(text)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def _parsed(text: str) -> dict[str, str]:
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    rest, _, fragment = text.partition("#")
    scheme, rest = _scheme(rest)
    rest, _, query = rest.partition("?")
    found = dict.fromkeys((*_PARTS, "userinfo", "hostname"), "") | {"scheme": scheme.lower(), "query": query}
    if not rest.startswith("/"):
        if scheme:
            return found | {"opaque": rest, "fragment": _unescaped(fragment)}
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, at, host = authority.rpartition("@")
        found |= {"host": _host(host), "userinfo": _user(user) if at else ""}
        found["hostname"] = _hostname(found["host"])
        rest = slash + path
    return found | {"path": _unescaped(rest), "fragment": _unescaped(fragment)}


def _scheme(text: str) -> tuple[str, str]:
    head, colon, rest = text.partition(":")
    if not colon:
        return "", text
    if not head:
        raise UrlError("missing protocol scheme")
    if _SCHEME.fullmatch(head):
        return head, rest
    if head[0] in "0123456789+-.":
        found = re.match(r"[A-Za-z0-9+.\-]*", head)
        if found is not None and found.end() == len(head):
            raise UrlError("first path segment in URL cannot contain colon")
    return "", text


def _unescaped(text: str) -> str:
    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        raise UrlError(f"invalid URL escape {quote(bad.group())}")
    return decode(unquote_to_bytes(encode(text))) if "%" in text else text


def _host(host: str) -> str:
    if host.startswith("["):
        if "]" not in host:
            raise UrlError("missing ']' in host")
        port = host.rpartition("]")[2]
    else:
        port = host[host.rindex(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {quote(port)} after host")
    bad = _BAD_HOST.search(host)
    if bad is not None:
        raise UrlError(f"invalid character {quote(bad.group())} in host name")
    return _unescaped(host)


def _hostname(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, port = host.rpartition(":")
    return name if colon and (not port or port.isdigit()) else host


def _user(user: str) -> str:
    if not _USER.fullmatch(user):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    made = _escaped(_unescaped(name), "$&+,;=")
    return f"{made}:{_escaped(_unescaped(password), '$&+,;=')}" if colon else made


def _escaped(text: str, safe: str) -> str:
    return quote_from_bytes(encode(text), safe=safe + "-_.~")


def join_url(parts: dict[str, str], userinfo: str) -> str:
    """Return the URL of its parts."""
    scheme, host, path = parts["scheme"], parts["host"], parts["path"]
    made = f"{scheme}:" if scheme else ""
    if parts["opaque"]:
        made += parts["opaque"]
    else:
        if scheme or host or userinfo:
            made += "//" if host or path or userinfo else ""
            made += f"{userinfo}@" if userinfo else ""
            made += _escaped(host, "!$&'()*+,;=:[]<>\"") if host else ""
        escaped = "*" if path == "*" else _escaped(path, "$&+,/:;=@!'()*[]") if path else ""
        if escaped and not escaped.startswith("/") and host:
            made += "/"
        if not made and ":" in escaped.partition("/")[0]:
            made += "./"
        made += escaped
    if parts["query"]:
        made += f"?{parts['query']}"
    if parts["fragment"]:
        made += "#" + _escaped(parts["fragment"], "$&+,/:;=?@!()*")
    return made


@_register("urlParse", "string")
def url_parse(text: str) -> dict[str, Any]:
    try:
        return dict(parse_url(text))
    except UrlError as error:
        raise PanicError(f"unable to parse url: {error}") from None


@_register("urlJoin", "map[string]interface {}")
def url_join(values: dict[str, Any]) -> str:
    userinfo = _text(values, "userinfo")
    if userinfo:
        try:
            userinfo = parse_url(f"proto://{userinfo}@host")["userinfo"]
        except UrlError as error:
            raise PanicError(f"unable to parse userinfo in dict: {error}") from None
    return join_url({name: _text(values, name) for name in _PARTS}, userinfo)


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str):
        found = f"unable to parse {key} key, must be of type string, but {kind_of(value)} found"
        raise PanicError("runtime error: invalid memory address or nil pointer dereference" if value is None else found)
    return value
