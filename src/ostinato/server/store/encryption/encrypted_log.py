"""Encrypted log: encrypts what another log stores.

- Objects are written with the first provider of their resource, and read with the one that wrote them.
- An object that another than the first one wrote is outdated (`is_outdated`): an update that changes nothing writes it
  again. So keys are rotated as with kube-apiserver: `kubectl get secrets -A -o json | kubectl replace -f -`.
- Without a configuration nothing is encrypted; a store with encrypted objects is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.records import Log, Write


class EncryptedLog:
    def __init__(self, log: Log, encryption: Encryption) -> None:
        self._log = log
        self._encryption = encryption
        self._outdated: set[tuple[str, str]] = set()

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        """Raises UnusableStore while iterating if an object cannot be decrypted."""
        version, objects = self._log.load()
        return version, self._decrypted(objects)

    def _decrypted(self, objects: Iterator[tuple[str, str, int, bytes]]) -> Iterator[tuple[str, str, int, bytes]]:
        for collection, key, version, data in objects:
            yield collection, key, version, self._decrypt(collection, key, data)

    def _decrypt(self, collection: str, key: str, data: bytes) -> bytes:
        data, is_outdated = self._encryption.decrypt(collection, f"{collection} {key}", data, _context(collection, key))
        if is_outdated:
            self._outdated.add((collection, key))
        return data

    async def append(self, writes: Sequence[Write]) -> None:
        if not self._encryption.is_configured:
            await self._log.append(writes)
            return
        await self._log.append([self._encrypted(write) for write in writes])
        if self._outdated:
            self._outdated.difference_update((write.collection, write.key) for write in writes)

    def _encrypted(self, write: Write) -> Write:
        if write.data is None:
            return write
        data = self._encryption.providers(write.collection)[0].encrypt(
            write.data, _context(write.collection, write.key)
        )
        return Write(write.collection, write.key, write.version, data, write.replaces)

    def is_outdated(self, collection: str, key: str) -> bool:
        """Return whether the object is stored with another provider than the first one."""
        return (collection, key) in self._outdated

    def close(self) -> None:
        self._log.close()


def _context(collection: str, key: str) -> bytes:
    return f"{collection}/{key}".encode()
