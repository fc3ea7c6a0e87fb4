"""Namespaces: the client of a reconcile, for which objects without a namespace are in that of the reconciled object.

| controller | key | default namespace |
|---|---|---|
| with a kind | of an object in a namespace | that namespace |
| with a kind | of a cluster-scoped object | none: namespaced kinds need one, or raise ValueError |
| without a kind | with a namespace | that namespace |
| without a kind | any other | that of the controller's client |
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from ostinato.cache.client import CachedClient
from ostinato.client.views import View

_MAX_CLIENTS: Final = 1_000


class NamespacedClients:
    """The clients of a controller, one for each namespace."""

    def __init__(self, client: CachedClient, view: View[Any] | None) -> None:
        self._client = client
        self._view = view
        self._clients: dict[str, CachedClient] = {}

    def of(self, key: Hashable) -> CachedClient:
        """Return the client for the reconcile of a key."""
        namespace = self._namespace(key)
        if namespace is None:
            return self._client
        found = self._clients.get(namespace)
        if found is None:
            if len(self._clients) >= _MAX_CLIENTS:
                self._clients.clear()
            found = self._clients[namespace] = self._client.in_namespace(namespace)
        return found

    def _namespace(self, key: Hashable) -> str | None:
        """Return None for the namespace of the controller's client."""
        namespace = getattr(key, "namespace", None)
        if isinstance(namespace, str) and (namespace or self._view is not None):
            return namespace
        info = None if self._view is None else self._view.info
        return None if info is None or info.namespaced else ""
