"""Encryption: which providers the objects of a resource have."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.server.store.encryption.providers import Identity, Provider


class Encryption:
    """The providers of each resource. Without entries, nothing is encrypted."""

    def __init__(self, entries: Sequence[tuple[Sequence[str], Sequence[Provider]]] = ()) -> None:
        self._entries = entries
        self._found: dict[str, Sequence[Provider]] = {}

    @property
    def is_configured(self) -> bool:
        return bool(self._entries)

    def providers(self, collection: str) -> Sequence[Provider]:
        """Return the providers of a collection, "plural" or "plural.group"; the first one encrypts."""
        found = self._found.get(collection)
        if found is None:
            group = collection.partition(".")[2]
            patterns = {collection, f"*.{group}", "*.*"}
            matching = (providers for names, providers in self._entries if not patterns.isdisjoint(names))
            found = self._found[collection] = next(matching, (Identity(),))
        return found
