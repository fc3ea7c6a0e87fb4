"""Certificate signing requests of nodes and others."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers
from ostinato.server.access.authority import Authority

NODE_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT = "kubernetes.io/kube-apiserver-client"
CONTROLLER = "certificatesigningrequest-controller"


def asked(
    signer: str, usages: list[str], *, name: str, organisation: str = "", dns: str = ""
) -> CertificateSigningRequest:
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]
    if organisation:
        attributes.insert(0, x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, organisation))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns)]), critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = CertificateSigningRequestSpec(request=pem, signer_name=signer, usages=usages)
    return CertificateSigningRequest(metadata=ObjectMeta(name="r"), spec=spec)


async def begin(stage: Stage, directory: Path, signing: tuple[Path, Path] | None = None) -> None:
    authority = Authority(stage.world, directory)
    options = Options(ca_certificate=authority.files.certificate, ca_key=authority.files.key, signing=signing)
    stage.run(lambda manager: add_controllers(manager, options, without=set(CONTROLLERS) - {CONTROLLER}))
    await stage.settle()


async def approve(stage: Stage) -> None:
    condition = {"type": "Approved", "status": "True", "reason": "Test", "message": ""}
    change = MergePatch({"status": {"conditions": [condition]}})
    await stage.client.patch(CertificateSigningRequest, "r", change, subresource="approval")
    await stage.settle()


async def get(stage: Stage) -> CertificateSigningRequest:
    return await stage.client.get(CertificateSigningRequest, "r")


def test_a_nodes_own_client_certificate_is_approved_and_signed(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await begin(stage, tmp_path)
        usages = ["digital signature", "client auth"]
        await stage.client.create(asked(NODE_CLIENT, usages, name="system:node:a", organisation="system:nodes"))
        await stage.settle()
        found = await get(stage)
        assert [(each.type, each.reason) for each in found.status.conditions] == [("Approved", "AutoApproved")]
        assert found.status.certificate is not None
        certificate = x509.load_pem_x509_certificate(found.status.certificate)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))
        assert certificate.subject.rfc4514_string() == "CN=system:node:a,O=system:nodes"

    on_stage(play)


def test_other_requests_need_manual_approval_and_are_then_signed(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await begin(stage, tmp_path)
        await stage.client.create(asked(CLIENT, ["client auth"], name="jane"))
        await stage.settle()
        assert (await get(stage)).status.conditions == []
        await approve(stage)
        signed = (await get(stage)).status.certificate
        assert signed is not None
        with pytest.raises(x509.ExtensionNotFound):  # OpenSSL rejects a certificate with an empty one
            x509.load_pem_x509_certificate(signed).extensions.get_extension_for_class(x509.KeyUsage)

    on_stage(play)


def test_another_authority_can_sign(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        (tmp_path / "other").mkdir()
        other = Authority(stage.world, tmp_path / "other").files
        await begin(stage, tmp_path, (other.certificate, other.key))
        await stage.client.create(asked(CLIENT, ["client auth"], name="jane"))
        await approve(stage)
        signed = (await get(stage)).status.certificate
        assert signed is not None
        issuer = x509.load_pem_x509_certificate(other.certificate.read_bytes())
        x509.load_pem_x509_certificate(signed).verify_directly_issued_by(issuer)

    on_stage(play)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (
            asked(SERVING, ["digital signature", "server auth"], name="system:node:a", organisation="system:nodes"),
            "DNS or IP subjectAltName is required",
        ),
        (
            asked(SERVING, ["digital signature", "server auth"], name="system:node:a", organisation="x", dns="a"),
            "subject organization is not system:nodes",
        ),
        (
            asked(SERVING, ["client auth"], name="system:node:a", organisation="system:nodes", dns="a"),
            "usages did not match [digital signature key encipherment server auth]",
        ),
        (asked(CLIENT, ["server auth"], name="jane"), "invalid usage for client certificate: server auth"),
    ],
)
def test_a_request_that_violates_its_signers_rules_fails(
    request_: CertificateSigningRequest, why: str, tmp_path: Path
) -> None:
    async def play(stage: Stage) -> None:
        await begin(stage, tmp_path)
        await stage.client.create(request_)
        await approve(stage)
        found = await get(stage)
        assert [(each.type, each.message) for each in found.status.conditions if each.type == "Failed"] == [
            ("Failed", why)
        ]
        assert not found.status.certificate

    on_stage(play)


def test_old_requests_are_deleted(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await begin(stage, tmp_path)
        await stage.client.create(asked(CLIENT, ["client auth"], name="jane"))
        await stage.world.clock.sleep(7200)
        await approve(stage)
        await stage.world.clock.sleep(3500)
        assert await stage.client.get(CertificateSigningRequest, "r", missing=None) is not None
        await stage.world.clock.sleep(200)
        assert await stage.client.get(CertificateSigningRequest, "r", missing=None) is None

    on_stage(play)
