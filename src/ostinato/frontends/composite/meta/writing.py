"""Writes of children: what is not desired is deleted, then each desired child is created or updated by its method.

| method | an existing child that differs |
|---|---|
| OnDelete | stays as it is |
| Recreate | is deleted, and created by the next sync |
| InPlace | is applied (server-side apply) |

- A child that is being deleted is left alone until it is gone.
- Whether a child differs is decided by the server, with a dry run: other managers' fields never count.
- An error of one child does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import APIError, NotFound
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.frontends.kernel.applier import SetApplier, Strategy
from ostinato.frontends.kernel.sync import Json, Objects

Method = Literal["OnDelete", "Recreate", "InPlace"]
MethodOf = Callable[[GroupKind], Method]

_SYSTEM: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")


class ChildWriter:
    def __init__(self, client: CachedClient, field_manager: str, kinds: Sequence[Unstructured]) -> None:
        self._client = client
        self._applier = SetApplier(client, field_manager)
        self._kinds = _DeclaredKinds([view.gvk for view in kinds])

    async def write(
        self, parent: Json, observed: Objects, desired: Sequence[Json], method_of: MethodOf
    ) -> list[Exception]:
        """Make the children those that are desired, and return the errors of single children."""
        wanted = [_appliable(each) for each in desired]
        errors = await self._delete(observed, wanted)
        kinds = {access.gvk(each).group_kind for each in wanted}
        outcome = await self._applier.apply(
            parent,
            wanted,
            kinds=self._kinds,
            strategies={kind: Strategy(method_of(kind)) for kind in kinds},
            prune=False,
            order=False,
        )
        return [*errors, *(ChildError(str(each)) for each in outcome.errors)]

    async def is_updated(self, desired: Json, parent: Json) -> bool:
        """Return whether applying a child would change nothing."""
        outcome = await self._applier.apply(
            parent, [_appliable(desired)], kinds=self._kinds, prune=False, order=False, dry_run=True
        )
        return not outcome.errors and not outcome.has_changes

    async def _delete(self, observed: Objects, desired: Sequence[Json]) -> list[Exception]:
        kept = {(access.gvk(each).group_kind, access.key(each)) for each in desired}
        errors: list[Exception] = []
        for found in observed.values():
            for child in found.values():
                if access.is_being_deleted(child) or (access.gvk(child).group_kind, access.key(child)) in kept:
                    continue
                try:
                    await self._client.delete(child, propagation="Background", missing_ok=True)
                except NotFound:
                    continue
                except APIError as error:
                    errors.append(ChildError(f"{access.describe(child)}: cannot be deleted: {error}"))
        return errors


class _DeclaredKinds:
    """The record of kinds of the applier: the declared ones. Others are applied, and never found again."""

    def __init__(self, kinds: Iterable[GroupVersionKind]) -> None:
        self._kinds = frozenset(kinds)

    def known(self, _owner: AnyObject, /) -> frozenset[GroupVersionKind]:
        return self._kinds

    async def record(self, _owner: AnyObject, _kinds: frozenset[GroupVersionKind], /) -> None:
        """Store nothing: the kinds are in the definition."""


class ChildError(Exception):
    """A child could not be written."""


def _appliable(child: Json) -> Json:
    """Return a desired child without what only the server sets: hooks may return what they were given."""
    if "status" not in child and not any(name in child["metadata"] for name in _SYSTEM):
        return child
    metadata: dict[str, Any] = {name: value for name, value in child["metadata"].items() if name not in _SYSTEM}
    return {**{name: value for name, value in child.items() if name != "status"}, "metadata": metadata}
