"""URL paths of collections and objects.

Names that would change the path are rejected: an empty name would turn a request for one object into one for the
collection, a missing namespace into one for all namespaces.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol

from ostinato.api.gvk import GroupVersion, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.validation.names import name_is_path_segment
from ostinato.client.transport.protocol import path_of

_PLAIN: Final = re.compile(r"[a-z0-9][-a-z0-9]*")  # names that need no escaping: nearly all


class Named(Protocol):
    """Key of an object: a NamespacedName, the request of a reconcile."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


Key = str | Named
"""A name, in the namespace passed with it or the client's; or namespace and name together."""


def root_of(version: GroupVersion) -> str:
    """Return the root of a group version: `/api/v1`, `/apis/apps/v1`."""
    return path_of("apis", version.group, version.version) if version.group else path_of("api", version.version)


@lru_cache(maxsize=4096)
def collection_path(info: KindInfo, namespace: str) -> str:
    """Return the path of a collection. `namespace`: "" for all namespaces."""
    _check_resource(info)
    root = root_of(info.gvk.group_version)
    if not namespace:
        return root + path_of(info.plural)
    check_namespace(info, namespace)
    _check_segment("namespace", namespace, info)
    return root + path_of("namespaces", namespace, info.plural)


def check_namespace(info: KindInfo, namespace: str) -> None:
    """Raise ValueError for a namespace with a cluster-scoped kind."""
    if namespace and not info.namespaced:
        raise ValueError(f"{info.gvk.kind}: the kind is cluster-scoped; omit namespace {namespace!r}")


def require_namespace(info: KindInfo, key: NamespacedName) -> None:
    """Raise ValueError for an object of a namespaced kind without a namespace."""
    if info.namespaced and not key.namespace:
        raise ValueError(
            f"{info.gvk.kind} {key.name}: namespace is required; pass namespace=, or set metadata.namespace"
        )


def check_name(info: KindInfo, name: str) -> None:
    """Raise ValueError for a name that no object can have, such as `namespace/name`."""
    if not _PLAIN.fullmatch(name) and name:
        _check_segment("name", name, info)


def object_path(info: KindInfo, key: NamespacedName, subresource: str = "") -> str:
    """Return the path of an object, or of a subresource, which may have several segments: `proxy/metrics`."""
    if not key.name:
        raise ValueError(f"{info.gvk.kind}: name is required; set metadata.name, or pass the name")
    require_namespace(info, key)
    if _PLAIN.fullmatch(key.name):
        path = f"{collection_path(info, key.namespace)}/{key.name}"
    else:
        _check_segment("name", key.name, info)
        path = collection_path(info, key.namespace) + path_of(key.name)
    return path + path_of(*subresource.split("/")) if subresource else path


def _check_resource(info: KindInfo) -> None:
    if not info.plural:
        raise ValueError(f"{info.gvk.kind}: the kind has no resource of its own; it is the body of subresources")


def _check_segment(what: str, value: str, info: KindInfo) -> None:
    problems = name_is_path_segment(value)
    if problems:
        raise ValueError(f"{info.gvk.kind}: {what} {value!r}: {', '.join(problems)}")
