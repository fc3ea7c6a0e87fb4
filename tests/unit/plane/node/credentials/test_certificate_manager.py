"""Rotation of a node's certificates over their lifetime, in virtual time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.certificates_v1 import CertificateSigningRequest
from ostinato.kinds.core_v1 import Node, NodeAddress
from ostinato.plane.access import cluster_info
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers
from ostinato.plane.controllers.certificates import signing_requests
from ostinato.plane.node.credentials.certificate_manager import CLIENT, SERVING, CertificateFile, CertificateManager
from ostinato.server.access.authority import Authority

LIFETIME = timedelta(hours=1)
MINUTE = 60.0


@pytest.fixture(autouse=True)
def short_lifetimes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_requests, "_LONGEST", LIFETIME)


async def run_signer(stage: Stage, directory: Path) -> None:
    directory.mkdir(exist_ok=True)  # noqa: ASYNC240 - virtual time
    authority = Authority(stage.world, directory)
    options = Options(ca_certificate=authority.files.certificate, ca_key=authority.files.key)
    without = set(CONTROLLERS) - {"certificatesigningrequest-controller"}
    await cluster_info.ensure(stage.client, "https://here", authority.files.certificate.read_bytes())
    stage.run(lambda manager: add_controllers(manager, options, without=without))


async def register(stage: Stage) -> None:
    node = await stage.client.create(Node(metadata=ObjectMeta(name="worker")))
    node.status.addresses = [NodeAddress(type="InternalIP", address="10.0.0.7")]
    await stage.client.update(node, subresource="status")


def run_manager(stage: Stage, signer: str, file: CertificateFile) -> list[int]:
    """Start a certificate manager; return a list that grows with the serial numbers of new certificates."""
    serials: list[int] = []

    def rotated() -> None:
        serials.append(read(file).serial_number)

    manager = CertificateManager("worker", signer, file, rotated)
    stage.run(lambda each: each.add(manager), field_manager="kubelet", identity="system:node:worker")
    return serials


def read(file: CertificateFile) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.path.read_bytes())


@pytest.mark.parametrize("signer", [CLIENT, SERVING])
def test_a_certificate_is_rotated_between_70_and_90_percent_of_its_lifetime(signer: str, tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await run_signer(stage, tmp_path / "ca")
        await register(stage)
        file = CertificateFile(tmp_path / "node.pem")
        serials = run_manager(stage, signer, file)
        await stage.until(lambda: _grown(serials, 1))
        rotated_at = []
        for count in range(2, 7):
            begins, ends = file.validity or pytest.fail("no certificate")
            while len(serials) < count:
                assert stage.world.clock.now() < ends, "the certificate expired before its rotation"
                await stage.world.clock.sleep(MINUTE / 6)
            rotated_at.append((stage.world.clock.now() - begins) / (ends - begins))
        assert len({*serials}) == 6, "each certificate is a new one"
        assert all(0.69 < part < 0.91 for part in rotated_at)
        assert len({round(part, 3) for part in rotated_at}) > 1, "nodes do not rotate at the same time"
        certificate = read(file)
        assert certificate.subject.rfc4514_string() == "CN=system:node:worker,O=system:nodes"
        if signer == SERVING:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert [str(each.value) for each in names] == ["worker", "10.0.0.7"]

    on_stage(play)


def test_a_failed_rotation_is_retried_until_it_succeeds(tmp_path: Path) -> None:
    """A denied request is retried with back-off at once; it must not wait for another point of the lifetime."""

    async def play(stage: Stage) -> None:
        await run_signer(stage, tmp_path / "ca")
        file = CertificateFile(tmp_path / "node.pem")
        serials = run_manager(stage, CLIENT, file)
        await stage.until(lambda: _grown(serials, 1))
        await stage.stop_managers()  # from now on requests are neither approved nor signed
        serials = run_manager(stage, CLIENT, file)
        denied = await stage.until(lambda: _open_request(stage), limit=LIFETIME.total_seconds())
        begins, ends = file.validity or pytest.fail("no certificate")
        assert (stage.world.clock.now() - begins) / (ends - begins) < 0.91
        await deny(stage, denied)
        again = await stage.until(lambda: _open_request(stage), limit=30.0)
        assert again.metadata.name != denied.metadata.name
        await run_signer(stage, tmp_path / "ca")
        await stage.until(lambda: _grown(serials, 1), limit=30.0)
        assert stage.world.clock.now() < ends, "the old certificate was valid all the time"
        assert file.is_usable(stage.world.clock.now())

    on_stage(play)


def test_a_serving_certificate_is_requested_once_the_node_has_addresses(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await run_signer(stage, tmp_path / "ca")
        file = CertificateFile(tmp_path / "node.pem")
        serials = run_manager(stage, SERVING, file)
        await stage.world.clock.sleep(MINUTE)
        node = await stage.client.create(Node(metadata=ObjectMeta(name="worker")))
        await stage.world.clock.sleep(MINUTE)
        assert not [*await stage.client.list(CertificateSigningRequest)], "a Node without addresses cannot be verified"
        node.status.addresses = [NodeAddress(type="InternalIP", address="10.0.0.7")]
        await stage.client.update(node, subresource="status")
        await stage.until(lambda: _grown(serials, 1), limit=5.0)
        names = read(file).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(each.value) for each in names] == ["worker", "10.0.0.7"]

    on_stage(play)


async def _grown(serials: list[int], count: int) -> bool:
    return len(serials) >= count


async def _open_request(stage: Stage) -> CertificateSigningRequest | None:
    requests = await stage.client.list(CertificateSigningRequest)
    return next((each for each in requests if not each.status.conditions), None)


async def deny(stage: Stage, request: CertificateSigningRequest) -> None:
    condition = {"type": "Denied", "status": "True", "reason": "Test", "message": "not today"}
    change = MergePatch({"status": {"conditions": [condition]}})
    await stage.client.patch(CertificateSigningRequest, request.metadata.name, change, subresource="approval")
