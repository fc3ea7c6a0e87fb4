"""Ring of the changes of the last minutes, and which run made each of them.

- Bounded in bytes and in age. Near the bound the oldest changes are packed, then dropped.
- A run names a write by the resourceVersion that the server assigned. A binding, the removal of the last finalizer and
  some deletions have none in their response: they are matched with the change of that object that is one.
- A deletion may be two changes: the grace period becomes 0, then the object is removed. Both have the same author.
- One change may be several writes, which a server has merged. It has the author of the first of them, and is found by
  the resourceVersion of each.
- The claim of a run may arrive before the change that it is for, or after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.page.facts import Ref, gvk_of
from ostinato.page.history.change import Change, Type, ordinal_of
from ostinato.page.reporting.reports import Wrote

MAX_BYTES: Final = 64 << 20
MAX_AGE: Final = 900.0  # seconds
_PACK_ABOVE: Final = 0.25  # of the bound
_CLAIM_SECONDS: Final = 30.0  # in which a claim and its change must meet
_REQUEST_SECONDS: Final = 2.0  # between a change and the answer to the write that made it
_MAX_CLAIMS: Final = 20_000
_MAX_CLAIMS_OF_OBJECT: Final = 64
_MAX_DELETING: Final = 100
_MAX_DIGITS: Final = 18  # of the number of a change
_DICTIONARY: Final = 32 << 10  # bytes that zlib uses

Object = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


class _Claim(msgspec.Struct, frozen=True, gc=False):
    at: float
    wrote: Wrote


class Changes:
    def __init__(self, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE) -> None:
        self.size = 0
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._number = 0
        self._ring: deque[Change] = deque()
        self._by_version: dict[tuple[Object, str], Change] = {}
        self._by_object: dict[Object, list[Change]] = {}  # in order
        self._claims: dict[Object, list[_Claim]] = {}  # of runs whose change has not been seen
        self._dictionaries: dict[GroupVersionKind, bytes] = {}
        self._unpacked = 0  # number of the first change that is not packed
        self._deleting: dict[str, str] = {}  # by uid: who deletes an object through this page

    @property
    def oldest(self) -> float | None:
        """When the oldest change happened; None if there is none."""
        return self._ring[0].at if self._ring else None

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def unmatched(self) -> int:
        """Number of writes that runs have reported and whose change has not been seen."""
        return sum(map(len, self._claims.values()))

    # Recording

    def add(self, at: float, change: Type, before: Entry | None, after: Entry) -> Change:
        self._number += 1
        where = object_of(after.collection.info.gvk, after.key)
        of_object = self._by_object.setdefault(where, [])
        added = Change(self._number, at, change, before, after, of_object[-1] if of_object else None)
        self._ring.append(added)
        self._by_version[where, added.resource_version] = added
        of_object.append(added)
        self.size += added.size
        claims = self._claims.get(where)
        if claims is not None:
            self._meet(added, where, claims)
        if self._deleting and added.is_deletion and (who := self._deleting.pop(added.uid, "")) and not added.run:
            added.made_by("", who)
        if self.size > self._max_bytes:
            self._evict(at)
        return added

    def claim(self, at: float, wrote: Wrote) -> None:
        """Record that a run made a write."""
        where = gvk_of(wrote.api_version, wrote.kind).group, wrote.kind, wrote.namespace, wrote.name
        version = wrote.resource_version
        found = self._at(where, version, wrote.uid) if version else self._unclaimed(at, where, wrote)
        if found is None:
            self._keep(at, where, wrote)
        # A change that was seen before the write was sent is another's: the write changed nothing.
        elif not version or found.at >= wrote.at - _REQUEST_SECONDS:
            self._attribute(found, where, wrote)

    def _keep(self, at: float, where: Object, wrote: Wrote) -> None:
        """Keep a claim until its change is seen."""
        claims = self._claims.setdefault(where, [])
        claims.append(_Claim(at, wrote))
        if len(claims) > _MAX_CLAIMS_OF_OBJECT:  # of a kind that is not watched
            del claims[0]
        if len(self._claims) > _MAX_CLAIMS:
            del self._claims[next(iter(self._claims))]

    def deleting(self, uid: str, who: str) -> None:
        """Record that someone deletes an object, before the request is sent: a deletion does not tell its author."""
        if len(self._deleting) >= _MAX_DELETING:
            del self._deleting[next(iter(self._deleting))]
        self._deleting[uid] = who

    def _at(self, where: Object, version: str, uid: str = "") -> Change | None:
        """Return the change that gave an object this resourceVersion, or that merges the one that did."""
        found = self._by_version.get((where, version))
        if found is not None or not self._ring:
            return found
        ordinal = ordinal_of(version)
        if ordinal <= self._ring[0].ordinal:  # from before all changes, perhaps of another object of this name
            return None
        for change in reversed(self._by_object.get(where, ())):
            if change.merges(ordinal):
                return change if uid in ("", change.uid) else None
            if change.ordinal < ordinal:
                break
        return None

    def _unclaimed(self, at: float, where: Object, wrote: Wrote) -> Change | None:
        """Return the change that may be the removal or binding that a run reported."""
        for change in reversed(self._by_object.get(where, ())):
            if change.at < at - _CLAIM_SECONDS:
                return None
            if not change.run and _fits(change, wrote):
                return change
        return None

    def _meet(self, change: Change, where: Object, claims: list[_Claim]) -> None:
        """Find the claim for a new change."""
        claims[:] = [each for each in claims if each.at >= change.at - _CLAIM_SECONDS]
        fitting = [each for each in claims if _may_claim(each.wrote, change)]
        if fitting:
            first = min(fitting, key=_order)
            self._attribute(change, where, first.wrote)
            met = {id(each) for each in fitting if each is first or each.wrote.resource_version}
            claims[:] = [each for each in claims if id(each) not in met]
        if not claims:
            del self._claims[where]

    def _attribute(self, change: Change, where: Object, wrote: Wrote) -> None:
        ordinal = ordinal_of(wrote.resource_version)
        if change.is_known_from(ordinal):
            return
        change.made_by(wrote.run, wrote.controller, ordinal)
        if change.type != "delete":
            return
        for before in reversed(self._by_object[where]):
            if before.number < change.number and before.uid == change.uid:
                if not before.run and before.shortens_grace():
                    before.made_by(wrote.run, wrote.controller)
                return

    # Bounds

    def expire(self, now: float) -> None:
        """Drop what is too old."""
        while self._ring and self._ring[0].at < now - self._max_age:
            self._drop()
        stale = now - _CLAIM_SECONDS
        for where in [where for where, claims in self._claims.items() if claims[-1].at < stale]:
            del self._claims[where]

    @property
    def needs_packing(self) -> bool:
        return self.size > self._max_bytes * _PACK_ABOVE and self._unpacked <= self._number

    def pack(self, count: int) -> None:
        """Pack up to `count` of the oldest changes."""
        first = self._ring[0].number if self._ring else 0
        start = max(0, self._unpacked - first)
        end = min(start + count, len(self._ring))
        for at in range(start, end):
            change = self._ring[at]
            if not change.is_packed:
                self.size -= change.pack(self._dictionary(change))
        self._unpacked = first + end

    def _dictionary(self, change: Change) -> bytes:
        found = self._dictionaries.get(change.gvk)
        if found is None:
            found = self._dictionaries[change.gvk] = msgspec.json.encode(change.states()[1])[-_DICTIONARY:]
        return found

    def _evict(self, now: float) -> None:
        while self._ring and (self.size > self._max_bytes or self._ring[0].at < now - self._max_age):
            self._drop()

    def _drop(self) -> None:
        change = self._ring.popleft()
        self.size -= change.size
        where = object_of(change.gvk, change.key)
        if self._by_version.get((where, change.resource_version)) is change:
            del self._by_version[where, change.resource_version]
        of_object = self._by_object[where]
        of_object.pop(0)
        if not of_object:
            del self._by_object[where]

    # Reading

    def between(self, since: float, until: float) -> Iterator[Change]:
        """Iterate over the changes of a period, oldest first."""
        return (change for change in self._ring if since <= change.at < until)

    def after(self, number: int) -> list[Change]:
        """Return the changes after the one of that number, oldest first."""
        found = []
        for change in reversed(self._ring):
            if change.number <= number:
                break
            found.append(change)
        return found[::-1]

    @property
    def last(self) -> int:
        """The number of the newest change."""
        return self._number

    def get(self, number: str) -> Change | None:
        """Return the change with this id."""
        if not self._ring or not number.isdecimal() or len(number) > _MAX_DIGITS:
            return None
        at = int(number) - self._ring[0].number
        return self._ring[at] if 0 <= at < len(self._ring) else None

    def at_version(self, ref: Ref, resource_version: str) -> Change | None:
        """Return the change that gave an object this resourceVersion, or that merges the one that did."""
        return self._at(object_of(ref.gvk, ref.key), resource_version)

    def of_object(self, ref: Ref) -> list[Change]:
        """Return the changes of an object, oldest first; of one uid, if the reference has it."""
        found = self._by_object.get(object_of(ref.gvk, ref.key), ())
        return [each for each in found if not ref.uid or each.uid == ref.uid]

    def all(self) -> Iterable[Change]:
        return self._ring


def object_of(gvk: GroupVersionKind, key: NamespacedName) -> Object:
    return gvk.group, gvk.kind, key.namespace, key.name


def _may_claim(wrote: Wrote, change: Change) -> bool:
    if not wrote.resource_version:
        return _fits(change, wrote)
    return wrote.resource_version == change.resource_version or _is_merged(wrote, change)


def _is_merged(wrote: Wrote, change: Change) -> bool:
    return wrote.uid in ("", change.uid) and change.merges(ordinal_of(wrote.resource_version))


def _order(claim: _Claim) -> tuple[bool, int]:
    """Sort claims by resourceVersion; those without one last."""
    version = claim.wrote.resource_version
    return not version, ordinal_of(version)


def _fits(change: Change, wrote: Wrote) -> bool:
    """Whether a change may be the removal or binding that a run reported."""
    if wrote.uid and wrote.uid != change.uid:
        return False
    return change.type == "delete" if wrote.is_removal else change.binds()
