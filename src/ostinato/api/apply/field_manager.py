"""The field manager: what an API server asks of server-side apply, for one kind at one endpoint.

`apply` makes the new object of a live one and a configuration; `update` takes the new object as another kind of write
made it, creation included. Both give it back with its managedFields. Objects are dicts in JSON shape and are not
changed; what comes back shares structure with what went in.

- The live object of a creation is None.
- An apply that changes nothing gives back the live object itself: there is nothing to store.
- An object whose managedFields were emptied is no longer tracked, until it is applied to: what is there then belongs to
  "before-first-apply".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.apply.fieldpath.field_set import Filter, difference, field_path, from_paths, has, union
from ostinato.api.apply.managedfields.conflicts import conflict_error
from ostinato.api.apply.managedfields.entries import Managed, ManagedFieldsError, cap, decode, encode, is_reset, written
from ostinato.api.apply.managedfields.last_applied import KUBECTL, refreshed, vouched_fields
from ostinato.api.apply.managedfields.remembered_updates import SeenUpdates, question
from ostinato.api.apply.managedfields.updater import (
    ConflictsError,
    Converter,
    Identity,
    Object,
    Owned,
    Ownership,
    UnknownVersionError,
    Versions,
)
from ostinato.api.apply.typed.compare import Comparison
from ostinato.api.apply.typed.creation import Unusual, created
from ostinato.api.apply.typed.merge_unowned import lay
from ostinato.api.apply.typed.validate import TypedError, check
from ostinato.api.apply.typed.zero_object import zero_object
from ostinato.api.errors import BadRequest
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema

_CURRENT = Identity("current-operation", "Update", "")  # the writer, until it is known whether it changed anything
_BEFORE_FIRST_APPLY = "before-first-apply"

# What nobody owns: set by the server, or the name of the object.
_UNOWNED = from_paths(
    field_path("apiVersion"),
    field_path("kind"),
    field_path("metadata"),
    *(
        field_path("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)


class ApplyError(ValueError):
    """A configuration or a live object that cannot be applied to; the server answers 500 with this message."""


class FieldManager:
    """Server-side apply and field ownership for one version of a kind, or for one of its subresources."""

    def __init__(
        self,
        gvk: GroupVersionKind,
        schemas: Mapping[str, Schema | None],
        *,
        subresource: str = "",
        allowed: Mapping[str, Filter] | None = None,
        convert: Converter | None = None,
    ) -> None:
        """`schemas` has every version of the kind by apiVersion, None for one without a schema; `convert` goes between.

        `allowed` says, by apiVersion, what may be owned through this endpoint: see `without` and `only`.
        """
        self._gvk = gvk
        self._api_version = gvk.api_version
        self._subresource = subresource
        self._versions = Versions(schemas, convert)
        self._rules = self._versions.rules(self._api_version)
        self._ownership = Ownership(self._versions, self._api_version, allowed or {})
        self._zero = zero_object(gvk)
        self._seen = SeenUpdates()

    def lay(self, live: Object, config: Object) -> Object:
        """An object with a configuration over it, whoever owns the fields; TypedError if that may not be."""
        laid: Object = lay(live, config, self._rules)
        return laid

    # Updates

    def update(self, live: Object | None, new: Object, manager: str, now: str) -> Object:
        """The new object with its managedFields after a write that is not an apply. Never fails.

        If ownership cannot be worked out, the object comes back without managedFields.
        """
        if live is None and "managedFields" not in _metadata(new):
            try:
                return self._created(new, manager, now)
            except Unusual:
                pass  # the long way knows what to make of it
        before = live if live is not None else self._zero
        bare = _without_managed_fields(new)
        try:
            old = self._versions.convert(_without_managed_fields(before), self._api_version)
            changes = self._changes(old, bare)
            given = self._given_entries(before, new)
            asked = question(given, self._api_version, changes, manager)
            entries = self._seen.answer(asked, now) if asked is not None else None
            if entries is None:
                managed = self._managed_before_update(before, new)
                if not managed.owners and _metadata(before).get("uid"):
                    return bare
                writer = self._settle(old, bare, changes, managed, manager, now)
                if asked is not None and managed.read_from is given:
                    self._seen.keep(asked, managed, writer)
                entries = encode(managed)
        except (TypedError, UnknownVersionError):
            return bare
        return _with_entries(bare, entries)

    def _created(self, new: Object, manager: str, now: str) -> Object:
        """A new object with its managedFields, the short way; Unusual if that does not lead there."""
        taken = self._ownership.filtered(created(new, self._zero, self._rules, _UNOWNED))
        if not taken:
            return new
        identity = Identity(manager or "unknown", "Update", self._api_version, self._subresource)
        entry = written(identity, Owned(taken, self._api_version, applied=False), taken, now)
        return _with_entries(new, [entry])

    def _given_entries(self, live: Object, new: Object) -> Any:
        """The managedFields that the request brings, else those of the live object."""
        brought = None if self._subresource else _metadata(new).get("managedFields")
        return _metadata(live).get("managedFields") if brought is None else brought

    def _managed_before_update(self, live: Object, new: Object) -> Managed:
        """The owners that the request brings if it brings any that can be read, else those of the live object."""
        if not self._subresource:
            brought = _metadata(new).get("managedFields")
            if is_reset(brought):
                return Managed()
            try:
                managed = decode(brought)
            except ManagedFieldsError:
                managed = Managed()
            if managed.owners:
                return managed
        try:
            return decode(_metadata(live).get("managedFields"))
        except ManagedFieldsError:
            return Managed()

    def _changes(self, live: Object, new: Object) -> Comparison:
        """What a write changes, managedFields apart; TypedError if that may not be."""
        check(new, self._rules, duplicates=True)
        return self._ownership.changes(live, new)

    def _settle(
        self, live: Object, new: Object, changes: Comparison, managed: Managed, manager: str, now: str
    ) -> Identity | None:
        """Put into `managed` who owns what after these changes; who the writer is there, if they own any of it."""
        owners = self._ownership.update(live, new, changes, managed.owners, _CURRENT)
        managed.owners = owners
        taken = difference(owners.pop(_CURRENT).fields, _UNOWNED) if _CURRENT in owners else {}
        identity = None
        if taken:
            identity = Identity(manager or "unknown", "Update", self._api_version, self._subresource)
            if identity in owners:
                taken = union(taken, owners[identity].fields)
            owners[identity] = Owned(taken, self._api_version, applied=False)
            managed.times[identity] = now
        cap(managed)
        return identity

    # Apply

    def apply(self, live: Object | None, config: Object, manager: str, now: str, *, force: bool = False) -> Object:
        """The object after an apply, with its managedFields.

        Raises Conflict (409), BadRequest (400) or ApplyError.
        """
        before = live if live is not None else self._zero
        try:
            managed = decode(_metadata(before).get("managedFields"))
        except ManagedFieldsError as error:
            raise ApplyError(f"failed to decode managed fields: {error}") from None
        self._check_kind(config)
        try:
            applied = self._apply(before, config, managed, manager, now, force=force)
        except ConflictsError as conflicts:
            found = conflicts.found
            if manager == KUBECTL and (vouched := vouched_fields(before, self._api_version, self._rules)) is not None:
                found = [(owner, path) for owner, path in found if not has(vouched, path)]
            if found:
                raise conflict_error(found) from None
            managed = decode(_metadata(before).get("managedFields"))
            applied = self._apply(before, config, managed, manager, now, force=True)
        if manager == KUBECTL:
            applied = refreshed(applied, config)
        entries = encode(managed)
        if applied is before and entries == (_metadata(before).get("managedFields") or []):
            return before
        return _with_entries(applied, entries)

    def _check_kind(self, config: Object) -> None:
        if config.get("kind") != self._gvk.kind or config.get("apiVersion") != self._api_version:
            found = _kind_of(config)
            if found != self._gvk:
                raise BadRequest.of(f"invalid object type: {found}")
        if isinstance(_metadata(config).get("managedFields"), list):
            raise BadRequest.of("metadata.managedFields must be nil")

    def _apply(self, live: Object, config: Object, managed: Managed, manager: str, now: str, *, force: bool) -> Object:
        """The applied object, managedFields apart: these are in `managed` then. The live object if nothing changed."""
        current = self._in_this_version(_without_managed_fields(live))
        if not managed.owners and live is not self._zero:
            try:
                changes = self._changes(self._zero, current)
                self._settle(self._zero, current, changes, managed, _BEFORE_FIRST_APPLY, now)
            except TypedError as error:
                why = f"failed to convert new object ({self._named(current)}) to smd typed: {error}"
                raise ApplyError(f"failed to create manager for existing fields: {why}") from None
        for value, name, duplicates in ((config, "patch", False), (current, "live", True)):
            try:
                check(value, self._rules, duplicates=duplicates)
            except TypedError as error:
                raise ApplyError(f"failed to create typed {name} object ({self._named(value)}): {error}") from None
        identity = Identity(manager or "unknown", "Apply", "", self._subresource)
        try:
            applied, owners = self._ownership.apply(current, config, managed.owners, identity, force=force)
        except (TypedError, UnknownVersionError) as error:
            raise ApplyError(f"failed to merge config: {error}") from None
        managed.owners = owners
        if identity in owners:
            fields = difference(owners[identity].fields, _UNOWNED)
            if fields:
                owners[identity] = owners[identity]._replace(fields=fields)
            else:
                del owners[identity]
        if applied is None:
            return live
        managed.times[identity] = now
        return applied

    def _in_this_version(self, live: Object) -> Object:
        try:
            return self._versions.convert(live, self._api_version)
        except (TypedError, UnknownVersionError) as error:
            named = self._named(live)
            raise ApplyError(f"failed to convert live object ({named}) to proper version: {error}") from None

    def _named(self, value: Object) -> str:
        metadata = _metadata(value)
        return f"{_text(metadata.get('namespace'))}/{_text(metadata.get('name'))}; {self._gvk}"


def _kind_of(value: Object) -> GroupVersionKind:
    api_version, kind = _text(value.get("apiVersion")), _text(value.get("kind"))
    try:
        return GroupVersionKind.of(api_version, kind)
    except ValueError:
        return GroupVersionKind("", "", "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _metadata(value: Object) -> dict[str, Any]:
    metadata = value.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _without_managed_fields(value: Object) -> Object:
    metadata = _metadata(value)
    if "managedFields" not in metadata:
        return value
    return {**value, "metadata": {name: inner for name, inner in metadata.items() if name != "managedFields"}}


def _with_entries(value: Object, entries: list[dict[str, Any]]) -> Object:
    bare = _without_managed_fields(value)
    if not entries:
        return bare
    return {**bare, "metadata": {**_metadata(bare), "managedFields": entries}}
