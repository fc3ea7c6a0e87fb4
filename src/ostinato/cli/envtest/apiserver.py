"""kube-apiserver: the API server with kube-apiserver's flags and defaults, and its state where etcd says.

- The state directory is `ostinato` in the data directory of the etcd stand-in at `--etcd-servers`.
- The serving certificate is `apiserver.crt` in `--cert-dir`, which is generated if it does not exist.
- It stops with the process that started it, see `parent`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from ostinato.cli.commands.control_plane import serve
from ostinato.cli.envtest import handover
from ostinato.cli.envtest.parent import ParentWatch
from ostinato.cli.error import CommandError
from ostinato.cli.options.server import service_ranges
from ostinato.cli.options.server import settings as server_options
from ostinato.cli.options.server.storage import use_state
from ostinato.http.hosts import join_host_port
from ostinato.server.standalone import Settings, Standalone
from ostinato.server.state import StateError, write_private
from ostinato.world import World

_CERTIFICATE_LIFETIME: Final = timedelta(days=365)

_logger = logging.getLogger(__name__)


def run(options: argparse.Namespace, watch: ParentWatch) -> None:
    """Serve until SIGTERM or SIGINT; CommandError for invalid flags and if the server cannot start."""
    world = World.real()
    ranges = service_ranges.parse(options.service_cluster_ip_range)
    listen = _listen(options)
    advertised = _ip("--advertise-address", options.advertise_address) if options.advertise_address else ""
    _apply_defaults(options)
    urls = [url for urls in options.etcd_servers for url in urls.split(",") if url]
    if not urls:
        raise CommandError("--etcd-servers must be specified")
    if not options.tls_cert_file and not options.tls_private_key_file:
        _use_certificate_directory(world, options, [str(each[1]) for each in ranges])
    storage = asyncio.run(handover.storage_of(urls, world.clock))
    options.listen = listen
    use_state(options, Path(storage.data_dir) / "ostinato")
    settings = server_options.settings(options)
    settings = msgspec.structs.replace(
        settings,
        admission=msgspec.structs.replace(settings.admission, allow_privileged=options.allow_privileged),
        advertise_address=advertised,
        durable=storage.durable,
    )
    try:
        serve.run(lambda world: _ApiServer(world, settings, watch), "kube-apiserver", listen)
    except CommandError as error:
        raise CommandError(_with_flags_of_kube_apiserver(str(error))) from error


class _ApiServer(Standalone):
    """A server that stops with the process that started it."""

    def __init__(self, world: World, settings: Settings, watch: ParentWatch) -> None:
        super().__init__(world, settings)
        self._watched = watch, world.clock

    async def failed(self) -> None:
        watch, clock = self._watched
        await watch.exited(clock)
        _logger.warning("parent process exited, stopping")


def _with_flags_of_kube_apiserver(message: str) -> str:
    """A message of the server, which knows the options of `ostinato apiserver`."""
    message = message.replace("with --listen, or port 0 for a free one", "with --secure-port")
    return message.replace("with --state", "with --data-dir of etcd")


def _listen(options: argparse.Namespace) -> str:
    if not 1 <= options.secure_port <= 65535:
        raise CommandError(f"--secure-port {options.secure_port} must be between 1 and 65535, inclusive")
    return join_host_port(_ip("--bind-address", options.bind_address), options.secure_port)


def _ip(flag: str, text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise CommandError(f"{flag} {text}: want an IP address") from None


def _apply_defaults(options: argparse.Namespace) -> None:
    """Apply kube-apiserver's defaults where they differ from `ostinato apiserver`'s."""
    if not options.authorization_mode and options.authorization_config is None:
        options.authorization_mode = ["AlwaysAllow"]


def _use_certificate_directory(world: World, options: argparse.Namespace, cluster_ips: Sequence[str]) -> None:
    """Use the pair in `--cert-dir`, generated if there is none. `cluster_ips`: of the Service `kubernetes`."""
    directory = Path(options.cert_dir)
    certificate, key = directory / "apiserver.crt", directory / "apiserver.key"
    staged = directory / ".apiserver.crt"  # its key is written before it gets its name: a crash leaves a complete pair
    if staged.exists() and key.exists() and not certificate.exists():
        staged.replace(certificate)
    if certificate.exists() != key.exists():
        missing, found = (key, certificate) if certificate.exists() else (certificate, key)
        raise CommandError(f"--cert-dir: {found} exists without {missing}; provide both, or remove it")
    if not certificate.exists():
        from ostinato.certificates.generate import generate_certificate  # noqa: PLC0415 - mostly not needed

        hosts = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", *cluster_ips]
        unspecified = ip_address(options.bind_address).is_unspecified
        hosts += [] if unspecified or options.bind_address in hosts else [options.bind_address]
        made = generate_certificate(world, hosts, _CERTIFICATE_LIFETIME)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            write_private(staged, made.certificate + made.authorities)
            staged.chmod(0o644)  # other users' clients trust it
            write_private(key, made.key)
            staged.replace(certificate)
        except (OSError, StateError) as error:
            raise CommandError(f"--cert-dir: {error}") from None
    options.tls_cert_file, options.tls_private_key_file = str(certificate), str(key)
