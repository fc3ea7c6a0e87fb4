"""Strategy: the rules for creating, updating and deleting objects of a kind.

Each step of a write calls a method of the kind's `Strategy`. The base class implements the common rules; a kind
overrides what differs. Objects are plain dicts; a step that may change one does so in place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ostinato.api.apply import field_path, from_paths, without
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError

if TYPE_CHECKING:
    from ostinato.api.apply.fieldpath.field_set import Filter
    from ostinato.server.store.index import Index
    from ostinato.world import World

Json = dict[str, Any]
NameRule = Callable[..., list[str]]  # (name, prefix=False) -> validation messages

_STATUS = without(from_paths(field_path("status")))
_SPEC = without(from_paths(field_path("spec")))
_SPEC_AND_METADATA = without(from_paths(field_path("spec"), field_path("metadata")))
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")  # set by clients


class Allocation(Protocol):
    """Exclusive values that were allocated for a write. If its outcome is unknown, neither method is called."""

    async def commit(self, new: Json) -> None:
        """The object is stored: release the values that it no longer has."""

    async def abandon(self) -> None:
        """The object is not stored: release the values."""


class Strategy:
    """The rules of one kind."""

    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_subdomain)
    allow_create_on_update: ClassVar[bool] = False
    allow_unconditional_update: ClassVar[bool] = True
    generation: ClassVar[bool] = False  # metadata.generation counts changes of the spec
    status: ClassVar[bool] = True  # with a status subresource, `status` is written only through it
    selectable: ClassVar[tuple[str, ...]] = ()  # the keys that `fields` returns
    field_aliases: ClassVar[Mapping[str, str]] = {}  # other names of selectable fields
    returns_deleted: ClassVar[bool] = False  # a delete returns the object instead of a Status
    orphans_dependents: ClassVar[bool] = False  # a delete without propagationPolicy orphans dependents
    garbage_collected: ClassVar[bool] = True  # a delete sets the garbage collector's finalizers
    delete_warnings: ClassVar[tuple[str, ...]] = ()  # for a delete without propagationPolicy
    empty_status: ClassVar[Mapping[str, Any] | None] = None  # status of new objects; None: as sent by the client
    status_keeps_metadata: ClassVar[bool] = False  # a status update changes no metadata
    # Strategies of subresources that update the object itself, other than status.
    subresources: ClassVar[Mapping[str, Strategy]] = {}

    def for_server(self, world: World) -> Strategy:
        """Return the strategy for one server; overridden by strategies that need the clock or keep state."""
        return self

    def applicable(self, subresource: str) -> Filter | None:
        """The fields that a write through a subresource ("": none) can own; None: all. For kinds with a status."""
        if subresource == "status":
            return _SPEC_AND_METADATA if self.status_keeps_metadata else _SPEC
        return None if subresource else _STATUS

    # The steps of a write, in order: `default`, `allocate`, `prepare_...`, `validate...`, `warnings`. `old` is the
    # stored object.

    def default(self, obj: Json) -> None:
        """Apply defaults to the body."""

    def default_status(self, obj: Json) -> None:
        """Like `default`, for a patched status: what else the object has is replaced by that of the stored one."""
        self.default(obj)

    def prepare_create(self, obj: Json) -> list[str] | None:
        """Set the fields that the server controls on creation; return warnings for the client."""
        if self.empty_status is not None:
            obj["status"] = dict(self.empty_status)
        return None

    def prepare_update(self, new: Json, old: Json) -> None:
        """Restore the fields that an update may not change from the old object."""

    def prepare_status_update(self, new: Json, old: Json) -> None:
        """Like `prepare_update`, for a status update."""
        for key in [k for k in new if k not in ("metadata", "status")]:
            if key not in old:
                del new[key]
        for key, value in old.items():
            if key not in ("metadata", "status"):
                new[key] = value
        if self.status_keeps_metadata:
            for key in _METADATA:
                if key in old["metadata"]:
                    new["metadata"][key] = old["metadata"][key]
                else:
                    new["metadata"].pop(key, None)

    def validate(self, obj: Json) -> list[FieldError]:
        """Return the validation errors of an object."""
        return []

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        """Return the validation errors of an update."""
        return self.validate(new)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return []

    def allocate(self, new: Json, old: Json | None, index: Index, *, dry: bool) -> Awaitable[Allocation | None] | None:
        """Allocate exclusive values (cluster IPs, ports), or raise an APIError. A `dry` run allocates nothing."""
        return None

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        """Return warnings for the client about a valid object."""
        return []

    def grace(self, obj: Json, requested: int | None) -> int | None:
        """The grace period of a deletion in seconds; None: the kind is deleted immediately."""
        return None

    def is_finalized(self, obj: Json) -> bool:
        """Whether a terminating object without finalizers can be removed."""
        return True

    def begins_deletion(self, obj: Json, now: datetime) -> bool:
        """Begin the deletion of a kind with its own phases; return whether the object stays."""
        return False

    async def after_delete(self, obj: Json, index: Index) -> None:
        """Delete dependent objects after an object was removed."""

    def desired(self, obj: Json) -> Any:
        """The part of an object whose changes increment metadata.generation."""
        return {k: v for k, v in obj.items() if k not in ("metadata", "status")}

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        """The values of selectable fields, besides name and namespace."""
        return {}
