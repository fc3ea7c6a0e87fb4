"""Paths: where a kind, and an object of it, are found on a server.

What could lead elsewhere is refused before anything is sent: an empty name would turn the request for one object into
one for all of them, a missing namespace into one for all namespaces.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol

from ostinato.api.gvk import GroupVersion, NamespacedName
from ostinato.api.names import name_is_path_segment
from ostinato.api.object import KindInfo
from ostinato.client.transport.protocol import path_of

_PLAIN: Final = re.compile(r"[a-z0-9][-a-z0-9]*")  # a name that means itself in a path: nearly all of them


class Named(Protocol):
    """Whatever says which object is meant: a NamespacedName, a request of a controller."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


Key = str | Named
"""A name, in the namespace that is given beside it or else in the client's own; or namespace and name together."""


def root_of(version: GroupVersion) -> str:
    """Where a version of a group is served: `/api/v1`, `/apis/apps/v1`."""
    return path_of("apis", version.group, version.version) if version.group else path_of("api", version.version)


@lru_cache(maxsize=4096)
def collection_path(info: KindInfo, namespace: str) -> str:
    """All objects of a kind in a namespace; "" is all namespaces."""
    _check_resource(info)
    root = root_of(info.gvk.group_version)
    if not namespace:
        return root + path_of(info.plural)
    check_namespace(info, namespace)
    _check_segment("namespace", namespace, info)
    return root + path_of("namespaces", namespace, info.plural)


def check_namespace(info: KindInfo, namespace: str) -> None:
    """A ValueError if there is a namespace and objects of the kind have none."""
    if namespace and not info.namespaced:
        raise ValueError(f"{info.gvk.kind}: objects of this kind have no namespace, got {namespace!r}")


def check_name(info: KindInfo, name: str) -> None:
    """A ValueError if no object can have such a name: a namespace is not written before it."""
    if not _PLAIN.fullmatch(name) and name:
        _check_segment("name", name, info)


def object_path(info: KindInfo, key: NamespacedName, subresource: str = "") -> str:
    """One object, or a subresource of it, which may have further parts: `proxy/metrics`."""
    if not key.name:
        raise ValueError(f"{info.gvk.kind}: a name is needed")
    if info.namespaced and not key.namespace:
        raise ValueError(f"{info.gvk.kind} {key.name}: a namespace is needed; give it, or a client that has one")
    if _PLAIN.fullmatch(key.name):
        path = f"{collection_path(info, key.namespace)}/{key.name}"
    else:
        _check_segment("name", key.name, info)
        path = collection_path(info, key.namespace) + path_of(key.name)
    return path + path_of(*subresource.split("/")) if subresource else path


def _check_resource(info: KindInfo) -> None:
    if not info.plural:
        raise ValueError(f"{info.gvk.kind}: this kind has no resource of its own; it is sent to those of other kinds")


def _check_segment(what: str, value: str, info: KindInfo) -> None:
    problems = name_is_path_segment(value)
    if problems:
        raise ValueError(f"{info.gvk.kind}: {what} {value!r}: {', '.join(problems)}")
