"""Field manager: server-side apply and managedFields of one kind at one endpoint.

- `apply` merges a configuration into the live object; `update` is for all other writes, creations included. Both return
  the new object with its managedFields.
- Objects are JSON-compatible dicts and are not modified; results share structure with them.
- The live object of a creation is None.
- An apply without changes returns the live object itself, so nothing is stored.
- An object whose managedFields were reset is not tracked until it is applied to; its fields then belong to the manager
  "before-first-apply".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.apply.fieldpath.field_set import Filter, difference, field_path, from_paths, has, union
from ostinato.api.apply.managedfields.conflicts import conflict_error
from ostinato.api.apply.managedfields.entries import (
    Managed,
    ManagedFieldsError,
    cap,
    decode,
    encode,
    encode_entry,
    is_reset,
)
from ostinato.api.apply.managedfields.last_applied import KUBECTL, unchanged_since_last_applied, with_last_applied
from ostinato.api.apply.managedfields.update_cache import UpdateCache, update_key
from ostinato.api.apply.managedfields.updater import (
    ConflictsError,
    Converter,
    Identity,
    InvalidVersionError,
    Object,
    Owned,
    UnknownVersionError,
    Updater,
    Versions,
)
from ostinato.api.apply.typed.compare import Comparison
from ostinato.api.apply.typed.creation import FastPathUnsupported, created_fields
from ostinato.api.apply.typed.merge_unowned import merge_unowned
from ostinato.api.apply.typed.validate import TypedError, validate
from ostinato.api.apply.typed.zero_object import zero_object
from ostinato.api.errors import BadRequest
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema

_CURRENT = Identity("current-operation", "Update", "")  # the writer, until its field set is known
_BEFORE_FIRST_APPLY = "before-first-apply"

# Fields without owners: set by the server, or identifying the object.
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
    """The configuration or the live object is invalid; the server answers 500 with this message."""


class FieldManager:
    """Server-side apply and managedFields for one version of a kind, or one of its subresources."""

    def __init__(
        self,
        gvk: GroupVersionKind,
        schemas: Mapping[str, Schema | None],
        *,
        subresource: str = "",
        allowed: Mapping[str, Filter] | None = None,
        convert: Converter | None = None,
        drops_unknown_versions: bool = True,
    ) -> None:
        """
        - `schemas`: the schema of each version of the kind by apiVersion; None for a version without one.
        - `subresource`: the subresource of this endpoint. Defaults to the main resource.
        - `allowed`: by apiVersion, a filter for the fields that may be owned through this endpoint (`without`, `only`).
          Defaults to all fields.
        - `convert`: converts objects between the versions. Needed if there are several.
        - `drops_unknown_versions`: drop the entries of versions that are not in `schemas`; otherwise an apply fails and
          an update drops all entries.
        """
        self._gvk = gvk
        self._api_version = gvk.api_version
        self._subresource = subresource
        missing = UnknownVersionError if drops_unknown_versions else InvalidVersionError
        self._versions = Versions(schemas, convert, missing)
        self._rules = self._versions.rules(self._api_version)
        self._updater = Updater(self._versions, self._api_version, allowed or {})
        self._zero = zero_object(gvk)
        self._update_cache = UpdateCache()

    def merge_unowned(self, live: Object, config: Object) -> Object:
        """Return the object with a configuration merged into it, regardless of field managers. Raises TypedError."""
        merged: Object = merge_unowned(live, config, self._rules)
        return merged

    # Updates

    def update(self, live: Object | None, new: Object, manager: str, now: str) -> Object:
        """Return the new object with its managedFields after a write that is not an apply.

        Never fails: if the field sets cannot be computed, the object is returned without managedFields.
        """
        if live is None and "managedFields" not in _metadata(new):
            try:
                return self._created(new, manager, now)
            except FastPathUnsupported:
                pass  # the general path below handles it
        before = live if live is not None else self._zero
        bare = _without_managed_fields(new)
        try:
            old = self._versions.convert(_without_managed_fields(before), self._api_version)
            changes = self._changes(old, bare, is_tracked=bool(_metadata(before).get("managedFields")))
            given = self._given_entries(before, new)
            key = update_key(given, self._api_version, changes, manager)
            entries = self._update_cache.get(key, now) if key is not None else None
            if entries is None:
                managed = self._managed_before_update(before, new)
                if not managed.owners and _metadata(before).get("uid"):
                    return bare
                writer = self._settle(old, bare, changes, managed, manager, now)
                if key is not None and managed.read_from is given:
                    self._update_cache.put(key, managed, writer)
                entries = encode(managed)
        except (TypedError, UnknownVersionError, InvalidVersionError):
            return bare
        return _with_entries(bare, entries)

    def _created(self, new: Object, manager: str, now: str) -> Object:
        """Return a created object with its managedFields, on the fast path. Raises FastPathUnsupported."""
        taken = self._updater.filtered(created_fields(new, self._zero, self._rules, _UNOWNED))
        if not taken:
            return new
        identity = Identity(manager or "unknown", "Update", self._api_version, self._subresource)
        entry = encode_entry(identity, Owned(taken, self._api_version, applied=False), taken, now)
        return _with_entries(new, [entry])

    def _given_entries(self, live: Object, new: Object) -> Any:
        """Return the managedFields of the request, else those of the live object."""
        sent = None if self._subresource else _metadata(new).get("managedFields")
        return _metadata(live).get("managedFields") if sent is None else sent

    def _managed_before_update(self, live: Object, new: Object) -> Managed:
        """Return the managers in the request if they are valid and not empty, else those of the live object."""
        if not self._subresource:
            sent = _metadata(new).get("managedFields")
            if is_reset(sent):
                return Managed()
            try:
                managed = decode(sent)
            except ManagedFieldsError:
                managed = Managed()
            if managed.owners:
                return managed
        try:
            return decode(_metadata(live).get("managedFields"))
        except ManagedFieldsError:
            return Managed()

    def _changes(self, live: Object, new: Object, *, is_tracked: bool = False) -> Comparison:
        """Return the changes of a write, without managedFields. Raises TypedError.

        `is_tracked`: the live object has managedFields, so it is valid, and what the new one shares with it.
        """
        shown = {name: item for name, item in new.items() if item is not live.get(name)} if is_tracked else new
        validate(shown, self._rules, duplicates=True)
        return self._updater.changes(live, new)

    def _settle(
        self, live: Object, new: Object, changes: Comparison, managed: Managed, manager: str, now: str
    ) -> Identity | None:
        """Update `managed` with these changes. Returns the identity of the writer, None if it owns nothing of them."""
        owners = self._updater.update(live, new, changes, managed.owners, _CURRENT)
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
        """Return the object after an apply, with its managedFields.

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
            if manager == KUBECTL:
                unchanged = unchanged_since_last_applied(before, self._api_version, self._rules)
                found = [(owner, path) for owner, path in found if unchanged is None or not has(unchanged, path)]
            if found:
                raise conflict_error(found) from None
            managed = decode(_metadata(before).get("managedFields"))
            applied = self._apply(before, config, managed, manager, now, force=True)
        if manager == KUBECTL:
            applied = with_last_applied(applied, config)
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
        """Return the applied object without managedFields, and update `managed`. The live object if unchanged."""
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
                validate(value, self._rules, duplicates=duplicates)
            except TypedError as error:
                raise ApplyError(f"failed to create typed {name} object ({self._named(value)}): {error}") from None
        identity = Identity(manager or "unknown", "Apply", "", self._subresource)
        try:
            applied, owners = self._updater.apply(current, config, managed.owners, identity, force=force)
        except (TypedError, UnknownVersionError) as error:
            raise ApplyError(f"failed to merge config: {error}") from None
        except InvalidVersionError as error:
            raise ApplyError(str(error)) from None
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
