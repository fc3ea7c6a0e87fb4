"""Strategy: the rules for creating, updating and deleting objects of a kind.

A `Strategy` is asked at each step of a write. The base class has the rules that most kinds share; a kind overrides
what it does otherwise. Objects are plain dicts; a step that is allowed to change one does so in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from ostinato.api import names
from ostinato.api.apply import field_path, from_paths, without
from ostinato.api.field_errors import FieldError

if TYPE_CHECKING:
    from ostinato.api.apply.fieldset import Filter
    from ostinato.server.store.index import Index
    from ostinato.world import World

Json = dict[str, Any]
NameRule = Callable[..., list[str]]  # (name, prefix=False) -> what is wrong with it

_STATUS = without(from_paths(field_path("status")))
_SPEC = without(from_paths(field_path("spec")))
_SPEC_AND_METADATA = without(from_paths(field_path("spec"), field_path("metadata")))
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")  # what clients set there


class Strategy:
    """How the objects of one kind are written."""

    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_subdomain)
    allow_create_on_update: ClassVar[bool] = False
    allow_unconditional_update: ClassVar[bool] = True
    generation: ClassVar[bool] = False  # counts changes of what is desired
    status: ClassVar[bool] = True  # `status` is written through its subresource alone, where the kind has that
    selectable: ClassVar[tuple[str, ...]] = ()  # what `fields` gives
    field_aliases: ClassVar[Mapping[str, str]] = {}  # other names of selectable fields
    returns_deleted: ClassVar[bool] = False  # a delete answers with the object instead of a Status
    orphans_dependents: ClassVar[bool] = False  # a delete that names no policy leaves dependents alone
    garbage_collected: ClassVar[bool] = True  # a delete tells the garbage collector what to do with dependents
    delete_warnings: ClassVar[tuple[str, ...]] = ()  # for those who name no policy
    empty_status: ClassVar[Mapping[str, Any] | None] = None  # of new objects; None: as the client sends it
    status_keeps_metadata: ClassVar[bool] = False  # a write of the status changes no metadata
    # The rules of an update through a subresource that shows the object itself, other than status.
    subresources: ClassVar[Mapping[str, Strategy]] = {}

    def for_server(self, world: World) -> Strategy:
        """The strategy as one server uses it; for those that need the time, or that remember something."""
        return self

    def applicable(self, subresource: str) -> Filter | None:
        """The fields that a write through a subresource ("": through none) can own; None: all.

        Asked for kinds with a status.
        """
        if subresource == "status":
            return _SPEC_AND_METADATA if self.status_keeps_metadata else _SPEC
        return None if subresource else _STATUS

    # Every step may be overridden, `old` is the object as it stands in the store. In order: `default` the body,
    # `begin`, `prepare_...`, `validate...`, `warnings`.

    def default(self, obj: Json) -> None:
        """Fill in what the client left out."""

    def prepare_create(self, obj: Json) -> list[str] | None:
        """Set what the server decides when an object comes into being; what the client should know of that."""
        if self.empty_status is not None:
            obj["status"] = dict(self.empty_status)
        return None

    def prepare_update(self, new: Json, old: Json) -> None:
        """Take from the old object what an update may not change."""

    def prepare_status_update(self, new: Json, old: Json) -> None:
        """The same for an update of the status alone."""
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
        """What is wrong with an object."""
        return []

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        """What is wrong with a change."""
        return self.validate(new)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return []

    def begin(self, new: Json, old: Json | None, index: Index, *, dry: bool) -> Callable[[], None] | None:
        """The first step: take what there is only one of, or raise an APIError. A `dry` run takes nothing.

        Gives back what ends the hold on it, to be called when the write has succeeded or failed.
        """
        return None

    async def after_write(self, new: Json, old: Json | None, index: Index) -> None:
        """What comes with an object that was stored, where `begin` has held something."""

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        """What the client should know though it is allowed."""
        return []

    def grace(self, obj: Json, asked: int | None) -> int | None:
        """Seconds for which the object stays when it is deleted; None: kinds that go at once."""
        return None

    def is_finalized(self, obj: Json) -> bool:
        """Whether a dying object without finalizers may go."""
        return True

    def begins_deletion(self, obj: Json, now: datetime) -> bool:
        """For kinds that end in phases of their own: begin, and say that the object stays."""
        return False

    async def after_delete(self, obj: Json, index: Index) -> None:
        """What goes with an object that has gone."""

    def desired(self, obj: Json) -> Any:
        """The part of an object whose changes the generation counts."""
        return {k: v for k, v in obj.items() if k not in ("metadata", "status")}

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        """What field selectors may ask for, besides name and namespace."""
        return {}
