"""Encryption: which providers the objects of a resource have."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.server.store.encryption.providers import PREFIX, DecryptionError, Identity, Provider
from ostinato.server.store.records import UnusableStore


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

    def decrypt(self, collection: str, name: str, data: bytes, context: bytes) -> tuple[bytes, bool]:
        """Decrypt a stored object; return it and whether another than the first provider wrote it.

        `name` is for the message of UnusableStore.
        """
        is_encrypted = data.startswith(PREFIX)
        for place, provider in enumerate(self.providers(collection)):
            if data.startswith(provider.prefix) and bool(provider.prefix) == is_encrypted:
                try:
                    return provider.decrypt(data, context), bool(place)
                except DecryptionError as error:
                    raise UnusableStore(f"{name}: cannot be decrypted with {_name(data)}: {error}") from None
        if is_encrypted:
            raise UnusableStore(
                f"{name}: is encrypted with {_name(data)}, which --encryption-provider-config does not have for it; "
                "add the key"
            )
        # As with kube-apiserver, unencrypted objects need the provider identity. There, requests fail.
        raise UnusableStore(
            f"{name}: is not encrypted; add the provider identity after the others until it is written again"
        )


def _name(data: bytes) -> str:
    """The cipher and the key of a value, for messages."""
    cipher, _, name, *_ = [*data[len(PREFIX) : len(PREFIX) + 300].decode(errors="replace").split(":"), "", ""]
    return f"{cipher}, key {name!r}"
