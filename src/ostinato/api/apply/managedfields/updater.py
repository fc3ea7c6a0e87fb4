"""Updater: the field sets of all managers after an update or an apply, and the object after an apply.

- An update owns the fields that it changes. Removed fields have no owner. Updates never conflict.
- An apply owns the fields of its configuration. To change a field of another manager is a conflict; a forced apply
  takes the field over. Fields that it no longer contains are removed, unless another manager owns them.
- Several managers can own a field as long as they agree on its value.
- Managers may have written in different API versions; changes are compared in the version of each.

Corresponds to `merge.Updater` in structured-merge-diff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ostinato.api.apply.fieldpath.field_set import (
    FieldSet,
    Filter,
    Path,
    Without,
    difference,
    intersection,
    paths,
    union,
)
from ostinato.api.apply.typed.compare import Comparison, compare, fields_of
from ostinato.api.apply.typed.merge import merge, remove
from ostinato.api.apply.typed.merge_rules import Rules, rules_of
from ostinato.api.apply.typed.reconcile_schema import ensure_named_fields, reconcile_field_set
from ostinato.api.apply.typed.validate import validate
from ostinato.api.equality import equal
from ostinato.api.schema import Schema

Object = dict[str, Any]
Converter = Callable[[Object, str], Object]  # from an object and the target apiVersion; raises UnknownVersionError


class UnknownVersionError(LookupError):
    """The kind does not have this apiVersion (any more); entries of this version are dropped."""


class InvalidVersionError(LookupError):
    """The kind does not have this apiVersion, and entries of such versions are errors, as for custom resources."""

    def __init__(self, api_version: str) -> None:
        super().__init__(f"request to convert CR to an invalid group/version: {api_version}")


class Identity(NamedTuple):
    """Manager identifier: identifies an entry of managedFields across writes."""

    manager: str
    operation: str  # "Apply" or "Update"
    api_version: str  # empty for Apply: an applier has one entry for all versions
    subresource: str = ""


class Owned(NamedTuple):
    """The field set of a manager, in one API version: `VersionedSet` in structured-merge-diff."""

    fields: FieldSet
    api_version: str
    applied: bool


Owners = dict[Identity, Owned]


class ConflictsError(Exception):
    """An apply would change fields of other managers."""

    def __init__(self, found: list[tuple[Identity, Path]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found


class Versions:
    """The API versions of one kind: merge rules, and conversion between them."""

    def __init__(
        self,
        schemas: Mapping[str, Schema | None],
        convert: Converter | None = None,
        missing: Callable[[str], LookupError] = UnknownVersionError,
    ) -> None:
        self._schemas = schemas  # by apiVersion; None for a version without a schema
        self._convert = convert
        self._missing = missing  # the error for other versions

    def rules(self, api_version: str) -> Rules:
        if api_version not in self._schemas:
            raise self._missing(api_version)
        return rules_of(self._schemas[api_version])

    def convert(self, value: Object, to: str) -> Object:
        if value.get("apiVersion") == to:
            return value
        rules = self.rules(to)
        if self._convert is None:
            raise UnknownVersionError(to)
        converted = self._convert(value, to)
        validate(converted, rules, duplicates=False)
        return converted


class Updater:
    """The updater of an endpoint: one version of a kind, or a subresource, and the fields that may be owned there."""

    def __init__(self, versions: Versions, api_version: str, allowed: Mapping[str, Filter]) -> None:
        self._versions = versions
        self._api_version = api_version
        self._allowed = allowed  # by apiVersion; without a filter all fields are allowed
        self._rules = versions.rules(api_version)

    def changes(self, live: Object, new: Object) -> Comparison:
        """Return the changes from live to new that may be owned here."""
        return self._compared(live, new, self._api_version)

    def update(self, live: Object, new: Object, changes: Comparison, owners: Owners, manager: Identity) -> Owners:
        """Return the managers after `manager` wrote `new` with these changes. Managers without fields are dropped."""
        owners = self._without_changes(live, new, changes, self._reconcile(live, owners), manager, force=True)
        before = owners[manager].fields if manager in owners else {}
        fields = union(changes.modified, changes.added)
        if before:
            fields = self.filtered(union(difference(before, changes.removed), fields))
        if fields:
            owners[manager] = Owned(fields, self._api_version, applied=False)
        else:
            owners.pop(manager, None)
        return owners

    def apply(
        self, live: Object, config: Object, owners: Owners, manager: Identity, *, force: bool
    ) -> tuple[Object | None, Owners]:
        """Return the object after an apply, None if unchanged, and its managers. Raises ConflictsError."""
        owners = self._reconcile(live, owners)
        new: Object = merge(live, config, self._rules)
        last = owners.get(manager)
        fields = self.filtered(fields_of(config, self._rules))
        owners[manager] = Owned(fields, self._api_version, applied=True)
        new = self._pruned(new, owners, manager, last)
        if len(owners) > 1:
            owners = self._without_changes(live, new, self.changes(live, new), owners, manager, force=force)
        elif not fields:
            owners = {}
        return (None if equal(live, new) else new), owners

    def filtered(self, fields: FieldSet) -> FieldSet:
        """Return the subset that may be owned here."""
        allowed = self._allowed.get(self._api_version)
        return fields if allowed is None else allowed(fields)

    def _reconcile(self, live: Object, owners: Owners) -> Owners:
        """Return the managers reconciled with the current schemas; those of unknown versions are dropped."""
        made: Owners = {}
        for manager, owned in owners.items():
            try:
                self._versions.convert(live, owned.api_version)
                fields = reconcile_field_set(owned.fields, self._versions.rules(owned.api_version))
            except UnknownVersionError:
                continue
            made[manager] = owned if fields is owned.fields else owned._replace(fields=fields)
        return made

    def _without_changes(
        self, live: Object, new: Object, changes: Comparison, owners: Owners, manager: Identity, *, force: bool
    ) -> Owners:
        """Return the managers; all but `manager` lose the changed fields."""
        by_version = {self._api_version: changes}
        conflicts: list[tuple[Identity, FieldSet]] = []
        kept: Owners = {}
        for other, owned in owners.items():
            if other == manager:
                kept[other] = owned
                continue
            try:
                theirs = by_version.get(owned.api_version) or self._changes_in(live, new, owned.api_version)
            except UnknownVersionError:
                continue
            by_version[owned.api_version] = theirs
            taken = intersection(owned.fields, union(theirs.modified, theirs.added))
            if taken:
                conflicts.append((other, taken))
            fields = difference(difference(owned.fields, taken), theirs.removed)
            kept[other] = owned if fields is owned.fields else owned._replace(fields=fields)
        if conflicts and not force:
            raise ConflictsError([(other, path) for other, taken in conflicts for path in paths(taken)])
        return {other: owned for other, owned in kept.items() if owned.fields}

    def _changes_in(self, live: Object, new: Object, api_version: str) -> Comparison:
        old, after = (self._versions.convert(value, api_version) for value in (live, new))
        return self._compared(old, after, api_version)

    def _compared(self, old: Object, new: Object, api_version: str) -> Comparison:
        """Return the changes that may be owned here; both objects have this version."""
        rules = self._rules if api_version == self._api_version else self._versions.rules(api_version)
        allowed = self._allowed.get(api_version)
        if isinstance(allowed, Without):  # excluded fields need no comparison
            names = allowed.names
            old = {name: value for name, value in old.items() if name not in names}
            new = {name: value for name, value in new.items() if name not in names}
            if allowed.is_names_alone:
                return compare(old, new, rules)
        return compare(old, new, rules).filtered(allowed)

    # Pruning

    def _pruned(self, merged: Object, owners: Owners, manager: Identity, last: Owned | None) -> Object:
        """Return the object without the fields that only `manager` owned and that it no longer applies."""
        if last is None or not last.fields:
            return merged
        version = last.api_version
        if version == self._api_version and not difference(last.fields, owners[manager].fields):
            return merged  # no field was dropped
        try:
            merged_then = self._versions.convert(merged, version)
        except UnknownVersionError:
            return merged
        rules = self._versions.rules(version)
        before = ensure_named_fields(last.fields, rules)
        pruned = self._kept_for_owners(merged_then, remove(merged_then, before, rules) or {}, version, owners)
        try:
            pruned = self._versions.convert(pruned, version)
        except UnknownVersionError:
            return self._versions.convert(merged_then, self._api_version)
        gone = difference(_all_fields(merged_then, rules), _all_fields(pruned, rules))
        pruned = remove(merged_then, intersection(gone, before), rules) or {}
        return self._versions.convert(pruned, self._api_version)

    def _kept_for_owners(self, merged: Object, pruned: Object, version: str, owners: Owners) -> Object:
        """Return the pruned object with the fields of all managers restored, version by version, `version` first."""
        by_version: dict[str, FieldSet] = {version: {}}
        for owned in owners.values():
            by_version[owned.api_version] = union(by_version.get(owned.api_version, {}), owned.fields)
        for api_version, owned_fields in by_version.items():
            try:
                merged = self._versions.convert(merged, api_version)
                pruned = self._versions.convert(pruned, api_version)
            except UnknownVersionError:
                continue
            rules = self._versions.rules(api_version)
            stays = union(_all_fields(pruned, rules), ensure_named_fields(owned_fields, rules))
            pruned = remove(merged, difference(_all_fields(merged, rules), stays), rules) or {}
        return pruned


def _all_fields(value: Object, rules: Rules) -> FieldSet:
    return ensure_named_fields(fields_of(value, rules), rules)
