"""Routing: what a path and a method ask for.

`/api/v1/...` is the core group, `/apis/GROUP/VERSION/...` every other; everything else is no resource.
"""

from __future__ import annotations

from urllib.parse import unquote

import msgspec

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Route(msgspec.Struct, frozen=True):
    """A request for resources. `verb` is the one that authorization goes by."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection
    group: str
    version: str
    namespace: str
    resource: str
    name: str
    subresource: str
    path: tuple[str, ...] = ()  # what follows the subresource (proxy paths)


def parse(method: str, path: str, *, watch: bool) -> Route | None:
    """The resource that is asked for; None if the path names none (discovery, health, …)."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    verb = _VERBS.get(method)
    if rest[0] == "watch" and len(rest) > 1:  # the old form of a watch
        rest = rest[1:]
        watch, verb = True, "watch" if method == "GET" else verb
    namespace = ""
    if rest[0] == "namespaces":
        if len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
            namespace, rest = rest[1], rest[2:]
        elif len(rest) > 1:
            namespace = rest[1]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if verb is None:
        verb = "get" if name else "list"
    if verb in ("get", "list") and watch and not subresource and not name:
        verb = "watch"
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return Route(verb, group, version, namespace, resource, name, subresource, tuple(rest[3:]))
