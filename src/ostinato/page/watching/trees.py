"""Owner trees: the objects of the cluster by their owner references, filtered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from ostinato.api.selectors.labels import Selector
from ostinato.cache.store.entry import Entry
from ostinato.page.facts import Ref, Tree
from ostinato.page.watching.readiness import readiness
from ostinato.world import Clock

MAX_DEPTH: Final = 20
MAX_OBJECTS: Final = 20_000  # in one answer
_DECODED_PER_STEP: Final = 100

Known = dict[str, tuple[str, Tree]]
"""Objects by uid: their resourceVersion, and how they are shown, without children."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects are shown, with their owners and what they own. Empty values select all."""

    kind: str = ""
    namespace: str = ""
    labels: Selector | None = None
    text: str = ""
    deleting: bool = False
    root: str = ""  # uid of an object whose whole tree is wanted

    @property
    def selects_all(self) -> bool:
        return not (self.kind or self.labels or self.text or self.deleting)

    def matches(self, entry: Entry) -> bool:
        gvk = entry.collection.info.gvk
        return (
            (not self.kind or self.kind in (gvk.kind, f"{gvk.kind}.{gvk.group}", f"{gvk.api_version}/{gvk.kind}"))
            and (self.labels is None or self.labels.matches(entry.labels))
            and (not self.text or self.text in entry.key.name.lower() or self.text in gvk.kind.lower())
            and (not self.deleting or entry.is_being_deleted)
        )


class Owners:
    """The owner references of all objects, at one time."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.uid: entry for entry in entries}
        self._children: dict[str, list[Entry]] = {}
        self.roots: list[Entry] = []
        for entry in self._entries.values():
            owners = [uid for uid in entry.owner_uids if uid in self._entries]
            for uid in owners:
                self._children.setdefault(uid, []).append(entry)
            if not owners:
                self.roots.append(entry)

    def get(self, uid: str) -> Entry | None:
        return self._entries.get(uid)

    def children(self, uid: str) -> list[Entry]:
        return sorted(self._children.get(uid, ()), key=_order)

    def topmost(self, entry: Entry) -> Entry:
        """Return the owner of the owner … of an object; the object itself if it has none."""
        for _ in range(MAX_DEPTH):
            owner = next((self._entries[uid] for uid in entry.owner_uids if uid in self._entries), None)
            if owner is None:
                return entry
            entry = owner
        return entry

    def below(self, uid: str) -> set[str]:
        """Return the uids of all objects below one."""
        found: set[str] = set()
        waiting = [uid]
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if child.uid not in found:
                    found.add(child.uid)
                    waiting.append(child.uid)
        return found

    def select(self, wanted: Filter) -> tuple[list[Entry], int]:
        """Return the roots of the trees that have a match, those with children first; and the number of matches."""
        if wanted.root:
            found = self._entries.get(wanted.root)
            return ([], 0) if found is None else ([self.topmost(found)], 1)
        roots, total = self.roots, len(self._entries)
        if wanted.namespace or not wanted.selects_all:
            inside = [each for each in self._entries.values() if wanted.namespace in ("", each.key.namespace)]
            matches = inside if wanted.selects_all else [each for each in inside if wanted.matches(each)]
            kept = {self.topmost(each).uid for each in matches}
            roots, total = [each for each in roots if each.uid in kept], len(matches)
        return sorted(roots, key=lambda each: (each.uid not in self._children, _order(each))), total


class Trees:
    """Builds trees for one answer, bounded. Yields to the event loop: an object takes some time to decode."""

    def __init__(self, owners: Owners, wanted: Filter, clock: Clock, known: Known | None = None) -> None:
        """`known`: objects of earlier answers, reused and extended. Defaults to none."""
        self._owners = owners
        self._wanted = wanted
        self._clock = clock
        self._known: Known = {} if known is None else known
        self.left = MAX_OBJECTS
        self._prunes = not (wanted.selects_all or wanted.root)

    async def build(self, entry: Entry) -> Tree:
        """Return the tree of an object; with a filter, without branches that have no match."""
        return (await self._build(entry, 0, keeps=not self._prunes))[0]

    async def _build(self, entry: Entry, depth: int, *, keeps: bool) -> tuple[Tree, bool]:
        self.left -= 1
        if self.left % _DECODED_PER_STEP == 0:
            await self._clock.sleep(0)
        keeps = keeps or self._wanted.matches(entry)
        matches, children = keeps, []
        if depth < MAX_DEPTH:
            for child in self._owners.children(entry.uid):
                if self.left <= 0:
                    break
                tree, has_match = await self._build(child, depth + 1, keeps=keeps)
                if has_match:
                    children.append(tree)
                    matches = True
        return self._tree(entry, children), matches

    def _tree(self, entry: Entry, children: list[Tree]) -> Tree:
        known = self._known.get(entry.uid)
        if known is None or known[0] != entry.resource_version:
            known = self._known[entry.uid] = (entry.resource_version, tree_of(entry))
        return msgspec.structs.replace(known[1], children=children) if children else known[1]


def tree_of(entry: Entry) -> Tree:
    """Return an object as a tree without children."""
    instance = entry.dict()
    ready = readiness(instance)
    return Tree(
        ref=Ref.of(entry.collection.info.gvk, entry.key, entry.uid),
        ready=ready.state,
        message=ready.message,
        created=seconds_of(instance["metadata"].get("creationTimestamp")),
        deleting=seconds_of(entry.deletion_timestamp),
    )


def seconds_of(text: str | None) -> float | None:
    """Parse a timestamp of the API as seconds since the epoch; None if it is not one."""
    try:
        return None if not text else datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _order(entry: Entry) -> tuple[str, str, str]:
    return entry.collection.info.gvk.kind, entry.key.namespace, entry.key.name
