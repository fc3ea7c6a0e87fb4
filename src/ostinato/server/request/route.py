"""Routing: the parsed form of a resource request.

Authorization and verbs read namespace, resource, subresource and name from the same `Route`, so that the object that
is accessed is the one that was authorized.

- `/api/v1/...` is the core group, `/apis/GROUP/VERSION/...` every other group; all other paths are non-resource paths.
- The path is unquoted before it is split, so `%2F` separates segments like a slash. `.` and `..` are ordinary names
  here; no key is built from them (see `Context`).
- Paths that kube-apiserver authorizes as a resource request but never serves parse too, as `unserved`.
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import unquote

import msgspec

K = TypeVar("K")

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_BY_METHOD = frozenset(_VERBS.values())
_VERBS_IN_PATHS = ("watch", "proxy")
_OF_NAMESPACES = ("status", "finalize")  # subresources of a namespace; other segments after its name are resources


class Route(msgspec.Struct, frozen=True):
    """A resource request. `verb` is the authorized verb."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection, proxy; "" for other methods
    group: str
    version: str
    namespace: str
    resource: str
    name: str
    subresource: str
    path: tuple[str, ...] = ()  # segments after the subresource (proxy paths)
    old_watch: bool = False  # a deprecated /watch/ path
    in_namespace: bool = False  # a namespace precedes the resource; False for the path of a Namespace itself
    unserved: bool = False  # the path has an empty segment where none is allowed: there is no such page
    endpoint: tuple[object, ...] = ()  # the method, and all but version, namespace and name: the key of caches


_MAX_CACHED = 4096  # routes of each cache
_MAX_CACHED_PATH = 512  # characters
_collections: dict[str, Route] = {}  # routes of creates, by path
_objects: dict[tuple[str, str], Route] = {}  # by method and path without the name: a route of one object there


def parse(method: str, path: str, *, watch: bool) -> Route | None:
    """Parse a path; None for a non-resource path (discovery, health, …)."""
    if method == "POST":
        known = _collections.get(path)
        if known is not None:
            return known
    parent, _, name = path.rpartition("/")
    known = _objects.get((method, parent))
    if known is not None and name and "%" not in name:
        return Route(
            known.verb,
            known.group,
            known.version,
            known.namespace,
            known.resource,
            name,
            "",
            in_namespace=known.in_namespace,
            endpoint=known.endpoint,
        )
    route = _parse(method, path, watch=watch)
    if route is not None and len(path) <= _MAX_CACHED_PATH and "%" not in path:
        _cache(method, path, route)
    return route


def _cache(method: str, path: str, route: Route) -> None:
    """Cache a route whose path is parsed alike for every name."""
    if route.subresource or "//" in path or path.endswith("/") or route.verb not in _VERBS_BY_METHOD:
        return
    if route.name and route.resource != "namespaces":  # whose name is also the namespace
        _add(_objects, (method, path.rpartition("/")[0]), route)
    elif method == "POST" and not route.name:
        _add(_collections, path, route)


def _add(cache: dict[K, Route], key: K, route: Route) -> None:
    if len(cache) >= _MAX_CACHED:
        cache.clear()
    cache[key] = route


def _parse(method: str, path: str, *, watch: bool) -> Route | None:
    if "%" in path:
        path = unquote(path)
    trimmed = path.strip("/")
    parts = trimmed.split("/")
    count = len(parts)
    if count > 2 and parts[0] == "api":
        group, version, at = "", parts[1], 2
    elif count > 3 and parts[0] == "apis":
        group, version, at = parts[1], parts[2], 3
    else:
        return None
    unserved = path.startswith("//") or (at == 3 and not group)
    verb = _VERBS.get(method, "")
    old_watch = False
    if parts[at] in _VERBS_IN_PATHS and count > at + 1:
        verb = parts[at]
        old_watch = verb == "watch"
        at += 1
    namespace, in_namespace = "", False
    if parts[at] == "namespaces" and count > at + 1:
        namespace = parts[at + 1]
        if count > at + 2 and parts[at + 2] not in _OF_NAMESPACES:
            in_namespace = True
            at += 2
    name = parts[at + 1] if count > at + 1 else ""
    if not name:
        if verb == "get":
            verb = "watch" if watch else "list"
        elif verb == "delete":
            verb = "deletecollection"
    subresource = parts[at + 2] if count > at + 2 and verb != "proxy" else ""
    beyond = tuple(parts[at + 3 :]) if count > at + 3 else ()
    flags = (bool(namespace), bool(name), bool(beyond), old_watch, in_namespace)
    return Route(
        verb,
        group,
        version,
        namespace,
        parts[at],
        name,
        subresource,
        beyond,
        old_watch,
        in_namespace,
        unserved,
        (method, verb, group, parts[at], subresource, *flags),
    )
