"""Networks of Pods: a network namespace and an address for each, or the network of the machine.

- A Pod has a namespace of its own if containers are isolated and the kernel lets the node create bridges and veth pairs
  (`plane.network.pod_network`). `shared_reason` says why Pods of this node do not.
- Pods with `hostNetwork`, and containers that were started before the node had a Pod network, use the machine's.
- A Pod keeps its addresses: they are written to the file `address` of its directory before its first container starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.network.dns.settings import machine_resolv_conf
from ostinato.plane.network.host_ports import HostPorts
from ostinato.plane.network.namespaces import within
from ostinato.plane.network.pod_cidrs import Address
from ostinato.plane.network.pod_network import (
    PodNamespace,
    PodNetwork,
    PodNetworkUnavailable,
    is_machine,
    parse_addresses,
)
from ostinato.plane.node.private_files import make_directory, write_file
from ostinato.plane.node.registration.node_status import POD_NETWORK_READY
from ostinato.plane.node.runtimes import ProcessOptions, SandboxError
from ostinato.plane.node.runtimes.pod_names import hosts_file, resolv_conf
from ostinato.plane.node.runtimes.process.container import State, has_keeper, read_state
from ostinato.plane.node.runtimes.process.security import network_sysctls_of
from ostinato.streams import ports
from ostinato.world import World

_logger = logging.getLogger(__name__)

_ADDRESS_FILE: Final = "address"


class PodNetworks:
    """Of one node."""

    def __init__(
        self, world: World, directory: Path, machine: Sequence[str], options: ProcessOptions, reason: str
    ) -> None:
        """`machine`: the machine's addresses. `reason`: why containers are not isolated; empty if they are."""
        self._world = world
        self._pods = directory / "pods"
        self._machine = machine
        self._dns = options.dns
        self._lock = asyncio.Lock()  # serializes changes of the network
        self._on_machine: set[str] = set()  # uids of Pods whose containers run in the machine's network
        self._host_ports = HostPorts(world, options.gate)
        self._network: PodNetwork | None = None
        self.shared_reason = reason or options.network.disabled
        if not self.shared_reason:
            try:
                self._network = PodNetwork(directory, options.network)
            except PodNetworkUnavailable as error:
                self.shared_reason = str(error)
                _logger.warning("pods share the network of this machine reason=%s", error)
        if self._network is not None:
            for file in self._pods.glob(f"*/{_ADDRESS_FILE}"):
                if addresses := _addresses_in(file):
                    self._network.reserve(file.parent.name, addresses)
            if options.on_network is not None:
                options.on_network(self._network)

    @property
    def condition(self) -> tuple[str, str] | None:
        """Reason and message of the Node's condition NetworkUnavailable; None without root."""
        if self._network is not None:
            cidrs = " and of ".join(map(str, self._network.cidrs))
            return POD_NETWORK_READY, f"each Pod has a network namespace and an address of {cidrs}"
        if os.geteuid() != 0:
            return None
        return "PodsShareHostNetwork", f"Pods use the network of the machine: {self.shared_reason}"

    def has_own(self, pod: Pod) -> bool:
        """Whether a Pod has a network of its own."""
        shares = bool(pod.spec.host_network) or pod.metadata.uid in self._on_machine
        return self._network is not None and not shares

    async def addresses(self, pod: Pod) -> Sequence[str]:
        """The Pod's addresses; its namespace is created or adopted if need be. `SandboxError` if that fails."""
        if not self.has_own(pod):
            return self._machine
        if (found := self._find(pod)) is not None and self._host_ports.is_open(pod):
            return found.texts
        # A cancelled start must not leave a namespace behind that `remove` has not seen.
        creating = asyncio.get_running_loop().create_task(self._ensure(pod))
        creating.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(creating)

    async def _ensure(self, pod: Pod) -> Sequence[str]:
        async with self._lock:
            found = self._find(pod)
            if found is None:
                try:
                    found = await self._world.executor.run(self._adopt_or_create, pod)
                except OSError as error:
                    raise SandboxError(f"failed to create the Pod's network: {_text(error)}") from None
            if found is None:
                self._on_machine.add(pod.metadata.uid)
                return self._machine
            try:
                await self._host_ports.open(pod, found.texts)
            except OSError as error:
                raise SandboxError(_text(error)) from None
            return found.texts

    async def remove(self, uid: str) -> None:
        """Let go of the network of a Pod whose containers have ended."""
        async with self._lock:
            await self._host_ports.close(uid)
            self._on_machine.discard(uid)
            if self._network is not None:
                self._network.remove(uid)
        (self._pods / uid / _ADDRESS_FILE).unlink(missing_ok=True)

    # For containers

    def plan(self, pod: Pod) -> dict[str, Any] | None:
        """The Pod's namespace as the shim opens it; None for the machine's network."""
        found = self._find(pod)
        if found is None:
            return None
        return {"path": f"/proc/{os.getpid()}/fd/{found.descriptor}", "identity": found.identity}

    def files(self, pod: Pod) -> dict[str, str]:
        """The contents of the Pod's /etc/hosts and /etc/resolv.conf."""
        found, spec = self._find(pod), pod.spec
        if found is not None:
            return {
                "/etc/hosts": hosts_file(pod, found.texts, self._dns.domain if self._dns is not None else ""),
                "/etc/resolv.conf": resolv_conf(pod, machine_resolv_conf(), self._dns),
            }
        aliases = ["\t".join((each.ip, *each.hostnames)) for each in spec.host_aliases]
        if aliases:
            aliases = ["", "# Entries added by HostAliases.", *aliases]
        names = _read("/etc/resolv.conf")
        keeps = spec.dns_policy == "Default" or (spec.host_network and spec.dns_policy in (None, "ClusterFirst"))
        changed = spec.dns_config is not None or spec.dns_policy == "None" or (self._dns is not None and not keeps)
        return {
            "/etc/hosts": _read("/etc/hosts") + "".join(f"{each}\n" for each in aliases),
            "/etc/resolv.conf": resolv_conf(pod, names, self._dns) if changed else names,
        }

    async def connect(self, pod: Pod, port: int) -> ports.Link:
        """Connect to a port on the Pod's loopback, as port forwarding does. OSError says why that fails."""
        found = self._find(pod)
        error: OSError | None = None
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                connection = await self._connected(found, family, host, port)
                return ports.TcpLink(*await asyncio.open_connection(sock=connection))
            except OSError as failed:
                error = error or failed
        assert error is not None
        if isinstance(error, ConnectionRefusedError):
            raise ConnectionRefusedError(f"dial tcp4 127.0.0.1:{port}: connect: connection refused")
        raise error

    async def _connected(self, found: PodNamespace | None, family: int, host: str, port: int) -> socket.socket:
        if found is None:
            connection = socket.socket(family, socket.SOCK_STREAM)
        else:
            with within(found.descriptor):
                connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(0)
            await asyncio.get_running_loop().sock_connect(connection, (host, port))
        except BaseException:
            connection.close()
            raise
        return connection

    # Namespaces

    def _find(self, pod: Pod) -> PodNamespace | None:
        return self._network.find(pod.metadata.uid) if self._network is not None and self.has_own(pod) else None

    def _adopt_or_create(self, pod: Pod) -> PodNamespace | None:
        """None if its containers run in the machine's network."""
        assert self._network is not None
        uid = pod.metadata.uid
        file = self._pods / uid / _ADDRESS_FILE
        kept = _addresses_in(file)
        running = self._namespace_of_containers(uid)
        if running is not None:
            if not kept or is_machine(running):
                os.close(running)
                return None
            return self._network.adopt(uid, kept, running)
        created = self._network.create(uid, network_sysctls_of(pod))
        try:
            make_directory(file.parent)
            write_file(file, " ".join(created.texts).encode())
        except BaseException:
            self._network.remove(uid)
            raise
        return created

    def _namespace_of_containers(self, uid: str) -> int | None:
        """A descriptor of the namespace that the Pod's running containers are in; None if none runs."""
        for directory in sorted((self._pods / uid / "containers").glob("*/*")):
            state = read_state(directory) if directory.name.isdigit() and has_keeper(directory) else None
            if state is not None and (found := _namespace_of(state)) is not None:
                return found
        return None


def _namespace_of(state: State) -> int | None:
    """That of a container's first process; None if that has ended."""
    with suppress(OSError):
        found = os.open(f"/proc/{state.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError, IndexError, ValueError):
            fields = Path(f"/proc/{state.pid}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[19]) == state.start_ticks:  # else the number is another process's by now
                return found
        os.close(found)
    return None


def _addresses_in(file: Path) -> tuple[Address, ...]:
    with suppress(OSError, ValueError):
        return parse_addresses(file.read_text())
    return ()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _text(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
