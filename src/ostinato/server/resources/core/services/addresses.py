"""IPAddress objects of Services, from the ranges of the ServiceCIDRs.

- Each allocated address has an IPAddress that refers to its Service. It is created before the Service, and only if it
  does not exist: of several writers, also on several servers, one gets the address.
- The server's own range is that of the ServiceCIDR `kubernetes`; ranges of further ones are used after it.
- IPv4 only.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.time import Time
from ostinato.server.resources.strategy import Json
from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry

if TYPE_CHECKING:
    from ostinato.world import World

RANGE: Final = IPv4Network("10.0.0.0/24")  # of a new server, unless it has another setting
_ADDRESSES: Final = "ipaddresses.networking.k8s.io"
_RANGES: Final = "servicecidrs.networking.k8s.io"
_LABELS: Final = {
    "ipaddress.kubernetes.io/ip-family": "IPv4",
    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
}
_OWNED: Final[Json] = {
    "f:metadata": {"f:labels": {".": {}, **{f"f:{label}": {} for label in _LABELS}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


def own_range(index: Index) -> IPv4Network:
    """The range that the server was first started with."""
    collection = index.collections.get(_RANGES)
    entry = None if collection is None else collection.newest("kubernetes")
    cidrs = () if entry is None else msgspec.json.decode(entry.data)["spec"].get("cidrs") or ()
    return next((IPv4Network(cidr, strict=False) for cidr in cidrs if ":" not in cidr), RANGE)


def ranges(index: Index) -> list[IPv4Network]:
    """The ranges to allocate from; a ServiceCIDR that is terminating or not ready is skipped."""
    found = [own_range(index)]
    for entry in _present(index.collections.get(_RANGES)):
        obj = msgspec.json.decode(entry.data)
        conditions = (obj.get("status") or {}).get("conditions") or ()
        ready = all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")
        if ready and not obj["metadata"].get("deletionTimestamp"):
            networks = (IPv4Network(cidr, strict=False) for cidr in obj["spec"].get("cidrs") or () if ":" not in cidr)
            found += [network for network in networks if network not in found]
    return found


def named_addresses(index: Index) -> set[str]:
    """The addresses that have an IPAddress object."""
    return {entry.key for entry in _present(index.collections.get(_ADDRESSES))}


def _present(collection: Collection | None) -> Iterable[Entry]:
    """The newest states, including writes that are not durable yet."""
    if collection is None:
        return ()
    newest = {**collection.entries, **collection.pending}
    return [entry for entry in newest.values() if entry is not None]


def addresses_of(service: Json | None) -> list[str]:
    """The addresses of a Service."""
    spec = {} if service is None else service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return []
    return [address for address in spec.get("clusterIPs") or () if address not in ("", "None")]


async def claim_address(index: Index, world: World, address: str, service: Json) -> bool:
    """Create the IPAddress of a Service; False if the address is taken. `service`: its metadata."""
    collection = index.collections.get(_ADDRESSES)
    if collection is None:
        return True
    try:
        await _put(index, collection, _object(world, address, service))
    except Conflict:
        return False
    return True


async def release_addresses(index: Index, addresses: Iterable[str], service: Json) -> None:
    """Delete the IPAddresses of a Service, given its metadata."""
    collection = index.collections.get(_ADDRESSES)
    if collection is None:
        return
    for address in addresses:
        entry = collection.newest(address)
        if entry is not None and _owner(entry) == (service["namespace"], service["name"]):
            with suppress(Conflict):  # deleted concurrently
                await index.delete(collection, address, entry)


async def repair_addresses(index: Index, world: World, services: Iterable[Entry], grace: float) -> None:
    """Reconcile the IPAddresses with all Services: after a crash between the two writes, or in an older store.

    `grace`: minimum age in seconds of an IPAddress without a Service, whose Service may be about to be stored.
    """
    collection = index.collections.get(_ADDRESSES)
    if collection is None:
        return
    used: dict[str, tuple[str, str]] = {}
    for entry in services:
        if entry.fields.get("spec.clusterIP") not in (None, "", "None"):
            service = msgspec.json.decode(entry.data)
            for address in addresses_of(service):
                used[address] = (service["metadata"]["namespace"], service["metadata"]["name"])
                if collection.newest(address) is None:
                    await claim_address(index, world, address, service["metadata"])
    oldest = world.clock.wall() - grace
    for entry in list(_present(collection)):
        if entry.labels.items() >= _LABELS.items() and used.get(entry.key) != _owner(entry):
            created = msgspec.json.decode(entry.data)["metadata"]["creationTimestamp"]
            if Time.parse(created).timestamp() <= oldest:
                with suppress(Conflict):
                    await index.delete(collection, entry.key, entry)


def _owner(entry: Entry) -> tuple[str, str]:
    parent = msgspec.json.decode(entry.data)["spec"].get("parentRef") or {}
    return parent.get("namespace", ""), parent.get("name", "")


def _object(world: World, address: str, service: Json) -> Json:
    now = world.clock.now().isoformat(timespec="seconds")[:19] + "Z"
    owner = {"manager": "kube-apiserver", "operation": "Update", "apiVersion": "networking.k8s.io/v1"}
    place = {"namespace": service["namespace"], "name": service["name"]}
    return {
        "metadata": {
            "name": address,
            "uid": world.ids.uid(),
            "resourceVersion": "",
            "creationTimestamp": now,
            "labels": dict(_LABELS),
            "managedFields": [{**owner, "time": now, "fieldsType": "FieldsV1", "fieldsV1": _OWNED}],
        },
        "spec": {"parentRef": {"resource": "services", **place}},
    }


async def _put(index: Index, collection: Collection, obj: Json) -> None:
    metadata: dict[str, Any] = obj["metadata"]
    entry = Entry(metadata["name"], 0, b"", metadata["labels"], {}, metadata["uid"])

    def encode(version: int) -> bytes:
        metadata["resourceVersion"] = str(version)
        return msgspec.json.encode(obj)

    await index.put(collection, entry, None, encode)
