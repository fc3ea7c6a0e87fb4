"""Standalone API server: store, certificates and HTTPS, from start to stop.

Missing files are created in its state directory. When `start` returns, the server accepts requests and the admin
kubeconfig exists.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ostinato.http.hosts import join_host_port
from ostinato.server.access.authentication.certificates.cluster_authentication_trust import publish
from ostinato.server.access.authentication.settings import (
    AuthenticationSettings,
    AuthenticationSettingsError,
    RequestHeaderSettings,
)
from ostinato.server.access.authority import Authority, Pair
from ostinato.server.access.authorization.modes import AuthorizationSettings
from ostinato.server.access.kubeconfig import write_kubeconfig
from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.aggregation.front_proxy import CLIENT_NAME, FrontProxy
from ostinato.server.audit.settings import AuditSettings
from ostinato.server.backends.addresses import AddressGuard
from ostinato.server.controllers.bootstrap import KUBELET_CLIENT
from ostinato.server.core import Server
from ostinato.server.faults.endpoint import PATH, answer
from ostinato.server.faults.rules import Rule, RuleDirector
from ostinato.server.faults.stage import FaultyServer
from ostinato.server.flow.control import FlowSettings
from ostinato.server.http import HttpServer
from ostinato.server.http.client_certificates import RequestingContext, certificates_of
from ostinato.server.http.serving_certificates import (
    LOOPBACK_NAME,
    RELOAD_SECONDS,
    ServingCertificates,
    TlsSettings,
)
from ostinato.server.node_agents.endpoint import Remote
from ostinato.server.node_agents.remote import RemoteNodeAgents
from ostinato.server.resources.core.services.addresses import RANGE, Network
from ostinato.server.state import StateDirectory, writing_files
from ostinato.server.store.encryption.encrypted_log import EncryptedLog
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.etcd.options import EtcdOptions
from ostinato.server.store.index import Index
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Log, StoreFailed, UnusableStore
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.etcd import EtcdSettings
    from ostinato.server.access.cluster_identity import ClusterIdentity

_logger = logging.getLogger(__name__)

RENEWAL_SECONDS = 600  # interval of the certificate check
ADMINISTRATOR = "kubernetes-admin"
_HOSTS = [
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
]
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - not bound here: local clients connect to the loopback address


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the operator."""

    state: Path
    host: str = "127.0.0.1"
    port: int = 6443  # 0: any free port
    advertise_address: str = ""  # in the endpoints of the Service `kubernetes`. Defaults to `host`
    service_ranges: tuple[Network, ...] = (RANGE,)  # of the cluster IPs in a new store, by IP family
    tls: TlsSettings = TlsSettings()
    is_worker: bool = False  # one of several processes that share the port and the state directory
    store: str = ""  # "sqlite:PATH", "memory"; "": a file in the state directory
    etcd: EtcdSettings | None = None  # instead of `store`
    etcd_options: EtcdOptions = EtcdOptions()
    durable: bool = True  # sync writes to disk; otherwise a crash of the machine may lose them or damage the store
    accept_data_loss: bool = False  # start with the readable part of a damaged store
    encryption_config: Path | None = None  # EncryptionConfiguration; None: nothing is encrypted
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    admission: AdmissionSettings = AdmissionSettings()
    verifies_nodes: bool = True  # require serving certificates of node agents to be signed by `kubelet_authority`
    kubelet_authority: Path | None = None  # None: the cluster's CA
    audit: AuditSettings = AuditSettings()
    flow: FlowSettings = FlowSettings()
    faults: Sequence[Rule] | None = None  # faults that clients receive on purpose; None: none, and no /faults
    flags: Mapping[str, str] = MappingProxyType({})  # the command line, for /flagz
    proxy_client: Pair | None = None  # authenticates this server to extension servers. Defaults to one of its own


class ProxyIdentity(msgspec.Struct, frozen=True):
    """How this server authenticates to extension servers, and which headers it names users in.

    - `headers`: what extension servers must accept; None if the operator has not said it.
    - `authority`: signs the certificate; None if it is the operator's.
    """

    proxy: FrontProxy = FrontProxy()
    headers: RequestHeaderSettings | None = None
    authority: Authority | None = None

    @classmethod
    def of(cls, world: World, settings: Settings) -> ProxyIdentity:
        given = settings.authentication.front_proxy
        if given is not None or settings.proxy_client is not None:
            return cls(FrontProxy(settings.proxy_client), given)
        # An authority of its own: certificates of the cluster's are given to users.
        authority = Authority(world, settings.state, "front-proxy-ca", durable=settings.durable)
        headers = RequestHeaderSettings(
            authority=authority.files.certificate,
            allowed_names=(CLIENT_NAME,),
            username_headers=("X-Remote-User",),
            uid_headers=("X-Remote-Uid",),
            group_headers=("X-Remote-Group",),
            extra_prefixes=("X-Remote-Extra-",),
        )
        return cls(FrontProxy(authority.client(CLIENT_NAME, CLIENT_NAME, [])), headers, authority)

    def renew(self) -> None:
        """Renew the certificate if it expires soon."""
        if self.authority is not None:
            self.authority.renew()
            self.authority.client(CLIENT_NAME, CLIENT_NAME, [])


class Standalone:
    """A server on this machine. `start` it once, then `stop` it."""

    def __init__(self, world: World, settings: Settings, state: StateDirectory | None = None) -> None:
        """`state`: the locked state directory, released by `stop`. Defaults to locking that of the settings."""
        self._world = world
        self._settings = settings
        self._state = state
        self._http: HttpServer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._certificates: ServingCertificates | None = None
        self._serving = b""  # the certificate that new connections get
        self._proxies = ProxyIdentity()
        self.core: Server | None = None
        self.kubeconfig = settings.state / "admin.kubeconfig"
        self.url = ""

    async def start(self) -> None:
        """Open the store and listen.

        Raises StateError, UnusableStore, AuthenticationSettingsError or OSError if the operator has to act.
        """
        settings = self._settings
        if self._state is None:
            self._state = StateDirectory(settings.state)
        try:
            with writing_files(settings.state):
                authority = Authority(self._world, settings.state, durable=settings.durable)
                context = _context(authority, self._hosts, settings.authentication)
                self._serving = (settings.state / "apiserver.crt").read_bytes()
                self._proxies = ProxyIdentity.of(self._world, settings)
            self._use_certificates(authority, context)
            self.core = await self._server()
            self.core.nodes.remote = _remote_nodes(self._world, authority, self.core.guard, settings)
            self._http = HttpServer(
                _with_faults(self.core, settings.faults),
                context,
                self.core.turns,
                audited=self.core.auditor is not None,
            )
            await self._http.bind(settings.host, settings.port, reuse_port=settings.is_worker)
            identity = await self._checked_identity(authority)
            host = "127.0.0.1" if settings.host in _ANY else settings.host
            self.url = f"https://{join_host_port(host, self._http.port)}"
            await self.core.start(
                _address(settings.advertise_address or host),
                self._http.port,
                tracks_tokens=True,
                asks_kubelets=True,
                service_ranges=settings.service_ranges,
                shares_address=settings.is_worker,
            )
            if identity is not None:
                await identity.record(self.core.handle)
            await publish(
                self.core.handle,
                settings.authentication,
                authority.certificate,
                self._proxies.headers,
                adds=self.core.index.is_shared,
            )
            with writing_files(settings.state):
                self._write_kubeconfig(authority)
            await self._http.listen()
            self._start_tasks(authority, context)
        except StoreFailed as error:
            full = self.core is not None and self.core.index.is_full
            await self.stop()
            if settings.etcd is not None:
                raise UnusableStore(f"cannot write to etcd at {', '.join(settings.etcd.endpoints)}: {error}") from error
            if full:
                from ostinato.server.store.sqlite.files import no_space  # noqa: PLC0415 - only for a full disk

                raise no_space(self._store_path) from error
            raise UnusableStore(f"cannot write the store {self._store_path}: {error}") from error
        except BaseException:
            await self.stop()
            raise

    async def _checked_identity(self, authority: Authority) -> ClusterIdentity | None:
        """The keys that all servers must have, checked against those of the others; None for the only server."""
        assert self.core is not None
        if not self.core.index.is_shared:
            return None
        from ostinato.server.access.cluster_identity import ClusterIdentity  # noqa: PLC0415 - see above

        keys = self.core.authentication.account_tokens.keys
        identity = ClusterIdentity.of(authority, self._settings.authentication, keys)
        await identity.check(self.core.handle)
        return identity

    async def _server(self) -> Server:
        settings = self._settings
        store = self._log() if settings.etcd is None else await self._etcd(settings.etcd)
        try:
            return Server(
                self._world,
                store,
                admission=settings.admission,
                authentication=_authentication(settings),
                audit=settings.audit,
                flow=settings.flow,
                authorization=settings.authorization,
                front_proxy=self._proxies.proxy,
                event_ttl=settings.etcd_options.event_ttl,
                flags=settings.flags,
            )
        except BaseException:
            if isinstance(store, Index):
                await store.close()
            else:
                store.close()
            raise

    @property
    def _hosts(self) -> list[str]:
        host = self._settings.host
        known = [*_HOSTS, *(str(each[1]) for each in self._settings.service_ranges)]
        given = [each for each in (host, self._settings.advertise_address) if each and each not in (*known, *_ANY)]
        hosts = [*known, *dict.fromkeys(given)]
        return hosts if self._settings.tls.key_pair is None else [*hosts, LOOPBACK_NAME]

    def _use_certificates(self, authority: Authority, context: RequestingContext) -> None:
        """Serve the operator's certificates, if there are any."""
        settings = self._settings
        if not settings.tls.enabled:
            return

        def make_context() -> RequestingContext:
            return _prepared(_client_context(authority, settings.authentication, context))

        self._certificates = ServingCertificates(settings.tls, make_context, self._world.clock)
        self._certificates.install(context)

    def _start_tasks(self, authority: Authority, context: RequestingContext) -> None:
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._renew(authority, context), name="certificate renewal"))
        if self._certificates is not None:
            reload = self._reload(self._certificates)
            self._tasks.append(loop.create_task(reload, name="serving certificate reload"))

    def _write_kubeconfig(self, authority: Authority) -> None:
        admin = authority.client("admin", ADMINISTRATOR, ["system:masters"])
        settings = self._settings
        name = "" if settings.tls.key_pair is None else LOOPBACK_NAME
        write_kubeconfig(
            self.kubeconfig,
            self.url,
            authority.certificate,
            ADMINISTRATOR,
            admin,
            server_name=name,
            durable=settings.durable,
        )

    async def _reload(self, certificates: ServingCertificates) -> None:
        while True:
            await self._world.clock.sleep(RELOAD_SECONDS)
            try:
                await self._world.executor.run(certificates.reload)
            except Exception:
                _logger.exception("serving certificate reload failed, retrying retry_seconds=%d", RELOAD_SECONDS)

    async def _renew(self, authority: Authority, context: ssl.SSLContext) -> None:
        """Renew certificates while the server runs: they expire, and the clock may be changed."""
        while True:
            await self._world.clock.sleep(RENEWAL_SECONDS)
            try:
                with writing_files(self._settings.state):
                    self.renew(authority, context)
            except Exception:
                _logger.exception("certificate renewal failed, retrying retry_seconds=%d", RENEWAL_SECONDS)

    def renew(self, authority: Authority, context: ssl.SSLContext) -> None:
        """Renew the certificates that are invalid or expire soon."""
        if authority.renew():
            context.load_verify_locations(authority.files.certificate)
            if self._certificates is not None:
                self._certificates.replace_contexts()
        self._proxies.renew()
        pair = authority.server("apiserver", self._hosts)
        certificate = pair.certificate.read_bytes()
        if certificate != self._serving:  # renewed here, or by another worker
            self._serving = certificate
            context.load_cert_chain(pair.certificate, pair.key)  # used by new connections
            self._write_kubeconfig(authority)

    @property
    def _store_path(self) -> Path:
        store = self._settings.store
        return Path(store.removeprefix("sqlite:")) if store else self._settings.state / "store.db"

    def _log(self) -> Log:
        if self._settings.store == "memory":
            return MemoryLog()
        from ostinato.server.store.log_sqlite import SQLiteLog  # noqa: PLC0415 - loads only where it is needed

        settings, encryption = self._settings, self._encryption()
        log = SQLiteLog(
            self._store_path, self._world, durable=settings.durable, accept_data_loss=settings.accept_data_loss
        )
        return EncryptedLog(log, encryption)

    async def _etcd(self, etcd: EtcdSettings) -> Index:
        from ostinato.etcd import EtcdClient  # noqa: PLC0415 - loads only where it is needed
        from ostinato.server.store.etcd.index import EtcdIndex  # noqa: PLC0415 - see above

        encryption = self._encryption()
        client = EtcdClient(etcd, self._world)
        try:
            return await EtcdIndex.open(client, etcd.prefix, self._world, self._settings.etcd_options, encryption)
        except BaseException:
            await client.close()
            raise

    def _encryption(self) -> Encryption:
        path = self._settings.encryption_config
        if path is None:
            return Encryption()
        from ostinato.server.store.encryption.configuration import EncryptionError, load  # noqa: PLC0415 - loads YAML

        try:
            return load(path, self._world.ids)
        except EncryptionError as error:
            raise UnusableStore(f"--encryption-provider-config {error}") from None

    async def failed(self) -> None:
        """Wait until the store is unusable and raise its error."""
        assert self.core is not None, "started"
        await self.core.index.failed()

    async def stop(self) -> None:
        """Close the watches, finish pending writes, and release all resources."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        if self._http is not None:
            await self._http.stop()
            self._http = None
        if self.core is not None:
            await self.core.close()
            self.core = None
        if self._state is not None:
            self._state.release()
            self._state = None


def _authentication(settings: Settings) -> AuthenticationSettings:
    """The settings, with the path of the service account key in the state directory."""
    given = settings.authentication
    (settings.state / "accounts.key").unlink(missing_ok=True)  # of HS256 tokens, which are no longer accepted
    accounts = msgspec.structs.replace(given.accounts, generated_key=settings.state / "sa.key")
    return msgspec.structs.replace(given, accounts=accounts)


def _address(host: str) -> str:
    """The host as an IP address, as endpoints require."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1"


def _remote_nodes(world: World, authority: Authority, guard: AddressGuard, settings: Settings) -> Remote:
    """The client of node agents on other machines.

    Its certificate is only valid for the kubelet API (`KUBELET_CLIENT`): the address in a node's status may lead
    anywhere.
    """

    def context() -> ssl.SSLContext:
        pair = authority.client("apiserver-kubelet-client", KUBELET_CLIENT, [])
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False  # nodes are identified by name, not by address: see `forwarding.check_node`
        if settings.verifies_nodes:
            made.load_verify_locations(settings.kubelet_authority or authority.files.certificate)
        else:
            made.verify_mode = ssl.CERT_NONE
        made.load_cert_chain(pair.certificate, pair.key)
        return made

    return RemoteNodeAgents(world.clock, context, guard)


def _client_context(
    authority: Authority, settings: AuthenticationSettings, shared: RequestingContext | None = None
) -> RequestingContext:
    """The accepted client CAs; AuthenticationSettingsError names the file that cannot be used."""
    own, proxy = authority.files.certificate, settings.front_proxy
    try:
        clients = [own] if settings.client_authority is None else [own, settings.client_authority]
        if proxy is not None and not proxy.allowed_names:
            for file in clients:
                if certificates_of(file) & certificates_of(proxy.authority):
                    raise AuthenticationSettingsError(
                        f"--requestheader-client-ca-file {proxy.authority} and {file} contain overlapping "
                        "certificates; --requestheader-allowed-names must be specified to ensure regular client "
                        "certificates cannot set authenticating proxy headers for arbitrary users"
                    )
        return RequestingContext(*clients, front_proxy=None if proxy is None else proxy.authority, shared=shared)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        named = [settings.client_authority, None if proxy is None else proxy.authority]
        files = " or ".join(str(file) for file in named if file is not None)
        raise AuthenticationSettingsError(f"cannot load the certificate authority {files}: {error}") from error


def _context(authority: Authority, hosts: list[str], settings: AuthenticationSettings) -> RequestingContext:
    """The TLS context. Client certificates are optional; one of an unknown CA is answered with 401."""
    pair = authority.server("apiserver", hosts)
    context = _prepared(_client_context(authority, settings))
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def _prepared(context: RequestingContext) -> RequestingContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE  # all ciphers are secure; the client knows its fastest one
    # A single session ticket: Ostinato's clients resume a session on all their connections, at half the cost of a
    # full handshake. Other clients keep connections instead; a second ticket takes a sixth of the handshake time.
    context.num_tickets = 1
    return context


def _with_faults(core: Server, rules: Sequence[Rule] | None) -> Server | FaultyServer:
    """Return the server with its fault rules, and the endpoint that changes them."""
    if rules is None:
        return core
    _logger.warning("this server deals faults to its clients on purpose rules=%d", len(rules))
    director = RuleDirector(core.world, rules)
    return FaultyServer(lambda: core, director, {PATH: partial(answer, director)})
