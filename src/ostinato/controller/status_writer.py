"""Status: what a controller says of an object, written only when it says something else than before.

- Fields are given by their Python names, for objects that are dicts too: `available_replicas=3`. None removes one.
- Conditions keep the time of their last transition, and know the generation that they are about.
- `observedGeneration` is set where the status has such a field.
- The write goes to the `status` part alone, and holds just what has changed. Where conditions change, which are one
  list, somebody else's change of the object in between is a `Conflict`; the next reconcile does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from ostinato.api import access
from ostinato.api.access import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.conditions import set_condition
from ostinato.api.leaves import encode_leaf
from ostinato.api.meta import Condition
from ostinato.api.object import Object, origin
from ostinato.api.patch import create_merge_patch
from ostinato.api.shape import Field, fields_of
from ostinato.api.sparse import sparse
from ostinato.api.struct import wire_name
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.client.patching import MergePatch
from ostinato.client.requests import view_like

A = TypeVar("A", bound=AnyObject)
Json = dict[str, Any]

_OBSERVED = "observedGeneration"


class StatusWriter:
    """The writes of one reconcile."""

    def __init__(self, client: CachedClient, field_manager: str) -> None:
        self._client = client
        self._manager = field_manager
        self._written: dict[str, tuple[str, bytes]] = {}  # by uid: the version and the status, after a write

    async def write(self, instance: A, fields: Mapping[str, Any], conditions: Iterable[Condition], now: Time) -> A:
        """The object as it is then; the status of the one that was given is changed as well."""
        version, status = self._written.get(access.uid(instance)) or (
            access.resource_version(instance),
            _status_as_read(instance),
        )
        before, after = _decoded(status), _decoded(status)
        known = _known_fields(instance)
        for name, value in fields.items():
            _set(after, _wire(name, known, instance), value)
        generation = access.generation(instance)
        holder: Json = {"status": after}
        for condition in conditions:
            said = condition
            if condition.observed_generation is None and generation:
                said = msgspec.structs.replace(condition, observed_generation=generation)
            set_condition(holder, said, now)
        if generation and (_OBSERVED in before if known is None else _OBSERVED in known):
            after[_OBSERVED] = generation
        change: Json = create_merge_patch({"status": before}, {"status": after})
        if not change:
            return instance
        if "conditions" in change["status"] and version:
            change["metadata"] = {"resourceVersion": version}
        answer: A = await self._client.patch(
            view_like(instance),
            access.key(instance),
            MergePatch(change),
            subresource="status",
            field_manager=self._manager,
        )
        status = _status_as_read(answer)
        self._written[access.uid(instance)] = (access.resource_version(answer), status)
        if isinstance(instance, Object):
            instance.status = answer.status  # type: ignore[attr-defined,union-attr]  # _known_fields has looked
        else:
            instance["status"] = _decoded(status)
        return answer


class _StatusAlone(msgspec.Struct):
    """Of an object."""

    status: msgspec.Raw = msgspec.Raw(b"{}")


_alone = msgspec.json.Decoder(_StatusAlone)


def _status_as_read(instance: AnyObject) -> bytes:
    """From the JSON that the object was read from: a class leaves out what is at its default."""
    data = origin(instance) if isinstance(instance, Object) else None
    if data is not None:
        return bytes(_alone.decode(data).status)
    document = to_dict(instance) if isinstance(instance, Object) else instance
    return msgspec.json.encode(document.get("status"), enc_hook=encode_leaf)


def _decoded(status: bytes) -> Json:
    found = msgspec.json.decode(status)
    return found if isinstance(found, dict) else {}


def _known_fields(instance: AnyObject) -> dict[str, Field] | None:
    """The fields of the status by their names on the wire; None if anything goes."""
    if not isinstance(instance, Object):
        return None
    for field in fields_of(type(instance)):
        if field.attribute == "status":
            shape = field.shape
            return {each.wire: each for each in shape.fields} if shape.form == "struct" else None
    raise TypeError(f"{access.describe(instance)}: the class {type(instance).__name__} has no status")


def _wire(name: str, known: dict[str, Field] | None, instance: AnyObject) -> str:
    if known is None:
        return wire_name(name)
    for wire, field in known.items():
        if name == field.attribute:
            return wire
    names = ", ".join(sorted(field.attribute for field in known.values()))
    raise TypeError(f"{access.describe(instance)}: its status has no field {name!r}; there are {names}")


def _set(status: Json, wire: str, value: Any) -> None:
    if value is None:
        status.pop(wire, None)
        return
    plain = sparse(value) if isinstance(value, msgspec.Struct) else value
    status[wire] = msgspec.to_builtins(plain, enc_hook=encode_leaf)
