"""Cache of decoded objects, one value per uid and resourceVersion.

A controller that evaluates many objects on each change needs a few fields of each. The values are kept between
reconciles and only changed objects are decoded again.

    taints = DecodedCache(lambda entry: entry.read(NodeState).spec.taints)
    for each in taints.get(request, entries): ...

Values are kept per owner, for the entries of its last `get`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from ostinato.cache.store.entry import Entry

T = TypeVar("T")


class DecodedCache(Generic[T]):
    def __init__(self, decode: Callable[[Entry], T]) -> None:
        """`decode`: computes the value of an object. Values are shared and must not be modified."""
        self._decode = decode
        self._known: dict[Hashable, dict[str, tuple[str, T]]] = {}  # owner -> uid -> (resourceVersion, value)

    def get(self, owner: Hashable, entries: Iterable[Entry]) -> list[T]:
        """Return the values of the entries."""
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
