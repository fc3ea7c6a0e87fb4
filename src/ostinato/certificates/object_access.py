"""Access to the objects that certificates need, as dicts."""

from __future__ import annotations

from typing import Any, Final, Protocol

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo, plural_of
from ostinato.client import Client, JsonPatch, Unstructured, View

SECRET: Final = GroupVersionKind("", "v1", "Secret")
VALIDATING: Final = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
MUTATING: Final = GroupVersionKind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration")
DEFINITION: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class ObjectAccess(Protocol):
    """ObjectAccess of a cluster. What the server refuses is an `APIError`, no answer a `TransportError`."""

    async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> dict[str, Any] | None:
        """Return the object, or None."""

    async def create(self, document: dict[str, Any]) -> None:
        """Create an object. Raises AlreadyExists."""

    async def update(self, document: dict[str, Any]) -> None:
        """Update an object. Raises Conflict if it has changed since it was read."""

    async def patch(self, kind: GroupVersionKind, name: str, operations: list[dict[str, Any]]) -> None:
        """Apply a JSON patch to a cluster-scoped object."""


class LiveObjectAccess:
    """Access through the live client: these kinds are usually not cached."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> dict[str, Any] | None:
        view: View[dict[str, Any]] = _view(kind)
        return await self._client.get(view, name, namespace=namespace, missing=None)

    async def create(self, document: dict[str, Any]) -> None:
        await self._client.create(document)

    async def update(self, document: dict[str, Any]) -> None:
        await self._client.update(document)

    async def patch(self, kind: GroupVersionKind, name: str, operations: list[dict[str, Any]]) -> None:
        await self._client.patch(_view(kind), name, JsonPatch(operations))


def _view(kind: GroupVersionKind) -> Unstructured:
    """Return the view of a kind, without discovery: these kinds are fixed."""
    return Unstructured(kind, KindInfo(kind, plural_of(kind.kind), kind.kind.lower(), namespaced=kind == SECRET))
