"""A node that joins a cluster: this machine, its agent, and the port on which the cluster's API server reaches it.

    node = JoinedNode(world, Config.load(), JoinSettings(name="here", state=directory))
    await node.start()
    ...
    await node.stop()

Containers go on when the agent stops; the next start with the same state finds them again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostinato.api.errors import APIError
from ostinato.cache.informers import InformerSettings
from ostinato.client.config.config import Config, Tls
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.manager import CacheOptions, ClientOptions, Manager, ReportingOptions
from ostinato.plane.network import services
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.node import fleet, pod_networking
from ostinato.plane.node.credentials import certificate_manager as certificates
from ostinato.plane.node.credentials.cluster_discovery import discover_cluster
from ostinato.plane.node.registration.machine_info import address
from ostinato.plane.node.runtimes import ProcessOptions, hiding
from ostinato.plane.node.server.server import PORT, NodeServer
from ostinato.server.state import StateDirectory, write_private
from ostinato.world import World

if TYPE_CHECKING:  # what it needs is an extra
    from ostinato.plane.node.runtimes.containerd import Containerd

_logger = logging.getLogger(__name__)


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """How a node comes to its own identity.

    - `server`, `token`, `hashes`: of a cluster that it joins by a bootstrap token. Without them, by its kubeconfig.
    - `timeout`: seconds for its first certificate to be signed; 0 asks for none. Defaults to half a minute.
    - `required`: without a certificate the node does not start. Otherwise it asks with what it was given.
    """

    server: str = ""
    token: str = ""
    hashes: tuple[str, ...] = ()
    timeout: float = 30.0
    required: bool = False


class JoinSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: of the node.
    - `state`: the directory in which it keeps what is its own.
    - `runtime`: what it runs containers with: "process", "containerd". Defaults to processes.
    - `host`, `port`: where its agent listens. Default to all addresses, and the port of kubelets.
    - `containerd`: the socket of that runtime.
    - `processes`: settings of the runtime of this name.
    - `joining`: how it comes to a certificate of its own.
    - `services`: whether those of the cluster answer on this machine. Defaults to yes: nobody else sees to it.
    """

    name: str
    state: Path
    runtime: str = "process"
    host: str = ""
    port: int = PORT
    containerd: Path = Path("/run/containerd/containerd.sock")
    services: bool = True
    processes: ProcessOptions = ProcessOptions()
    joining: Joining = Joining()

    def __post_init__(self) -> None:
        if self.runtime not in ("process", "containerd"):
            raise ValueError(f"a node that joins has the runtime process or containerd, not {self.runtime!r}")


class JoinedNode:
    """This machine as a node. `start` it once, then `stop` it."""

    def __init__(self, world: World, config: Config | None, settings: JoinSettings) -> None:
        """`config`: None for a node that joins by a bootstrap token."""
        self._world = world
        self._config = config
        self._settings = settings
        self._state: StateDirectory | None = None
        self._server: NodeServer | None = None
        self._manager: Manager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._containerd: Containerd | None = None

    @property
    def url(self) -> str:
        """Where its agent is reached."""
        assert self._server is not None, "it has been started"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self._server.port}"

    @property
    def _host(self) -> str:
        """Its address to others: that on which it listens, if that is one."""
        return address() if self._settings.host in ("", "0.0.0.0", "::") else self._settings.host  # noqa: S104

    @property
    def kubeconfig(self) -> Path:
        """Where it knows the cluster from."""
        return self._settings.state if self._config is None else Path(self._config.source)

    async def start(self) -> None:
        """When this returns, the agent listens, and the node is joining.

        What can be mended is told by StateError, `UnusableRuntime`, `DiscoveryError`, `CertificateError` or OSError.
        """
        settings = self._settings
        self._state = StateDirectory(settings.state)
        try:
            if settings.runtime == "containerd":
                self._containerd = await fleet.find_containerd(self._world, settings.containerd)
            own_certificate = settings.state / "certificate"
            own_certificate.mkdir(mode=0o700, exist_ok=True)
            config, is_own = await self._identified(own_certificate)
            own = InformerSettings(
                fields={"spec.nodeName": settings.name}
            )  # other nodes' Pods are no concern of this one
            manager = self._manager = Manager(
                config,
                caches=CacheOptions(settings={Pod: own}),
                client=ClientOptions(field_manager="kubelet"),
                reporting=ReportingOptions(core_events=True),
                world=self._world,
            )
            server = self._server = NodeServer(self._world, settings.name, manager.client.live)
            await server.start(settings.host, settings.port, own_certificate, _authority(config))
            if is_own:
                self._renew(manager, server, own_certificate)
            at = fleet.AgentAddress(self._host, server.port, config.server)
            proxy = NetnsAddresses(settings.state) if settings.services else None
            processes = settings.processes
            if settings.runtime == "process":
                processes = await self._processes(config, manager, proxy)
            server.endpoint = fleet.join(
                manager, settings.name, settings.state, at, self._containerd, hiding(processes, settings.state)
            )
            if proxy is not None:
                services.add_to(manager, settings.state, proxy)
        except BaseException:
            await self.stop()
            raise
        self._serving = asyncio.get_running_loop().create_task(manager.serve())

    async def _processes(self, config: Config, manager: Manager, proxy: NetnsAddresses | None) -> ProcessOptions:
        """Return the options of the process runtime, with the network that Pods get."""
        settings = self._settings
        nodes = []
        with suppress(APIError, TransportError):  # it may not exist yet, or the server may be down
            nodes = [await manager.client.live.get(Node, settings.name)]
        options = pod_networking.with_assigned(pod_networking.with_services(settings.processes, proxy), nodes)
        return pod_networking.for_joining(options, settings.name, config.server)

    async def _identified(self, directory: Path) -> tuple[Config, bool]:
        """The configuration with which the node asks, and whether that is in its own name."""
        settings, joining, given = self._settings, self._settings.joining, self._config
        kept = directory / "server.json"
        if given is None:
            if (
                certificates.CertificateFile(directory / "client.pem").is_usable(self._world.clock.now())
                and kept.exists()
            ):
                known = msgspec.json.decode(kept.read_bytes())
                given = Config(server=known["server"], source=str(kept), tls=Tls(ca_data=known["ca"].encode()))
            else:
                given = await discover_cluster(self._world, joining.server, joining.token, joining.hashes)
        if not joining.timeout:
            return given, False
        try:
            own = await certificates.bootstrap_config(self._world, settings.name, directory, given, joining.timeout)
        except (certificates.CertificateError, TransportError) as error:
            if joining.required:
                raise
            _logger.warning("node has no certificate of its own; it asks with what it was given error=%s", error)
            return given, False
        authority = _authority(given)
        if authority is not None:
            write_private(kept, msgspec.json.encode({"server": given.server, "ca": authority}))
        return own, True

    def _renew(self, manager: Manager, server: NodeServer, directory: Path) -> None:
        """Keep both certificates valid; the transport sees by itself that the client's file has changed."""
        name = self._settings.name
        client, serving = (
            certificates.CertificateFile(directory / "client.pem"),
            certificates.CertificateFile(directory / "serving.pem"),
        )
        manager.add(
            certificates.CertificateManager(name, certificates.CLIENT, client, lambda: None),
            certificates.CertificateManager(
                name, certificates.SERVING, serving, lambda: server.use_certificate(serving.path)
            ),
        )
        if serving.is_usable(self._world.clock.now()):
            server.use_certificate(serving.path)

    async def failed(self) -> None:
        """Wait until a part fails, and raise its error; return when it is stopped."""
        assert self._serving is not None, "it has been started"
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Containers go on."""
        if self._manager is not None and self._serving is not None:
            self._manager.stop()
            await asyncio.wait([self._serving])
        if self._server is not None:
            await self._server.stop()
        if self._containerd is not None:
            await self._containerd.close()
        if self._state is not None:
            self._state.release()
            self._state = None


def _authority(config: Config) -> str | None:
    """The certificates of the cluster's authority, which sign that of its API server as a client."""
    if config.tls.ca_data:
        return config.tls.ca_data.decode()
    return None if config.tls.ca_file is None else config.tls.ca_file.read_text()
