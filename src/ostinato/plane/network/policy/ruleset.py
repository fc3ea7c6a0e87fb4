"""Network policies as rules of nf_tables, on the way of forwarded packets.

A table for each IP version, as `nft list table ip NAME` shows it:

    set services { type ipv4_addr; }                     # addresses of Services on this machine
    map egress, ingress { type ipv4_addr : verdict; }    # isolated Pods: jump to a chain
    chain postrouting { type nat hook postrouting priority 90;
        ip daddr @services snat to ip saddr }            # the service proxy sees who connects
    chain forward { type filter hook forward priority 0;
        ct state established,related accept
        ip daddr @services jump services
        ip saddr vmap @egress
        ip daddr vmap @ingress }
    chain services { ip daddr ADDRESS tcp dport 80 ip saddr @denied-0 drop; ...; accept }
    chain egress-0 { ip daddr @pods-0 tcp dport 80-90 return; ip daddr 10.0.0.0/8 return; ...; drop }

- Packets between the machine and its own Pods are not forwarded, and pass.
- Pods with the same permissions share a chain, peers that are the same Pods share a set.
- All of it is replaced at once.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.network import nf_messages as nf
from ostinato.plane.network.messages import Message
from ostinato.plane.network.policy.table import Block, Permission, Permissions, PolicyTable, Ports

_BEFORE_SOURCE_NAT, _FILTER = 90, 0  # priorities
_PREFIX: Final = "ostinato-policies-"  # of the names of tables
_NUMBERS: Final = {"TCP": 6, "UDP": 17, "SCTP": 132}


class DeniedClients(msgspec.Struct, frozen=True):
    """Pods that may connect to no endpoint of a frontend of a Service."""

    protocol: str
    address: str
    port: int
    clients: frozenset[str]


class Ruleset(msgspec.Struct, frozen=True):
    """What is installed."""

    table: PolicyTable = PolicyTable()
    services: frozenset[str] = frozenset()
    denied: tuple[DeniedClients, ...] = ()


class RulesetInstaller:
    """Replaces the tables of one state directory. Methods block for some milliseconds."""

    def __init__(self, state: Path) -> None:
        """Tables whose state directories are gone are removed."""
        self._state = os.fsencode(state.resolve())
        self._name = f"{_PREFIX}{hashlib.sha256(self._state).hexdigest()[:8]}"
        self._installed: set[int] = set()  # IP versions

    def install(self, ruleset: Ruleset) -> None:
        """OSError if the kernel refuses it; what was installed before stays."""
        wanted = _versions_of(ruleset)
        if not wanted and not self._installed:
            return  # nothing to do, which takes no rights
        if not self._installed:
            _remove_abandoned()
        messages: list[Message] = []
        for version in sorted(self._installed | wanted):
            messages += _TableBuilder(nf.Table(self._name, version, self._state), ruleset).messages()
        nf.commit(messages)
        self._installed |= wanted

    def is_intact(self) -> bool:
        """Whether the tables are there: another program may have flushed all rules."""
        found = {table.version for table in nf.tables() if table.name == self._name}
        return self._installed <= found

    def remove(self) -> None:
        for version in nf.FAMILIES:
            with suppress(OSError):
                nf.commit([nf.Table(self._name, version).remove()])
        self._installed.clear()


def _remove_abandoned() -> None:
    """Remove the tables of planes that were killed, and whose state directories do not exist any more."""
    for table in nf.tables():
        owner = os.fsdecode(table.owner)
        if table.name.startswith(_PREFIX) and owner.startswith("/") and not os.path.isdir(owner):
            with suppress(OSError):
                nf.commit([table.remove()])


def _versions_of(ruleset: Ruleset) -> set[int]:
    addresses = (*ruleset.services, *ruleset.table.ingress, *ruleset.table.egress)
    return {ipaddress.ip_address(each).version for each in addresses}


class _TableBuilder:
    """The messages of one table."""

    def __init__(self, table: nf.Table, ruleset: Ruleset) -> None:
        self._table = table
        self._ruleset = ruleset
        self._before: list[Message] = []  # sets and chains, before the rules that use them
        self._rules: list[Message] = []
        self._sets: dict[frozenset[str], str] = {}

    def messages(self) -> list[Message]:
        table, ruleset = self._table, self._ruleset
        base = [
            table.address_set("services"),
            table.address_map("egress"),
            table.address_map("ingress"),
            table.base_chain("postrouting", b"nat", nf.POSTROUTING, _BEFORE_SOURCE_NAT),
            table.base_chain("forward", b"filter", nf.FORWARD, _FILTER),
            table.chain("services"),
        ]
        to_services = [table.address(nf.DESTINATION), nf.lookup("services")]
        first = [
            table.rule("postrouting", *to_services, *table.keep_source()),
            table.rule("forward", *nf.connection_is(nf.ESTABLISHED | nf.RELATED), nf.verdict(nf.ACCEPT)),
            table.rule("forward", *to_services, nf.jump("services")),
            table.rule("forward", table.address(nf.SOURCE), nf.lookup("egress", verdict=True)),
            table.rule("forward", table.address(nf.DESTINATION), nf.lookup("ingress", verdict=True)),
        ]
        for each in ruleset.denied:
            self._deny(each)
        self._rules.append(table.rule("services", nf.verdict(nf.ACCEPT)))
        isolated = [
            *self._isolate("egress", ruleset.table.egress, nf.DESTINATION),
            *self._isolate("ingress", ruleset.table.ingress, nf.SOURCE),
        ]
        services = nf.addresses_in(ruleset.services, table.version)
        members = table.elements("services", [(each, "") for each in services])
        return [*table.replace(), *base, *self._before, *first, *self._rules, *members, *isolated]

    def _deny(self, denied: DeniedClients) -> None:
        address = ipaddress.ip_address(denied.address)
        clients = nf.addresses_in(denied.clients, self._table.version)
        if address.version != self._table.version or not clients:
            return
        only = ipaddress.ip_network(denied.address)
        self._rules.append(
            self._table.rule(
                "services",
                *self._table.is_in(nf.DESTINATION, only),
                *_ports(Ports(denied.protocol, denied.port, denied.port)),
                *self._in_set(nf.SOURCE, denied.clients),
                nf.verdict(nf.DROP),
            )
        )

    def _isolate(self, name: str, isolated: Mapping[str, Permissions], peer: dict[int, int]) -> list[Message]:
        """Chains of isolated Pods; return the elements of the map that leads to them."""
        chains: dict[Permissions, str] = {}
        elements = []
        for address in nf.addresses_in(isolated, self._table.version):
            permissions = isolated[str(address)]
            if permissions not in chains:
                chains[permissions] = chain = f"{name}-{len(chains)}"
                self._before.append(self._table.chain(chain))
                for permission in permissions:
                    self._permit(chain, permission, peer)
                self._rules.append(self._table.rule(chain, nf.verdict(nf.DROP)))
            elements.append((address, chains[permissions]))
        return self._table.elements(name, elements)

    def _permit(self, chain: str, permission: Permission, peer: dict[int, int]) -> None:
        for matching in self._peers(permission, peer):
            for ports in [None] if permission.ports is None else permission.ports:
                of_ports = [] if ports is None else _ports(ports)
                self._rules.append(self._table.rule(chain, *matching, *of_ports, nf.verdict(nf.RETURN)))

    def _peers(self, permission: Permission, peer: dict[int, int]) -> Iterator[list[bytes]]:
        version = self._table.version
        if permission.addresses is None:
            yield []
            return
        if nf.addresses_in(permission.addresses, version):
            yield self._in_set(peer, permission.addresses)
        for block in permission.blocks:
            if block.network.version == version:
                yield self._in_block(peer, block)

    def _in_block(self, peer: dict[int, int], block: Block) -> list[bytes]:
        within = self._table.is_in(peer, block.network) if block.network.prefixlen else []
        outside = [self._table.is_in(peer, each, nf.NOT_EQUAL) for each in block.excepted]
        return [*within, *(expression for each in outside for expression in each)]

    def _in_set(self, peer: dict[int, int], addresses: frozenset[str]) -> list[bytes]:
        name = self._sets.get(addresses)
        if name is None:
            name = self._sets[addresses] = f"pods-{len(self._sets)}"
            found = nf.addresses_in(addresses, self._table.version)
            self._before.append(self._table.address_set(name))
            self._before += self._table.elements(name, [(each, "") for each in found])
        return [self._table.address(peer), nf.lookup(name)]


def _ports(ports: Ports) -> list[bytes]:
    protocol = [nf.meta(nf.PROTOCOL), nf.compare(nf.EQUAL, bytes((_NUMBERS[ports.protocol],)))]
    if ports.is_all:
        return protocol
    first, last = (struct.pack(">H", each) for each in (ports.first, ports.last))
    if first == last:
        return [*protocol, nf.destination_port(), nf.compare(nf.EQUAL, first)]
    return [*protocol, nf.destination_port(), nf.compare(nf.AT_LEAST, first), nf.compare(nf.AT_MOST, last)]
