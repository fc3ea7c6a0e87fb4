"""Ownership: who owns which fields after an update or an apply, and what an apply makes of an object.

- An update owns what it changes; what it removes is nobody's any more. Updates never conflict.
- An apply owns just what it states. A field that another owns and that it would change is a conflict, unless forced:
  then the other loses it. Fields that it stated before and no longer states go, unless others own them.
- Two may own a field together as long as they agree on its value.

Owners may have written in different versions of the API; each is compared in its own.
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
from ostinato.api.apply.typed.reconcile_schema import adapted, with_structs
from ostinato.api.apply.typed.validate import check
from ostinato.api.apply.typed.values import same
from ostinato.api.schema import Schema

Object = dict[str, Any]
Converter = Callable[[Object, str], Object]  # an object and the apiVersion that is wanted; raises UnknownVersionError


class UnknownVersionError(LookupError):
    """An apiVersion that the kind does not have, or has no longer: its owners are dropped."""


class Identity(NamedTuple):
    """What makes an entry of managedFields one and the same from write to write."""

    manager: str
    operation: str  # "Apply" or "Update"
    api_version: str  # empty for appliers, who stay themselves in every version
    subresource: str = ""


class Owned(NamedTuple):
    """What a manager owns, in the words of one version."""

    fields: FieldSet
    api_version: str
    applied: bool


Owners = dict[Identity, Owned]


class ConflictsError(Exception):
    """An apply would change fields that others own."""

    def __init__(self, found: list[tuple[Identity, Path]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found


class Versions:
    """The versions of one kind: their merge rules, and how an object gets from one to another."""

    def __init__(self, schemas: Mapping[str, Schema | None], convert: Converter | None = None) -> None:
        self._schemas = schemas  # by apiVersion; None for a version without a schema
        self._convert = convert

    def rules(self, api_version: str) -> Rules:
        if api_version not in self._schemas:
            raise UnknownVersionError(api_version)
        return rules_of(self._schemas[api_version])

    def convert(self, value: Object, to: str) -> Object:
        if value.get("apiVersion") == to:
            return value
        rules = self.rules(to)
        if self._convert is None:
            raise UnknownVersionError(to)
        converted = self._convert(value, to)
        check(converted, rules, duplicates=False)
        return converted


class Ownership:
    """The rules of ownership at an endpoint: one version of a kind, and what may be owned through it."""

    def __init__(self, versions: Versions, api_version: str, allowed: Mapping[str, Filter]) -> None:
        self._versions = versions
        self._api_version = api_version
        self._allowed = allowed  # by apiVersion; versions without one allow everything
        self._rules = versions.rules(api_version)

    def changes(self, live: Object, new: Object) -> Comparison:
        """What changes from live to new and may be owned here."""
        return self._compared(live, new, self._api_version)

    def update(self, live: Object, new: Object, changes: Comparison, owners: Owners, manager: Identity) -> Owners:
        """Who owns what after `manager` wrote `new` with these changes. Empty owners disappear."""
        owners = self._without_changes(live, new, changes, self._adapted(live, owners), manager, force=True)
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
        """The object after an apply, None if it is as before; and its owners. Raises ConflictsError unless forced."""
        owners = self._adapted(live, owners)
        new: Object = merge(live, config, self._rules)
        last = owners.get(manager)
        fields = self.filtered(fields_of(config, self._rules))
        owners[manager] = Owned(fields, self._api_version, applied=True)
        new = self._pruned(new, owners, manager, last)
        if len(owners) > 1:
            owners = self._without_changes(live, new, self.changes(live, new), owners, manager, force=force)
        elif not fields:
            owners = {}
        return (None if same(live, new) else new), owners

    def filtered(self, fields: FieldSet) -> FieldSet:
        """What of a set may be owned here."""
        allowed = self._allowed.get(self._api_version)
        return fields if allowed is None else allowed(fields)

    def _adapted(self, live: Object, owners: Owners) -> Owners:
        """The owners under today's schemas; those in versions that are gone are dropped."""
        made: Owners = {}
        for manager, owned in owners.items():
            try:
                self._versions.convert(live, owned.api_version)
                fields = adapted(owned.fields, self._versions.rules(owned.api_version))
            except UnknownVersionError:
                continue
            made[manager] = owned if fields is owned.fields else owned._replace(fields=fields)
        return made

    def _without_changes(
        self, live: Object, new: Object, changes: Comparison, owners: Owners, manager: Identity, *, force: bool
    ) -> Owners:
        """The owners, all but `manager` without what changes from live to new."""
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
        """The changes that may be owned here, from one object to another of the same version."""
        rules = self._rules if api_version == self._api_version else self._versions.rules(api_version)
        allowed = self._allowed.get(api_version)
        if isinstance(allowed, Without):  # what is left out anyway need not be looked at
            names = allowed.names
            old = {name: value for name, value in old.items() if name not in names}
            new = {name: value for name, value in new.items() if name not in names}
            if allowed.is_names_alone:
                return compare(old, new, rules)
        return compare(old, new, rules).filtered(allowed)

    # What an applier leaves out

    def _pruned(self, merged: Object, owners: Owners, manager: Identity, last: Owned | None) -> Object:
        """The object without what `manager` applied before, no longer applies, and nobody else owns."""
        if last is None or not last.fields:
            return merged
        version = last.api_version
        if version == self._api_version and not difference(last.fields, owners[manager].fields):
            return merged  # nothing was left out
        try:
            merged_then = self._versions.convert(merged, version)
        except UnknownVersionError:
            return merged
        rules = self._versions.rules(version)
        before = with_structs(last.fields, rules)
        pruned = self._kept_for_owners(merged_then, remove(merged_then, before, rules) or {}, version, owners)
        try:
            pruned = self._versions.convert(pruned, version)
        except UnknownVersionError:
            return self._versions.convert(merged_then, self._api_version)
        gone = difference(_all_fields(merged_then, rules), _all_fields(pruned, rules))
        pruned = remove(merged_then, intersection(gone, before), rules) or {}
        return self._versions.convert(pruned, self._api_version)

    def _kept_for_owners(self, merged: Object, pruned: Object, version: str, owners: Owners) -> Object:
        """The pruned object, with what of it somebody owns put back; first in the version in which it was pruned."""
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
            stays = union(_all_fields(pruned, rules), with_structs(owned_fields, rules))
            pruned = remove(merged, difference(_all_fields(merged, rules), stays), rules) or {}
        return pruned


def _all_fields(value: Object, rules: Rules) -> FieldSet:
    return with_structs(fields_of(value, rules), rules)
