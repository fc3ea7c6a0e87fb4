"""A node that joins a cluster: the agent of this machine, its credentials and its HTTPS API.

    node = JoinedNode(world, Config.load(), JoinSettings(name="here", state=directory))
    await node.start()
    ...
    await node.stop()

Containers keep running when the agent stops; the next start with the same state recovers them.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.cache.informers import InformerSettings
from ostinato.client.config.config import Config, Tls
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import ControllerOptions
from ostinato.http.hosts import join_host_port
from ostinato.kinds.core_v1 import Node, Pod, Service
from ostinato.manager import CacheOptions, ClientOptions, Manager, ReportingOptions
from ostinato.plane.endpoints.pods import family_of
from ostinato.plane.network import services
from ostinato.plane.network.dns import service as dns_service
from ostinato.plane.network.dns.component import dns_server
from ostinato.plane.network.dns.settings import DEFAULT_DOMAIN, ClusterDns
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.node import fleet, pod_networking
from ostinato.plane.node.credentials import certificate_manager as certificates
from ostinato.plane.node.credentials.cluster_discovery import discover_cluster
from ostinato.plane.node.registration.machine_info import address
from ostinato.plane.node.registration.node_status import PORT
from ostinato.plane.node.registration.readiness import NodeReadiness
from ostinato.plane.node.runtimes import ProcessOptions, with_state
from ostinato.plane.node.server.server import NodeServer
from ostinato.server.access.authority import Authority
from ostinato.server.resources.core.services.addresses import RANGE, Network
from ostinato.server.state import StateDirectory, write_private
from ostinato.world import World

if TYPE_CHECKING:  # what it needs is an extra
    from ostinato.plane.node.runtimes.containerd import Containerd

_logger = logging.getLogger(__name__)

_SERVING: Final = "serving-certificate"
_NO_SERVING_CERTIFICATE: Final = "serving certificate not signed yet; logs, exec and port-forward are unavailable"
_SERVING_TIMEOUT: Final = 30.0  # seconds; other clusters may not approve serving certificates automatically


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """How a node obtains its client certificate.

    - `server`, `token`, `hashes`: URL, bootstrap token and CA hashes of the cluster. Default to the kubeconfig.
    - `timeout`: seconds for the first certificate to be signed; 0 requests none. Defaults to 30.
    - `required`: fail without a certificate. Defaults to using the kubeconfig's credentials.
    """

    server: str = ""
    token: str = ""
    hashes: tuple[str, ...] = ()
    timeout: float = 30.0
    required: bool = False


class JoinSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: name of the node.
    - `state`: directory of the node's state.
    - `runtime`: "process" or "containerd". Defaults to "process".
    - `host`, `port`: listening address of the HTTPS API. Default to all addresses and port 10250.
    - `containerd`: socket of containerd.
    - `processes`: options of the process runtime.
    - `joining`: how the node obtains its client certificate.
    - `services`: whether to run the service proxy on this machine. Defaults to true.
    - `dns_address`: of the cluster DNS. Defaults to that of the Service `kube-dns`, if there is one.
    - `dns_domain`: the domain of the cluster.
    - `service_ranges`: ranges of the cluster IPs. Default to that of `ostinato up`.
    """

    name: str
    state: Path
    runtime: str = "process"
    host: str = ""
    port: int = PORT
    containerd: Path = Path("/run/containerd/containerd.sock")
    services: bool = True
    dns_address: str = ""
    dns_domain: str = DEFAULT_DOMAIN
    service_ranges: tuple[Network, ...] = (RANGE,)
    processes: ProcessOptions = ProcessOptions()
    joining: Joining = Joining()

    def __post_init__(self) -> None:
        if self.runtime not in ("process", "containerd"):
            raise ValueError(f"runtime {self.runtime!r} is not supported by a joined node; use process or containerd")


class JoinedNode:
    """This machine as a node. Call `start` once, then `stop`."""

    def __init__(self, world: World, config: Config | None, settings: JoinSettings) -> None:
        """`config`: None to join with a bootstrap token."""
        self._world = world
        self._config = config
        self._settings = settings
        self._state: StateDirectory | None = None
        self._server: NodeServer | None = None
        self._manager: Manager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._containerd: Containerd | None = None
        self._readiness = NodeReadiness(world.clock)

    @property
    def url(self) -> str:
        """URL of the node's HTTPS API."""
        assert self._server is not None, "started"
        return f"https://{join_host_port(self._host, self._server.port)}"

    @property
    def _host(self) -> str:
        """The node's address: the listening address, unless that is a wildcard."""
        return address() if self._settings.host in ("", "0.0.0.0", "::") else self._settings.host  # noqa: S104

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig, or the state directory of a node that joined with a token."""
        return self._settings.state if self._config is None else Path(self._config.source)

    async def start(self) -> None:
        """Start the agent; on return its API listens, and the node is being registered.

        Raises StateError, `UnusableRuntime`, `DiscoveryError`, `CertificateError` or OSError if it cannot start.
        """
        settings = self._settings
        self._state = StateDirectory(settings.state)
        try:
            if settings.runtime == "containerd":
                self._containerd = await fleet.find_containerd(self._world, settings.containerd)
            own_certificate = settings.state / "certificate"
            own_certificate.mkdir(mode=0o700, exist_ok=True)
            config, has_certificate = await self._authenticate(own_certificate)
            own = InformerSettings(fields={"spec.nodeName": settings.name})
            itself = InformerSettings(fields={"metadata.name": settings.name})
            manager = self._manager = Manager(
                config,
                caches=CacheOptions(settings={Pod: own, Node: itself}),
                client=ClientOptions(field_manager="kubelet"),
                reporting=ReportingOptions(core_events=True, logger=logging.getLogger("ostinato.plane")),
                controllers=ControllerOptions(error_events=False),  # like the kubelet
                world=self._world,
            )
            server = self._server = NodeServer(self._world, settings.name, manager.client.live)
            self_signed = Authority(self._world, own_certificate)
            pair = self_signed.server("kubelet", [settings.name, "localhost", "127.0.0.1"])
            await server.start(settings.host, settings.port, pair, _authority(config))
            if has_certificate:
                self._add_certificate_managers(manager, server, own_certificate)
            proxy = NetnsAddresses(settings.state) if settings.services else None
            options = fleet.NodeOptions(
                address=self._host,
                ports={settings.name: server.port},
                api_server=config.server,
                client_of=lambda _: manager.client,
                readiness=self._readiness,
                is_dual_stack=len(settings.service_ranges) == 2,
            )
            service = await self._find_dns(manager)
            dns = self._cluster_dns(None if proxy is not None and not proxy.is_available() else service)
            make_runtime = await self._runtime_factory(config, manager, proxy, dns)
            endpoints = fleet.add_local_nodes(manager, [settings.name], settings.state, make_runtime, options)
            server.endpoint = endpoints[settings.name]
            if proxy is not None:
                is_own = dns is not None and service is not None and dns_service.is_answered_here(service)
                answering = dns_server(manager, dns) if dns and is_own else None
                services.add_to(manager, settings.state, proxy, answering, nodes=[settings.name])
        except BaseException:
            await self.stop()
            raise
        self._serving = asyncio.get_running_loop().create_task(manager.serve())

    async def _find_dns(self, manager: Manager) -> Service | None:
        """Return the Service of the cluster DNS; None if there is none, or the server is down."""
        with suppress(APIError, TransportError):
            return await manager.client.live.get(Service, dns_service.KEY, missing=None)
        return None

    def _cluster_dns(self, service: Service | None) -> ClusterDns | None:
        found = "" if service is None else service.spec.cluster_ip or ""
        address = self._settings.dns_address or (found if family_of(found) else "")
        return ClusterDns(address=address, domain=self._settings.dns_domain) if address else None

    async def _runtime_factory(
        self, config: Config, manager: Manager, proxy: NetnsAddresses | None, dns: ClusterDns | None
    ) -> fleet.MakeRuntime:
        if self._containerd is not None:
            return fleet.containerd_runtime(self._world, self._containerd, dns)
        options = msgspec.structs.replace(await self._process_options(config, manager, proxy), dns=dns)
        return fleet.process_runtime(self._world, with_state(options, self._settings.state))

    async def _process_options(self, config: Config, manager: Manager, proxy: NetnsAddresses | None) -> ProcessOptions:
        """Return the options of the process runtime, with the network that Pods get."""
        settings = self._settings
        nodes = []
        with suppress(APIError, TransportError):  # it may not exist yet, or the server may be down
            nodes = [await manager.client.live.get(Node, settings.name)]
        of_services = pod_networking.with_services(settings.processes, proxy, settings.service_ranges)
        options = pod_networking.with_assigned(of_services, nodes)
        return pod_networking.for_joining(options, settings.name, config.server)

    async def _authenticate(self, directory: Path) -> tuple[Config, bool]:
        """Return the configuration of the node, and whether it authenticates with its own certificate."""
        settings, joining, given = self._settings, self._settings.joining, self._config
        kept = directory / "server.json"
        if given is None:
            file = certificates.CertificateFile(directory / "client.pem")
            if file.is_usable(self._world.clock.now()) and kept.exists():
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
            _logger.warning("no client certificate for the node, using the given credentials error=%s", error)
            return given, False
        authority = _authority(given)
        if authority is not None:
            write_private(kept, msgspec.json.encode({"server": given.server, "ca": authority}))
        return own, True

    def _add_certificate_managers(self, manager: Manager, server: NodeServer, directory: Path) -> None:
        """Rotate both certificates. The client's transport reloads its file; the node waits for a serving one."""
        name = self._settings.name
        client = certificates.CertificateFile(directory / "client.pem")
        serving = certificates.CertificateFile(directory / "serving.pem")

        def use_serving_certificate() -> None:
            server.use_certificate(serving.path)
            self._readiness.mark_ready(_SERVING)

        manager.add(
            certificates.CertificateManager(name, certificates.CLIENT, client, lambda: None),
            certificates.CertificateManager(name, certificates.SERVING, serving, use_serving_certificate),
        )
        if serving.is_usable(self._world.clock.now()):
            server.use_certificate(serving.path)
        else:
            self._readiness.wait_for(_SERVING, _NO_SERVING_CERTIFICATE, _SERVING_TIMEOUT)

    async def failed(self) -> None:
        """Wait until a component fails and raise its error; return after `stop`."""
        assert self._serving is not None, "started"
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Stop the agent; containers keep running."""
        self._readiness.close()
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
    """Return the CA certificates of the cluster, which verify client certificates of the API server."""
    if config.tls.ca_data:
        return config.tls.ca_data.decode()
    return None if config.tls.ca_file is None else config.tls.ca_file.read_text()
