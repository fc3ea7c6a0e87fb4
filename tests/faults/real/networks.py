"""Networks of etcd members that can be cut: a network namespace for each, with one link to clients and one to peers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class MemberNetwork:
    """The network of one member."""

    namespace: str
    client_address: str
    peer_address: str
    links: tuple[str, str]  # this side's ends: to clients, to peers

    @property
    def command(self) -> list[str]:
        """What a program in this network is started with."""
        return ["ip", "netns", "exec", self.namespace]

    def cut(self, *, clients: bool = True, peers: bool = True) -> None:
        """Lose all packets, without a sign."""
        self._set("down", clients=clients, peers=peers)

    def heal(self) -> None:
        self._set("up", clients=True, peers=True)

    def _set(self, state: str, *, clients: bool, peers: bool) -> None:
        for link, chosen in zip(self.links, (clients, peers), strict=True):
            if chosen:
                _ip("link", "set", link, state)


def can_partition() -> bool:
    """Whether this user may make network namespaces."""
    if os.geteuid():
        return False
    name = f"osti{os.getpid()}probe"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@contextmanager
def member_networks(count: int) -> Iterator[list[MemberNetwork]]:
    """Networks on two bridges, removed with the block."""
    number = os.getpid() % 250
    prefix = f"os{os.getpid() % 100_000}"
    bridges = [f"{prefix}c", f"{prefix}p"]
    made: list[MemberNetwork] = []
    try:
        for place, bridge in enumerate(bridges):
            _ip("link", "add", bridge, "type", "bridge")
            _ip("addr", "add", f"10.{231 + place}.{number}.254/24", "dev", bridge)
            _ip("link", "set", bridge, "up")
        made.extend(_network(prefix, number, member, bridges) for member in range(count))
        yield made
    finally:
        for network in made:
            _ip("netns", "del", network.namespace)  # with its links
        for bridge in bridges:
            subprocess.run(["ip", "link", "del", bridge], capture_output=True, check=False)


def _network(prefix: str, number: int, member: int, bridges: list[str]) -> MemberNetwork:
    namespace = f"{prefix}m{member}"
    addresses = [f"10.{231 + place}.{number}.{member + 1}" for place in range(2)]
    links = (f"{prefix}c{member}", f"{prefix}p{member}")
    _ip("netns", "add", namespace)
    _ip("-n", namespace, "link", "set", "lo", "up")
    for place, (link, bridge) in enumerate(zip(links, bridges, strict=True)):
        _ip("link", "add", link, "type", "veth", "peer", "name", f"eth{place}", "netns", namespace)
        _ip("link", "set", link, "master", bridge, "up")
        _ip("-n", namespace, "addr", "add", f"{addresses[place]}/24", "dev", f"eth{place}")
        _ip("-n", namespace, "link", "set", f"eth{place}", "up")
    return MemberNetwork(namespace, addresses[0], addresses[1], links)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
