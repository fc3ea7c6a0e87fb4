"""A standalone API server: store, certificates, HTTPS, from start to stop.

What it needs it makes in its state directory; when `start` returns, it answers, and the kubeconfig is there.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
from pathlib import Path

import msgspec

from ostinato.server.access.authentication.certificates.cluster_authentication_trust import publish
from ostinato.server.access.authentication.settings import AuthenticationSettings, AuthenticationSettingsError
from ostinato.server.access.authority import Authority
from ostinato.server.access.authorization.modes import AuthorizationSettings
from ostinato.server.access.kubeconfig import write_kubeconfig
from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.audit.settings import AuditSettings
from ostinato.server.backends.addresses import AddressGuard
from ostinato.server.controllers.bootstrap import KUBELET_CLIENT
from ostinato.server.core import Server
from ostinato.server.flow.control import FlowSettings
from ostinato.server.http import HttpServer
from ostinato.server.http.client_certificates import RequestingContext, certificates_of
from ostinato.server.node_agents.endpoint import Remote
from ostinato.server.node_agents.remote import RemoteNodes
from ostinato.server.state import StateDirectory
from ostinato.server.store.index import Log, StoreFailed, UnusableStore
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

_logger = logging.getLogger(__name__)

RENEWAL_SECONDS = 600  # between two looks at the certificates
ADMINISTRATOR = "kubernetes-admin"
_HOSTS = [
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",
]
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - not bound here: clients on this machine reach them at the loopback


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides."""

    state: Path
    host: str = "127.0.0.1"
    port: int = 6443  # 0: any that is free
    store: str = ""  # "sqlite:PATH", "memory"; "": a file in the state directory
    accept_data_loss: bool = False  # start with what can be read of a damaged store
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    admission: AdmissionSettings = AdmissionSettings()
    verifies_nodes: bool = True  # that agents show a serving certificate of their authority
    kubelet_authority: Path | None = None  # which signs these; None: that of the cluster
    audit: AuditSettings = AuditSettings()
    flow: FlowSettings = FlowSettings()


class Standalone:
    """A server on this machine. `start` it once, then `stop` it."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._settings = settings
        self._state: StateDirectory | None = None
        self._http: HttpServer | None = None
        self._renewal: asyncio.Task[None] | None = None
        self.core: Server | None = None
        self.kubeconfig = settings.state / "admin.kubeconfig"
        self.url = ""

    async def start(self) -> None:
        """Open the store and listen. What the operator can mend is told by StateError, UnusableStore,
        AuthenticationSettingsError or OSError.
        """
        settings = self._settings
        self._state = StateDirectory(settings.state)
        try:
            authority = Authority(self._world, settings.state)
            context = _context(authority, self._hosts, settings.authentication)
            self.core = self._server()
            self.core.nodes.remote = _remote_nodes(self._world, authority, self.core.guard, settings)
            self._http = HttpServer(self.core, context, self.core.turns, audited=self.core.auditor is not None)
            await self._http.bind(settings.host, settings.port)
            host = "127.0.0.1" if settings.host in _ANY else settings.host
            self.url = f"https://{f'[{host}]' if ':' in host else host}:{self._http.port}"
            await self.core.start(_address(host), self._http.port, tracks_tokens=True, asks_kubelets=True)
            await publish(self.core.handle, settings.authentication, authority.certificate)
            self._write_kubeconfig(authority)
            await self._http.listen()
            self._renewal = asyncio.get_running_loop().create_task(
                self._renew(authority, context), name="certificate renewal"
            )
        except StoreFailed as error:
            full = self.core is not None and self.core.index.is_full
            await self.stop()
            if full:
                from ostinato.server.store.sqlite.files import no_space  # noqa: PLC0415 - the exception

                raise no_space(self._store_path) from error
            raise UnusableStore(f"cannot write the store {self._store_path}: {error}") from error
        except BaseException:
            await self.stop()
            raise

    def _server(self) -> Server:
        settings, log = self._settings, self._log()
        try:
            return Server(
                self._world,
                log,
                admission=settings.admission,
                authentication=_authentication(settings),
                audit=settings.audit,
                flow=settings.flow,
                authorization=settings.authorization,
            )
        except BaseException:
            log.close()
            raise

    @property
    def _hosts(self) -> list[str]:
        host = self._settings.host
        return [*_HOSTS] if host in (*_HOSTS, *_ANY) else [*_HOSTS, host]

    def _write_kubeconfig(self, authority: Authority) -> None:
        admin = authority.client("admin", ADMINISTRATOR, ["system:masters"])
        write_kubeconfig(self.kubeconfig, self.url, authority.certificate, ADMINISTRATOR, admin)

    async def _renew(self, authority: Authority, context: ssl.SSLContext) -> None:
        """Keep the certificates valid while the server runs: they come near their end, and clocks are set."""
        while True:
            await self._world.clock.sleep(RENEWAL_SECONDS)
            try:
                self.renew(authority, context)
            except Exception:
                _logger.exception("certificate renewal failed, retrying retry_seconds=%d", RENEWAL_SECONDS)

    def renew(self, authority: Authority, context: ssl.SSLContext) -> None:
        """Make those certificates anew that are not valid now, or not for long."""
        if authority.renew():
            context.load_verify_locations(authority.files.certificate)
        before = authority.files.certificate.with_name("apiserver.crt").read_bytes()
        pair = authority.server("apiserver", self._hosts)
        if pair.certificate.read_bytes() != before:
            context.load_cert_chain(pair.certificate, pair.key)  # for connections that begin from now on
            self._write_kubeconfig(authority)

    @property
    def _store_path(self) -> Path:
        store = self._settings.store
        return Path(store.removeprefix("sqlite:")) if store else self._settings.state / "store.db"

    def _log(self) -> Log:
        if self._settings.store == "memory":
            return MemoryLog()
        from ostinato.server.store.log_sqlite import SQLiteLog  # noqa: PLC0415 - loads only where it is needed

        return SQLiteLog(self._store_path, self._world, accept_data_loss=self._settings.accept_data_loss)

    async def failed(self) -> None:
        """Never returns: a server that runs has no parts that could fail."""
        await asyncio.get_running_loop().create_future()

    async def stop(self) -> None:
        """End the watches, finish the writes that are under way, let go of everything."""
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
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
    """The settings, with a place in the state directory for the key of service account tokens."""
    given = settings.authentication
    (settings.state / "accounts.key").unlink(missing_ok=True)  # of HS256 tokens, which are no longer accepted
    accounts = msgspec.structs.replace(given.accounts, kept_key=settings.state / "sa.key")
    return msgspec.structs.replace(given, accounts=accounts)


def _address(host: str) -> str:
    """The host as endpoints name it: they know addresses alone."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1"


def _remote_nodes(world: World, authority: Authority, guard: AddressGuard, settings: Settings) -> Remote:
    """The way to agents on other machines.

    The server shows them a certificate that is worth nothing but their own API (`KUBELET_CLIENT`): an address in a
    node's status may lead anywhere.
    """

    def context() -> ssl.SSLContext:
        pair = authority.client("apiserver-kubelet-client", KUBELET_CLIENT, [])
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False  # a node is known by its name, wherever it listens: see `forwarding.check_node`
        if settings.verifies_nodes:
            made.load_verify_locations(settings.kubelet_authority or authority.files.certificate)
        else:
            made.verify_mode = ssl.CERT_NONE
        made.load_cert_chain(pair.certificate, pair.key)
        return made

    return RemoteNodes(world.clock, context, guard)


def _requesting(authority: Authority, settings: AuthenticationSettings) -> RequestingContext:
    """Whose client certificates are accepted; AuthenticationSettingsError names the file that cannot be used."""
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
        return RequestingContext(*clients, front_proxy=None if proxy is None else proxy.authority)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        named = [settings.client_authority, None if proxy is None else proxy.authority]
        files = " or ".join(str(file) for file in named if file is not None)
        raise AuthenticationSettingsError(f"cannot use the authority {files}: {error}") from error


def _context(authority: Authority, hosts: list[str], settings: AuthenticationSettings) -> ssl.SSLContext:
    """TLS: clients may show a certificate of the authority; requests with any other get a 401."""
    pair = authority.server("apiserver", hosts)
    context = _requesting(authority, settings)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(pair.certificate, pair.key)
    context.set_alpn_protocols(["http/1.1"])
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE  # all are good; the client knows what it is quick at
    # One ticket, with which our clients go on with a session on all their connections, at half the price of another
    # handshake. Others keep connections, not sessions, and a second ticket takes a sixth of the time of a handshake.
    context.num_tickets = 1
    return context
