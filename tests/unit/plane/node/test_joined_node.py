"""A machine joins a cluster: discovery, client and serving certificates, readiness."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from tests.stage.plane import Stage, on_stage

from ostinato.api.errors import Forbidden
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.client.http.transport import HttpTransport
from ostinato.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from ostinato.kinds.core_v1 import Node, NodeAddress, Secret
from ostinato.kinds.core_v1 import Secret as CoreSecret
from ostinato.manager.connecting import Purpose
from ostinato.plane.access.cluster_info import BOOTSTRAPPERS, ca_cert_hash
from ostinato.plane.node.credentials.certificate_manager import (
    SERVING,
    CertificateFile,
    _new_key_and_request,
    bootstrap_config,
)
from ostinato.plane.node.credentials.cluster_discovery import DiscoveryError, discover_cluster
from ostinato.plane.node.joined_node import JoinedNode, JoinSettings
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.standalone import Settings
from ostinato.world import World

TOKEN = "abcdef.0123456789abcdef"


def joined(tmp_path: Path, then: Callable[[World, Plane, bytes], Awaitable[None]]) -> None:
    """A plane that a node could join by the token."""

    async def main() -> None:
        world = World.real()
        plane = Plane(world, PlaneSettings(server=Settings(state=tmp_path / "up", port=0, store="memory")))
        await plane.start()
        try:
            client = Client(plane.connect(Purpose()), world=world)
            name, secret = TOKEN.split(".")
            data = {
                "token-id": name,
                "token-secret": secret,
                "usage-bootstrap-authentication": "true",
                "auth-extra-groups": BOOTSTRAPPERS,
            }
            metadata = ObjectMeta(name=f"bootstrap-token-{name}", namespace="kube-system")
            await client.create(Secret(metadata=metadata, type="bootstrap.kubernetes.io/token", string_data=data))
            await client.close()
            await then(world, plane, (tmp_path / "up" / "ca.crt").read_bytes())
        finally:
            await plane.stop()
            world.executor.close()

    asyncio.run(main())


def test_a_cluster_with_another_ca_hash_is_rejected(tmp_path: Path) -> None:
    async def then(world: World, plane: Plane, authority: bytes) -> None:
        with pytest.raises(DiscoveryError, match="not the cluster that --ca-cert-hash names"):
            await discover_cluster(world, plane.url, TOKEN, [f"sha256:{'0' * 64}"])

    joined(tmp_path, then)


def test_a_token_gets_a_certificate_in_the_name_of_the_node_and_nothing_else(tmp_path: Path) -> None:
    async def then(world: World, plane: Plane, authority: bytes) -> None:
        given = await discover_cluster(world, plane.url, TOKEN, [ca_cert_hash(authority)])
        by_token = Client(HttpTransport(given, world), world=world)
        with pytest.raises(Forbidden):
            await by_token.get(CoreSecret, "x", namespace="kube-system")
        with pytest.raises(Forbidden):
            await by_token.create(Node(metadata=ObjectMeta(name="worker")))
        await by_token.close()
        own = await bootstrap_config(world, "worker", tmp_path, given, 30.0)
        certificate = x509.load_pem_x509_certificate((tmp_path / "client.pem").read_bytes())
        assert certificate.subject.rfc4514_string() == "CN=system:node:worker,O=system:nodes"
        assert (tmp_path / "client.pem").stat().st_mode & 0o077 == 0
        assert own.token is None
        node = Client(HttpTransport(own, world), world=world)
        await node.create(Node(metadata=ObjectMeta(name="worker")))
        with pytest.raises(Forbidden, match="cannot read 'other', only its own Node object"):
            await node.get(Node, "other")
        again = await bootstrap_config(world, "worker", tmp_path, Config(server=plane.url), 1.0)
        assert again.tls.certificate_file == own.tls.certificate_file, "the certificate of the last start serves"
        await node.close()

    joined(tmp_path, then)


@pytest.mark.parametrize(
    ("user", "hosts", "approved"),
    [
        ("worker", ["worker", "10.0.0.7"], True),
        ("worker", ["worker", "10.0.0.8"], False),
        ("worker", ["worker", "kubernetes.default.svc"], False),
        ("other", ["worker"], False),
        ("gone", ["gone"], False),
    ],
)
def test_a_node_gets_a_serving_certificate_for_its_own_addresses(user: str, hosts: list[str], approved: bool) -> None:
    async def play(stage: Stage) -> None:
        node = await stage.client.create(Node(metadata=ObjectMeta(name="worker")))
        node.status.addresses = [NodeAddress(type="InternalIP", address="10.0.0.7")]
        await stage.client.update(node, subresource="status")
        _, request = _new_key_and_request("gone" if user == "gone" else "worker", hosts)
        asks = Client(stage.connect(Purpose(identity=f"system:node:{user}")), world=stage.world)
        spec = CertificateSigningRequestSpec(
            request=request, signer_name=SERVING, usages=["digital signature", "server auth"]
        )
        try:
            await asks.create(CertificateSigningRequest(metadata=ObjectMeta(name="r"), spec=spec))
        except Forbidden:
            assert user == "other", "a node asks in its own name alone"
            return
        finally:
            await asks.close()
        await stage.settle()
        found = await stage.client.get(CertificateSigningRequest, "r")
        assert [each.type for each in found.status.conditions] == (["Approved"] if approved else [])

    on_stage(play, "certificatesigningrequest-controller")


def test_a_certificate_close_to_its_expiry_is_not_reused(tmp_path: Path) -> None:
    pair = CertificateFile(tmp_path / "client.pem")
    assert pair.validity is None

    async def then(world: World, plane: Plane, authority: bytes) -> None:
        given = await discover_cluster(world, plane.url, TOKEN, [ca_cert_hash(authority)])
        await bootstrap_config(world, "worker", tmp_path, given, 30.0)
        now = world.clock.now()
        assert pair.is_usable(now)
        assert not pair.is_usable(now + timedelta(days=364))
        assert not pair.is_usable(now - timedelta(days=1))

    joined(tmp_path, then)


def test_a_node_that_is_ready_serves_with_a_certificate_of_the_cluster(tmp_path: Path) -> None:
    """Logs and exec work from the moment at which the node is Ready."""

    async def then(world: World, plane: Plane, authority: bytes) -> None:
        settings = JoinSettings(name="worker", state=tmp_path / "node", host="127.0.0.1", port=0, services=False)
        node = JoinedNode(world, Config.load(path=plane.kubeconfig), settings)
        client = Client(plane.connect(Purpose()), world=world)
        await node.start()
        try:
            await client.wait_for(Node, "worker", _is_ready, timeout=60)
            trusted = ssl.create_default_context(cadata=authority.decode())
            port = int(node.url.rpartition(":")[2])
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            writer.close()
        finally:
            await client.close()
            await node.stop()

    joined(tmp_path, then)


def _is_ready(node: Node | None) -> bool:
    conditions = [] if node is None else node.status.conditions
    return any(each.type == "Ready" and each.status == "True" for each in conditions)
