"""Status updates: merge patches of the status subresource, sent only if something changes.

- Fields are named by their Python names, also for dicts: `available_replicas=3`. None removes a field.
- A condition keeps its lastTransitionTime while its status is unchanged, and gets the observedGeneration.
- `observedGeneration` is set if the status has such a field.
- A patch of conditions, which are one list, is conditional on the resourceVersion: a concurrent change of the object is
  a `Conflict`, and the reconcile is retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.conditions import set_condition
from ostinato.api.meta import Condition
from ostinato.api.object import Object
from ostinato.api.patch import create_merge_patch
from ostinato.api.serializer.omit_zero import omit_zero_structs
from ostinato.api.serializer.scalars import encode_scalar
from ostinato.api.serializer.type_info import fields_of
from ostinato.api.struct import wire_name
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.cache.own_writes.latest_writes import LatestWrites
from ostinato.client.arguments import summarize
from ostinato.client.patching import MergePatch
from ostinato.client.requests import view_like
from ostinato.client.views import PartialObjectMetadata

A = TypeVar("A", bound=AnyObject)
Json = dict[str, Any]

_OBSERVED = "observedGeneration"


class StatusWriter:
    """The status writes of one reconcile."""

    def __init__(self, client: CachedClient, field_manager: str, latest: LatestWrites) -> None:
        self._client = client
        self._manager = field_manager
        self._latest = latest

    async def write(self, instance: A, fields: Mapping[str, Any], conditions: Iterable[Condition]) -> A:
        """Patch the status, and return the object. The status of the given object is updated too."""
        latest = self._latest.of(instance)
        before = latest.status
        after = latest.status if conditions else before.copy()  # set_condition changes the list in place
        known = _known_fields(instance)
        for name, value in fields.items():
            _set(after, _wire(name, known, instance), value)
        generation = access.generation(instance)
        if conditions:
            _wire("conditions", known, instance)  # raises if unknown: the server would prune it
            self._set_conditions(after, conditions, generation)
        if generation and (_OBSERVED in before if known is None else _OBSERVED in known.values()):
            after[_OBSERVED] = generation
        change: Json = create_merge_patch(before, after)
        if not change:
            return instance
        patch: Json = {"status": change}
        if "conditions" in change and latest.resource_version:
            patch["metadata"] = {"resourceVersion": latest.resource_version}
        answer: A = await self._client.patch(
            view_like(instance),
            access.key(instance),
            MergePatch(patch),
            subresource="status",
            field_manager=self._manager,
        )
        latest = self._latest.wrote(instance, answer)
        if isinstance(instance, Object):
            instance.status = answer.status  # type: ignore[attr-defined,union-attr]  # _known_fields has looked
        else:
            instance["status"] = latest.status
        return answer

    def _set_conditions(self, status: Json, conditions: Iterable[Condition], generation: int) -> None:
        holder: Json = {"status": status}
        now = Time.of(self._client.world.clock.now())
        for condition in conditions:
            if not isinstance(condition, Condition):
                raise TypeError(
                    f"ctx.status() conditions: {summarize(condition)} is not a Condition; "
                    'use Condition(type="Ready", status="True", reason="AllUp")'
                )
            observed = condition
            if condition.observed_generation is None and generation:
                observed = msgspec.structs.replace(condition, observed_generation=generation)
            set_condition(holder, observed, now)


def _known_fields(instance: AnyObject) -> dict[str, str] | None:
    """Return the JSON names of the status fields by their Python names; None if the status has no schema."""
    if not isinstance(instance, Object):
        return None
    cls = type(instance)
    if isinstance(instance, PartialObjectMetadata):
        raise TypeError(
            f"{access.describe(instance)}: read as metadata only, which has no status; read the whole object"
        )
    if "status" not in cls.__struct_fields__:
        raise TypeError(
            f"{access.describe(instance)}: class {cls.__name__} has no status; "
            f"declare one, such as status: {cls.__name__}Status | None = None"
        )
    return _wire_names(cls)


@cache
def _wire_names(cls: type[Object]) -> dict[str, str] | None:
    shape = next(field.type_info for field in fields_of(cls) if field.attribute == "status")
    return {each.attribute: each.wire for each in shape.fields} if shape.form == "struct" else None


def has_conditions(cls: type[Object]) -> bool | None:
    """Return whether the status of a class has conditions; None if the status has no schema."""
    if "status" not in cls.__struct_fields__:
        return False
    known = _wire_names(cls)
    return None if known is None else "conditions" in known.values()


def _wire(name: str, known: dict[str, str] | None, instance: AnyObject) -> str:
    if known is None:
        return wire_name(name)
    wire = known.get(name)
    if wire is None:
        raise TypeError(
            f"{access.describe(instance)}: status has no field {name!r}; fields are {', '.join(sorted(known))}"
        )
    return wire


def _set(status: Json, wire: str, value: Any) -> None:
    if value is None:
        status.pop(wire, None)
        return
    if isinstance(value, str):
        status[wire] = value
        return
    plain = omit_zero_structs(value) if isinstance(value, msgspec.Struct) else value
    status[wire] = msgspec.to_builtins(plain, enc_hook=encode_scalar)
