"""Writes of children: what is not desired is deleted, then each desired child is created or updated by its method.

| method | an existing child that differs |
|---|---|
| OnDelete | stays as it is |
| Recreate | is deleted, and created by the next sync |
| InPlace | is applied (server-side apply) |

- A child that is being deleted is left alone until it is gone.
- Whether a child differs is decided by the server, with a dry run: other managers' fields never count.
- An error of one child does not stop the others.
- A child that was written before, and has not changed since, is skipped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import APIError, NotFound
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.frontends.kernel.applier import SetApplier, Strategy
from ostinato.frontends.kernel.sync import Json, Objects, kind_key, object_key

Method = Literal["OnDelete", "Recreate", "InPlace"]
MethodOf = Callable[[GroupKind], Method]

_MAX_SETTLED: Final = 200_000
_SYSTEM: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")


class ChildWriter:
    def __init__(self, client: CachedClient, field_manager: str, kinds: Sequence[Unstructured]) -> None:
        self._client = client
        self._applier = SetApplier(client, field_manager)
        self._kinds = _DeclaredKinds([view.gvk for view in kinds])
        self._settled: OrderedDict[str, _Settled] = OrderedDict()  # by uid of the child

    async def write(
        self, parent: Json, observed: Objects, desired: Sequence[Json], method_of: MethodOf
    ) -> list[Exception]:
        """Make the children those that are desired, and return the errors of single children."""
        wanted = [_appliable(each) for each in desired]
        errors = await self._delete(observed, wanted)
        changed = [each for each in wanted if not self._is_settled(each, observed, parent)]
        if not changed:
            return errors
        kinds = {access.gvk(each).group_kind for each in changed}
        outcome = await self._applier.apply(
            parent,
            changed,
            kinds=self._kinds,
            strategies={kind: Strategy(method_of(kind)) for kind in kinds},
            prune=False,
            order=False,
        )
        if not outcome.errors and not outcome.held:
            self._settle(changed, outcome.applied, parent)
        return [*errors, *(ChildError(str(each)) for each in outcome.errors)]

    def _is_settled(self, child: Json, observed: Objects, parent: Json) -> bool:
        """Return whether the observed child is the result of writing the same one."""
        found = observed.get(kind_key(access.gvk(child)), {}).get(object_key(child))
        if found is None:
            return False
        known = self._settled.get(access.uid(found))
        return (
            known is not None
            and known.resource_version == access.resource_version(found)
            and known.digest == _digest(child, parent)
        )

    def _settle(self, written: Sequence[Json], applied: Sequence[Json], parent: Json) -> None:
        """Remember the children that were written, as the server has them."""
        answers = {(access.gvk(each), access.key(each)): each for each in applied}
        for child in written:
            answer = answers.get((access.gvk(child), access.key(child)))
            if answer is not None:
                self._settled[access.uid(answer)] = _Settled(access.resource_version(answer), _digest(child, parent))
                self._settled.move_to_end(access.uid(answer))
        while len(self._settled) > _MAX_SETTLED:
            self._settled.popitem(last=False)

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


class _Settled(NamedTuple):
    """A child as it was written: the resourceVersion of the answer, and the digest of what was desired."""

    resource_version: str
    digest: bytes


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


def _digest(child: Json, parent: Json) -> bytes:
    return blake2b(msgspec.json.encode((access.uid(parent), child), order="deterministic"), digest_size=16).digest()


def _appliable(child: Json) -> Json:
    """Return a desired child without what only the server sets: hooks may return what they were given."""
    if "status" not in child and not any(name in child["metadata"] for name in _SYSTEM):
        return child
    metadata: dict[str, Any] = {name: value for name, value in child["metadata"].items() if name not in _SYSTEM}
    return {**{name: value for name, value in child.items() if name != "status"}, "metadata": metadata}
