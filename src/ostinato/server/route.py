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
    parts = path[1:].rstrip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    verb = _VERBS.get(method, "")
    old_watch = rest[0] == "watch" and len(rest) > 1
    if old_watch:
        rest = rest[1:]
        verb = "watch"
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    if not name:
        if verb == "get":
            verb = "watch" if watch else "list"
        elif verb == "delete":
            verb = "deletecollection"
    subresource = rest[2] if len(rest) > 2 else ""
    return Route(verb, group, version, namespace, rest[0], name, subresource, tuple(rest[3:]), old_watch)
