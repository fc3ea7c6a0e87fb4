"""Readings: what is known of many objects, each state of which is decoded once.

A controller that keeps a thousand objects looks at all of them whenever one changes. What it goes by is a few fields of
each; here they are kept from one look to the next, and only what has changed is read again.

    nodes = Readings(lambda entry: entry.read(NodeState).spec.taints)
    for taints in nodes.of(request, entries): ...

What was read for somebody is forgotten when it is not among what is read next, or when that one is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from ostinato.cache.store.entry import Entry

T = TypeVar("T")


class DecodedCache(Generic[T]):
    def __init__(self, decode: Callable[[Entry], T]) -> None:
        """`read`: what is to be known of an object; many may share it, so it is not to be changed."""
        self._decode = decode
        self._known: dict[Hashable, dict[str, tuple[str, T]]] = {}  # by whose they are and uid: the version, and that

    def get(self, owner: Hashable, entries: Iterable[Entry]) -> list[T]:
        """What is known of these, for somebody."""
        before = self._known.get(owner, {})
        now: dict[str, tuple[str, T]] = {}
        for entry in entries:
            found = before.get(entry.uid)
            if found is None or found[0] != entry.resource_version:
                found = entry.resource_version, self._decode(entry)
            now[entry.uid] = found
        self._known[owner] = now
        return [each for _, each in now.values()]

    def forget(self, owner: Hashable) -> None:
        self._known.pop(owner, None)

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))
