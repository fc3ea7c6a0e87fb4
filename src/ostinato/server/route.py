"""Routing: what a path and a method ask for.

`/api/v1/...` is the core group, `/apis/GROUP/VERSION/...` every other; everything else is no resource. A path is read
unquoted, so `%2F` parts it like a slash; `.` and `..` are names like any other.
"""

from __future__ import annotations

from urllib.parse import unquote

import msgspec

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Route(msgspec.Struct, frozen=True):
    """A request for resources. `verb` is the one that authorization goes by."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection; "" for other methods
    group: str
    version: str
    namespace: str
    resource: str
    name: str
    subresource: str
    path: tuple[str, ...] = ()  # what follows the subresource (proxy paths)
    old_watch: bool = False  # by a path that begins with /watch/


def parse(method: str, path: str, *, watch: bool) -> Route | None:
    """The resource that is asked for; None if the path names none (discovery, health, …)."""
    if "%" in path:
        path = unquote(path)
    parts = path.rstrip("/").split("/")  # the first is empty: a path begins with a slash
    count = len(parts)
    if count > 3 and parts[1] == "api":
        group, version, at = "", parts[2], 3
    elif count > 4 and parts[1] == "apis":
        group, version, at = parts[2], parts[3], 4
    else:
        return None
    verb = _VERBS.get(method, "")
    old_watch = parts[at] == "watch" and count > at + 1
    if old_watch:
        at += 1
        verb = "watch"
    namespace = ""
    if parts[at] == "namespaces" and count > at + 1:
        namespace = parts[at + 1]
        if count > at + 2 and parts[at + 2] not in ("status", "finalize"):
            at += 2
    name = parts[at + 1] if count > at + 1 else ""
    if not name:
        if verb == "get":
            verb = "watch" if watch else "list"
        elif verb == "delete":
            verb = "deletecollection"
    subresource = parts[at + 2] if count > at + 2 else ""
    beyond = tuple(parts[at + 3 :]) if count > at + 3 else ()
    return Route(verb, group, version, namespace, parts[at], name, subresource, beyond, old_watch)
