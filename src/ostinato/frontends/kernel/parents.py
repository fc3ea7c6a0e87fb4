"""Writes to parents: finalizers, labels, annotations and status of objects of any kind, only if something changes.

- Writes are conditional on the resourceVersion, and the given object takes over the metadata of the answer. A status is
  written once more over changes by others, but never to another object of the same name.
- The status is replaced as a whole. Conditions keep their lastTransitionTime while their status is unchanged, and
  `observedGeneration` is the generation of the given object.
- A kind without the status subresource gets its status in the object itself, and no `observedGeneration`: the write
  would increase the generation, and cause the next.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.conditions import conditions_of, set_condition
from ostinato.api.errors import Conflict, NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import Condition
from ostinato.api.object import Object
from ostinato.api.patch import create_merge_patch
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.client.patching import MergePatch
from ostinato.client.requests import view_like
from ostinato.client.views import Unstructured
from ostinato.frontends.kernel.sync import Json, Ready

_MOST: Final = 10_000  # statuses that are remembered


class _Written(NamedTuple):
    """A status that was written, and the one that the server has made of it, without the fields that it prunes."""

    wanted: bytes
    stored: bytes


class ParentWriter:
    def __init__(self, client: CachedClient, field_manager: str) -> None:
        self._client = client
        self._manager = field_manager
        self._written: OrderedDict[str, _Written] = OrderedDict()  # by uid
        self._without_status: set[GroupVersionKind] = set()  # kinds without the status subresource

    async def finalizer(self, parent: Json, name: str, *, present: bool) -> None:
        """Add or remove a finalizer. No error if the parent is gone when it is removed."""
        if access.has_finalizer(parent, name) == present:
            return
        kept = [each for each in access.finalizers(parent) if each != name]
        finalizers = [*kept, name] if present else kept
        try:
            await write_metadata(self._client, parent, {"finalizers": finalizers or None}, self._manager)
        except NotFound:
            if present:
                raise

    async def metadata(
        self, parent: Json, labels: Mapping[str, str | None], annotations: Mapping[str, str | None]
    ) -> None:
        """Set labels and annotations, or remove those that are None."""
        change: dict[str, Any] = {}
        for field, current, wanted in (
            ("labels", access.labels(parent), labels),
            ("annotations", access.annotations(parent), annotations),
        ):
            different = {name: value for name, value in wanted.items() if current.get(name) != value}
            if different:
                change[field] = different
        if change:
            await write_metadata(self._client, parent, change, self._manager)

    async def status(
        self, parent: Json, status: Json | None, *, ready: Ready | None = None, observed_generation: bool = True
    ) -> None:
        """Replace the status; None keeps it, and sets the condition only.

        - `ready`: the condition Ready. Defaults to None: as in the status.
        - `observed_generation`: set `observedGeneration`. Defaults to True.
        """
        if status is None and ready is None:
            return
        gvk, before = access.gvk(parent), _status_of(parent)
        has_subresource = gvk not in self._without_status
        generation = access.generation(parent) if observed_generation and has_subresource else 0
        wanted = self._completed(parent, before if status is None else status, ready, generation)
        known, encoded = self._written.get(access.uid(parent)), _encoded(wanted)
        if wanted == before or (known is not None and known == _Written(encoded, _encoded(before))):
            return
        try:
            answer = await self._write(parent, wanted, has_subresource=has_subresource)
        except Conflict:  # others have changed the object; the status is this controller's all the same
            current = await self._client.live.get(Unstructured(gvk), access.key(parent))
            if access.uid(current) != access.uid(parent):
                raise
            answer = await self._write(current, wanted, has_subresource=has_subresource)
        stored = _status_of(answer)
        if not has_subresource and stored == before:  # the kind has the subresource by now
            self._without_status.discard(gvk)
        self._remember(access.uid(parent), _Written(encoded, _encoded(stored)))
        parent["status"] = stored
        parent["metadata"] = answer["metadata"]

    def _completed(self, parent: Json, status: Json, ready: Ready | None, generation: int) -> Json:
        wanted = copy.deepcopy(status)
        holder: Json = {"status": wanted}
        if ready is not None:
            state = "True" if ready.ready else "False"
            condition = Condition(type="Ready", status=state, reason=ready.reason, message=ready.message)
            if "conditions" not in wanted:
                wanted["conditions"] = [copy.deepcopy(each) for each in _ready_of(parent)]
            set_condition(holder, condition, self._now())
        known = {each.get("type"): each for each in conditions_of(parent) if isinstance(each, dict)}
        for each in conditions_of(holder):
            if isinstance(each, dict):
                self._date(each, known.get(each.get("type")), generation)
        if generation:
            wanted.setdefault("observedGeneration", generation)
            if isinstance(wanted["observedGeneration"], int):
                wanted["observedGeneration"] = generation
        return wanted

    def _date(self, condition: Json, known: Json | None, generation: int) -> None:
        """Set lastTransitionTime unless it is given, and observedGeneration unless it is not known."""
        if known is not None and known.get("status") == condition.get("status"):
            given = condition.get("lastTransitionTime") or known.get("lastTransitionTime")
            condition["lastTransitionTime"] = known.get("lastTransitionTime") or given
        condition.setdefault("lastTransitionTime", str(self._now()))
        if generation:
            condition.setdefault("observedGeneration", generation)

    def _now(self) -> Time:
        return Time.of(self._client.world.clock.now())

    async def _write(self, parent: Json, wanted: Json, *, has_subresource: bool) -> Json:
        view, key = Unstructured(access.gvk(parent)), access.key(parent)
        change = create_merge_patch(_status_of(parent), wanted)
        metadata = {"resourceVersion": access.resource_version(parent)}
        patch = MergePatch({"metadata": metadata, "status": change})
        if has_subresource:
            try:
                return await self._client.patch(view, key, patch, subresource="status", field_manager=self._manager)
            except NotFound:
                bare = MergePatch({"metadata": metadata, "status": _without_generation(change)})
                answer = await self._client.patch(view, key, bare, field_manager=self._manager)
                self._without_status.add(view.gvk)
                return answer
        return await self._client.patch(view, key, patch, field_manager=self._manager)

    def _remember(self, uid: str, written: _Written) -> None:
        self._written[uid] = written
        self._written.move_to_end(uid)
        if len(self._written) > _MOST:
            self._written.popitem(last=False)


async def write_metadata(client: CachedClient, instance: AnyObject, metadata: Json, field_manager: str) -> None:
    """Patch metadata of an object, conditional on its resourceVersion, and take over the metadata of the answer."""
    change = {"metadata": {**metadata, "resourceVersion": access.resource_version(instance)}}
    answer: Any = await client.patch(
        view_like(instance), access.key(instance), MergePatch(change), field_manager=field_manager
    )
    if isinstance(instance, Object):
        instance.metadata = answer.metadata
    else:
        instance["metadata"] = answer["metadata"]


def _status_of(parent: Json) -> Json:
    found = parent.get("status")
    return found if isinstance(found, dict) else {}


def _ready_of(parent: Json) -> list[Json]:
    return [each for each in conditions_of(parent) if isinstance(each, dict) and each.get("type") == "Ready"]


def _without_generation(change: Json) -> Json:
    kept = {name: value for name, value in change.items() if name != "observedGeneration"}
    for each in kept.get("conditions") or ():
        if isinstance(each, dict):
            each.pop("observedGeneration", None)
    return kept


def _encoded(status: Json) -> bytes:
    return msgspec.json.encode(status, order="deterministic")
