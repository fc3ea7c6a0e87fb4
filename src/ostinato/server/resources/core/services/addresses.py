"""IPAddress objects of Services, from the ranges of the ServiceCIDRs.

- Each allocated address has an IPAddress that refers to its Service. It is created before the Service, and only if it
  does not exist: of several writers, also on several servers, one gets the address.
- The server's own ranges are those of the ServiceCIDR `kubernetes`, one of an IP family; that of the default family is
  the first. Ranges of further ServiceCIDRs are used after them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.time import Time
from ostinato.api.validation.addresses import parse_ip
from ostinato.server.resources.strategy import Json
from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry

if TYPE_CHECKING:
    from ostinato.world import World

Network = IPv4Network | IPv6Network

RANGE: Final = IPv4Network("10.0.0.0/24")  # of a new server, unless it has another setting
# Resources whose collections the strategies of Services take from the index.
USED_BY_NAME: Final = (
    ("", "services"),
    ("", "endpoints"),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"),
)
_ADDRESSES: Final = "ipaddresses.networking.k8s.io"
_RANGES: Final = "servicecidrs.networking.k8s.io"
_MANAGED: Final = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
_FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
_OWNED: Final[Json] = {
    "f:metadata": {"f:labels": {".": {}, **{f"f:{label}": {} for label in (_FAMILY, *_MANAGED)}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


def own_ranges(index: Index) -> list[Network]:
    """The ranges that the server was first started with, that of its default IP family first."""
    collection = index.collections.get(_RANGES)
    entry = None if collection is None else collection.newest("kubernetes")
    found = [] if entry is None else _cidrs(msgspec.json.decode(entry.data))
    return found or [RANGE]


def ranges(index: Index, version: int) -> list[Network]:
    """The ranges of an IP version to allocate from; a ServiceCIDR that is terminating or not ready is skipped."""
    found = [each for each in own_ranges(index) if each.version == version]
    for entry in _present(index.collections.get(_RANGES)):
        obj = msgspec.json.decode(entry.data)
        conditions = (obj.get("status") or {}).get("conditions") or ()
        ready = all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")
        if ready and not obj["metadata"].get("deletionTimestamp"):
            found += [each for each in _cidrs(obj) if each.version == version and each not in found]
    return found


def _cidrs(service_cidr: Json) -> list[Network]:
    return [ip_network(cidr, strict=False) for cidr in service_cidr["spec"].get("cidrs") or ()]


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
    """The addresses of a Service, in canonical form: the names of their IPAddresses."""
    spec = {} if service is None else service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return []
    parsed = (parse_ip(address) for address in spec.get("clusterIPs") or ())
    return [str(address) for address in parsed if address is not None]


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
        if entry.labels.items() >= _MANAGED.items() and used.get(entry.key) != _owner(entry):
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
            "labels": {_FAMILY: f"IPv{ip_address(address).version}", **_MANAGED},
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
