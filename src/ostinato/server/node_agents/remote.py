"""Remote node agents: called over HTTPS, as kube-apiserver calls kubelets.

- The address comes from the Node's status, so its writer chooses where this server connects: addresses are resolved and
  checked before they are dialed (`backends.addresses`).
- With certificate verification the certificate must be the node's, `system:node:NAME`; self-signed kubelet certificates
  cannot be verified. The kubelet verifies this server's client certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ostinato.server.backends.addresses import AddressError, AddressGuard
from ostinato.server.backends.forwarding import Backend, connect
from ostinato.server.node_agents import exchange
from ostinato.server.node_agents.exchange import AgentSocket
from ostinato.server.request import Answer, Request
from ostinato.server.resources.strategy import Json
from ostinato.world import Clock

_PATIENCE: Final = 10.0  # seconds to connect
AGENT_ADDRESSES: Final = (
    "InternalIP",
    "InternalDNS",
    "Hostname",
    "ExternalIP",
    "ExternalDNS",
)  # in order of preference


class AgentAddresses(NamedTuple):
    """Hosts and ports of a node's agent, in order of preference."""

    node: str
    hosts: Sequence[tuple[str, int]]


class RemoteNodeAgents:
    """Implements `endpoint.Remote`."""

    def __init__(self, clock: Clock, context: Callable[[], ssl.SSLContext], guard: AddressGuard) -> None:
        """`context`: creates the TLS context; called with the first connection."""
        self._clock = clock
        self._make = context
        self._guard = guard
        self._context: ssl.SSLContext | None = None

    def tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = self._make()
        return self._context

    async def send(self, node: Json, request: Request) -> Answer:
        where = AgentAddresses(node["metadata"]["name"], addresses_of(node))
        return await exchange.send(lambda: self._connect(where), request)

    async def _connect(self, where: AgentAddresses) -> AgentSocket:
        """Connect to the first address that answers; raise OSError with the reason of each if none does."""
        failures: list[str] = []
        for host, port in where.hosts:
            try:
                addresses = await self._guard.resolve(host, port, local=True)
                return await self._connect_to(Backend(addresses, port, host, self.tls(), where.node))
            except AddressError as error:
                failures.append(f"{host}:{port}: {error}")
            except OSError as error:
                failures.append(str(error))
        raise OSError("; ".join(failures) or "the node has no address")

    async def _connect_to(self, backend: Backend) -> AgentSocket:
        return AgentSocket(backend.host, await connect(backend, self._clock, _PATIENCE))


def addresses_of(node: Json) -> Sequence[tuple[str, int]]:
    """The hosts and ports in a Node's status; OSError if there are none."""
    status = node.get("status") or {}
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    addresses = {each.get("type"): each.get("address", "") for each in status.get("addresses") or ()}
    hosts = dict.fromkeys(addresses[kind] for kind in AGENT_ADDRESSES if addresses.get(kind))
    port = endpoint.get("Port", 0)
    if not hosts or not port:
        raise OSError("node status has no address or kubelet port")
    return [(host, port) for host in hosts]
