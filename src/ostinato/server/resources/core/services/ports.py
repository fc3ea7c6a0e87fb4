"""Node ports of Services: a RangeAllocation with one bit per port, as kube-apiserver stores it.

- It is changed by compare-and-swap: of several writers, also on several servers, one gets a port.
- Ports are set before their Service is stored, and cleared after it was deleted or could not be stored.
- A port that no Service uses is cleared by `repair_ports`, a port of a Service that is not set is set.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.server.store.records import Conflict, Entry

if TYPE_CHECKING:
    from ostinato.server.store.collection import Collection
    from ostinato.server.store.index import Index

NODE_PORTS: Final = "spec.nodePorts"  # in the fields of an entry; not selectable
PORTS: Final = range(30000, 32768)
_COLLECTION: Final = "servicenodeports.ranges"  # not served
_KEY: Final = "servicenodeports"
_RANGE: Final = f"{PORTS[0]}-{PORTS[-1]}"

# Given the ports that are taken, returns those that are to be.
Change = Callable[[set[int]], set[int]]


class NodePorts:
    """The node ports of one store."""

    def __init__(self) -> None:
        self._changing = asyncio.Lock()  # of several writers in this process, on a store that others write as well

    async def change(self, index: Index, change: Change) -> None:
        """Apply a change, which is called again after a conflict with another writer."""
        collection = _collection(index)
        async with self._turn(index):
            while True:
                current = collection.newest(_KEY)
                taken = set() if current is None else _ports(current.data)
                new = change(taken | used_ports(index))
                if new == taken and current is not None:
                    return
                try:
                    await _put(index, collection, current, new)
                except Conflict:
                    continue
                return

    def _turn(self, index: Index) -> AbstractAsyncContextManager[Any]:
        """Conflicts are only possible on a shared store; elsewhere, concurrent changes share a commit."""
        return self._changing if index.is_shared else nullcontext()

    async def release(self, index: Index, ports: Iterable[int]) -> None:
        """Clear ports, except those that a Service uses."""
        gone = set(ports)
        if gone:
            await self.change(index, lambda taken: taken - (gone - used_ports(index)))


def taken_ports(index: Index) -> set[int]:
    current = _collection(index).newest(_KEY)
    return used_ports(index) | (set() if current is None else _ports(current.data))


def used_ports(index: Index) -> set[int]:
    """The ports of stored Services, including writes that are not durable yet."""
    collection = index.collections["services"]
    entries = [*collection.entries.values(), *collection.pending.values()]
    texts = (entry.fields.get(NODE_PORTS) for entry in entries if entry is not None)
    return {int(number) for text in texts if text for number in text.split(",")}


def _collection(index: Index) -> Collection:
    return index.collection(_COLLECTION, _describe)


def _describe(_data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
    return {}, {}, ""


def _ports(data: bytes) -> set[int]:
    bits = int.from_bytes(b64decode(msgspec.json.decode(data).get("data") or ""), "big")
    return {port for offset, port in enumerate(PORTS) if bits >> offset & 1}


async def _put(index: Index, collection: Collection, current: Entry | None, ports: set[int]) -> None:
    bits = sum(1 << (port - PORTS[0]) for port in ports if port in PORTS)
    data = b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "big")).decode()
    obj: dict[str, Any] = {"metadata": {"resourceVersion": ""}, "range": _RANGE, "data": data}

    def encode(version: int) -> bytes:
        obj["metadata"]["resourceVersion"] = str(version)
        return msgspec.json.encode(obj)

    await index.put(collection, Entry(_KEY, 0, b"", {}, {}, ""), current, encode)
