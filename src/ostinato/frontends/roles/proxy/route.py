"""Paths of the API: which resource a proxied request is about."""

from __future__ import annotations

from typing import NamedTuple

from ostinato.api.gvk import GroupVersion


class Route(NamedTuple):
    """A resource path. `name` is "" for a collection."""

    version: GroupVersion
    namespace: str
    plural: str
    name: str
    subresource: str


def parse_route(path: str) -> Route | None:
    """Return the resource of a path; None for discovery and other paths."""
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        version, rest = GroupVersion("", "v1"), parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        version, rest = GroupVersion(parts[1], parts[2]), parts[3:]
    else:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if not rest or "" in rest:
        return None
    name = rest[1] if len(rest) > 1 else ""
    return Route(version, namespace, rest[0], name, "/".join(rest[2:]))
