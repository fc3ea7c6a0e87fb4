"""The zone of a cluster: the records of its Services, endpoints and Pods.

Kubernetes' DNS specification 1.1.0, in the details as CoreDNS:

| name, below the cluster domain | has |
|---|---|
| `SERVICE.NAMESPACE.svc` | cluster IPs; of a headless Service its ready endpoints; CNAME of an ExternalName |
| `_PORT._PROTOCOL.SERVICE.NAMESPACE.svc` | SRV of the ports with this name and protocol, and the addresses |
| `HOSTNAME.SERVICE.NAMESPACE.svc` | address of an endpoint; without a host name its address with dashes |
| `1-2-3-4.NAMESPACE.pod` | the address that it says, whether or not there is such a Pod |
| `dns-version` | TXT of the version |
| `4.3.2.1.in-addr.arpa`, `….ip6.arpa` | PTR of a cluster IP, or of endpoints |

A name that exists without records of the type has an answer without records; others do not exist. A Service without
ready endpoints does not exist if it is headless.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from ostinato.kinds.core_v1 import Service
from ostinato.kinds.discovery_v1 import Endpoint, EndpointSlice
from ostinato.plane.endpoints.pods import family_of, is_headless
from ostinato.plane.endpoints.slices import SERVICE_NAME
from ostinato.plane.network.dns import wire
from ostinato.plane.network.dns.wire import Name, Question, Record

TTL: Final = 5  # seconds; also of the absence of a name
_VERSION: Final = "1.1.0"
_TYPES: Final = {4: wire.A, 6: wire.AAAA}
_NAME_SERVER: Final = (b"ns", b"dns")


class Directory(Protocol):
    """The objects of the cluster."""

    @property
    def is_ready(self) -> bool:
        """Whether all objects are known: before, what is not found may exist."""

    def service(self, namespace: str, name: str) -> Service | None: ...

    def slices(self, namespace: str, name: str) -> Sequence[EndpointSlice]:
        """The EndpointSlices of a Service."""

    def has_namespace(self, name: str) -> bool: ...

    def services_at(self, address: str) -> Sequence[Service]:
        """The Services with a cluster IP."""

    def slices_at(self, address: str) -> Sequence[EndpointSlice]:
        """The EndpointSlices with an address."""


class Found(msgspec.Struct, frozen=True):
    """What the zone has for a question.

    - `alias`: the name that the records of the last answer, a CNAME, lead to. Defaults to None: the answer is complete.
    """

    exists: bool
    answers: tuple[Record, ...] = ()
    additional: tuple[Record, ...] = ()
    alias: Name | None = None


_MISSING: Final = Found(exists=False)
_EMPTY: Final = Found(exists=True)


class _Item(msgspec.Struct, frozen=True):
    """An address and port of a Service or an endpoint. `port`: 0 if it has none."""

    name: Name
    address: str
    port: int
    port_name: str
    protocol: str


class Zone:
    def __init__(self, directory: Directory, domain: str, address: str, serial: int) -> None:
        """`domain`: of the cluster. `address`: of its DNS server. `serial`: of the zone."""
        self._directory = directory
        self._serial = serial
        self._origin = wire.name_of(domain.lower())
        self._address = address

    @property
    def is_ready(self) -> bool:
        return self._directory.is_ready

    # Questions

    def find(self, question: Question) -> Found | None:
        """None if the question is not the zone's, and an upstream server is to be asked."""
        key = question.key
        if key[-2:] in ((b"in-addr", b"arpa"), (b"ip6", b"arpa")):
            return self._reverse(question)
        if key[-len(self._origin) :] != self._origin:
            return None
        if any(not each.isascii() for each in key):
            return _MISSING
        rest = [each.decode() for each in key[: -len(self._origin)]]
        return self._below(question, rest)

    @property
    def start_of_authority(self) -> Record:
        """The record that says how long the absence of a name may be cached."""
        server, mailbox = (*_NAME_SERVER, *self._origin), (b"hostmaster", *self._origin)
        return Record(self._origin, wire.SOA, TTL, wire.soa_data(server, mailbox, self._serial, TTL))

    def _below(self, question: Question, rest: list[str]) -> Found:
        match rest:
            case []:
                server = Record(question.name, wire.NS, TTL, wire.encode_name((*_NAME_SERVER, *self._origin)))
                of_type = {wire.NS: (server,), wire.SOA: (self.start_of_authority,)}
                return Found(exists=True, answers=of_type.get(question.type, ()))
            case ["dns-version"]:
                version = Record(question.name, wire.TXT, TTL, bytes((len(_VERSION),)) + _VERSION.encode())
                return Found(exists=True, answers=(version,)) if question.type == wire.TXT else _EMPTY
            case ["ns", "dns"]:
                return self._addresses(question, [self._address])
            case ["svc" | "pod"] | ["dns"]:
                return _EMPTY
            case [*_, ("svc" | "pod")] if not self._directory.has_namespace(rest[-2]):
                return _MISSING
            case [_, ("svc" | "pod")]:
                return _EMPTY
            case [pod, _, "pod"]:
                address = _undashed(pod)
                return self._addresses(question, [address]) if address else _MISSING
            case [*prefix, service, namespace, "svc"] if len(prefix) <= 2:
                return self._service(question, namespace, service, prefix)
        return _MISSING

    def _service(self, question: Question, namespace: str, name: str, prefix: list[str]) -> Found:
        """`prefix`: empty, the host name of an endpoint, or a port and its protocol."""
        service = self._directory.service(namespace, name)
        if service is None:
            return _MISSING
        if service.spec.type == "ExternalName":
            return _MISSING if prefix else self._alias(question, service)
        port, protocol = (each.removeprefix("_") for each in prefix) if len(prefix) == 2 else ("", "")
        hostname = prefix[0] if len(prefix) == 1 else ""
        own = (name.encode(), namespace.encode(), b"svc", *self._origin)
        if hostname or is_headless(service):
            items = list(self._endpoints(namespace, name, own, hostname))
        else:
            items = [
                _Item(own, ip, each.port, each.name or "", each.protocol or "TCP")
                for each in service.spec.ports
                for ip in service.spec.cluster_ips or [service.spec.cluster_ip or ""]
            ]
        items = [each for each in items if port in ("", each.port_name) and protocol in ("", each.protocol.lower())]
        if not items:
            return _MISSING
        if question.type == wire.SRV:
            return self._srv(question, items)
        return self._addresses(question, [each.address for each in items])

    def _alias(self, question: Question, service: Service) -> Found:
        try:
            target = wire.name_of(service.spec.external_name or "")
        except wire.MalformedMessage:
            return _MISSING
        if family_of(service.spec.external_name or "") or not target:
            return _MISSING
        answer = Record(question.name, wire.CNAME, TTL, wire.encode_name(target))
        return Found(exists=True, answers=(answer,), alias=None if question.type == wire.CNAME else target)

    def _endpoints(self, namespace: str, name: str, own: Name, hostname: str) -> Iterator[_Item]:
        for each in self._directory.slices(namespace, name):
            if each.address_type not in ("IPv4", "IPv6"):
                continue
            ports = [(port.port or 0, port.name or "", port.protocol or "TCP") for port in each.ports] or [(0, "", "")]
            for endpoint in each.endpoints:
                if not _is_ready(endpoint):
                    continue
                for address in endpoint.addresses[:1]:  # further ones are of the same endpoint
                    called = endpoint.hostname or _dashed(address)
                    if hostname in ("", called):
                        yield from (_Item((called.encode(), *own), address, *port) for port in ports)

    # Answers

    def _addresses(self, question: Question, addresses: Sequence[str]) -> Found:
        records = tuple(
            Record(question.name, kind, TTL, data)
            for kind, data in dict.fromkeys(map(_address_data, addresses))
            if kind == question.type
        )
        return Found(exists=True, answers=records)

    def _srv(self, question: Question, items: Sequence[_Item]) -> Found:
        ported = [each for each in items if each.port]
        weight = max(100 // len(ported), 1) if ported else 0
        answers = dict.fromkeys(
            Record(question.name, wire.SRV, TTL, wire.srv_data(weight, each.port, each.name)) for each in ported
        )
        additional = dict.fromkeys(Record(each.name, *_typed(each.address)) for each in ported)
        return Found(exists=True, answers=tuple(answers), additional=tuple(additional))

    def _reverse(self, question: Question) -> Found | None:
        address = _reversed_address(question.key)
        names = dict.fromkeys(self._names_at(address)) if address else {}
        if not names:
            return None
        if question.type != wire.PTR:
            return _EMPTY
        return Found(
            exists=True,
            answers=tuple(Record(question.name, wire.PTR, TTL, wire.encode_name(each)) for each in names),
        )

    def _names_at(self, address: str) -> Iterator[Name]:
        services = self._directory.services_at(address)
        for service in services:
            yield self._name_of(service.metadata.namespace, service.metadata.name)
        if services:
            return
        for each in self._directory.slices_at(address):
            name = self._name_of(each.metadata.namespace, each.metadata.labels.get(SERVICE_NAME, ""))
            for endpoint in each.endpoints:
                if address in endpoint.addresses[:1] and _is_ready(endpoint):
                    yield ((endpoint.hostname or _dashed(address)).encode(), *name)

    def _name_of(self, namespace: str, name: str) -> Name:
        return (name.encode(), namespace.encode(), b"svc", *self._origin)


def _typed(address: str) -> tuple[int, int, bytes]:
    kind, data = _address_data(address)
    return kind, TTL, data


def _address_data(address: str) -> tuple[int, bytes]:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return 0, b""
    return _TYPES[found.version], found.packed


def _is_ready(endpoint: Endpoint) -> bool:
    return endpoint.conditions is None or endpoint.conditions.ready is not False


def _dashed(address: str) -> str:
    return address.replace(".", "-").replace(":", "-")


def _undashed(name: str) -> str:
    """The address that the name of a Pod says; "" if it says none."""
    text = name.replace("-", ".") if name.count("-") == 3 and "--" not in name else name.replace("-", ":")
    return text if family_of(text) else ""


def _reversed_address(key: Name) -> str:
    """The address of a name below in-addr.arpa or ip6.arpa; "" if it is of none."""
    digits = [each.decode("ascii", "replace") for each in reversed(key[:-2])]
    with suppress(ValueError):
        if key[-2] == b"in-addr" and len(digits) == 4:
            return str(ipaddress.IPv4Address(".".join(digits)))
        if key[-2] == b"ip6" and len(digits) == 32 and all(len(each) == 1 for each in digits):
            return str(ipaddress.IPv6Address(int("".join(digits), 16)))
    return ""
