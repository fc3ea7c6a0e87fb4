"""Certificates: read from files that change, or made, shared and renewed; and made known to API servers."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.stage.server import started_server
from tests.unit.webhook.samples import Json

from ostinato.api.errors import Conflict, Forbidden, Invalid
from ostinato.api.gvk import GroupResource, GroupVersionKind
from ostinato.certificates.certificate import ServerTls
from ostinato.certificates.generate import generate_certificate, inspect_certificate, unexpired_authorities
from ostinato.certificates.object_access import DEFINITION, MUTATING, SECRET, VALIDATING
from ostinato.client import Client
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.webhook import (
    BundleTarget,
    CaInjector,
    Certificate,
    CertificateError,
    CertificateFiles,
    LiveObjectAccess,
    MemoryCertificateStore,
    SecretCertificateStore,
    SelfSignedCertificates,
    WebhookServer,
)
from ostinato.world import Limits, Simulation, World

DAY = 86_400.0
HOSTS = ["widgets.system.svc", "127.0.0.1"]


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(seed=1, limits=Limits(time=1000 * DAY))


def on_a_server(main: Callable[[Simulation, LiveObjectAccess, Client], Coroutine[Any, Any, None]]) -> None:
    """Run `main` beside an API server in the same process."""
    simulation = Simulation(seed=1)

    async def program() -> None:
        async with started_server(simulation) as server:
            client = Client(InProcessTransport(server), world=simulation)
            try:
                await main(simulation, LiveObjectAccess(client), client)
            finally:
                await client.close()

    simulation.run(program())


def authorities(certificate: Certificate) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(certificate.authorities)


# Making


def test_a_made_certificate_is_for_its_hosts_and_signed_by_its_authority(simulation: Simulation) -> None:
    made = generate_certificate(simulation, HOSTS, timedelta(days=365))
    facts = inspect_certificate(made.certificate)
    assert facts.hosts == set(HOSTS)
    assert facts.expires == datetime(2027, 1, 1, tzinfo=UTC)
    authority, certificate = authorities(made)[0], x509.load_pem_x509_certificate(made.certificate)
    certificate.verify_directly_issued_by(authority)
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    ServerTls().use(made)


def test_the_key_is_not_shown(simulation: Simulation) -> None:
    made = generate_certificate(simulation, HOSTS, timedelta(days=1))
    assert "PRIVATE" not in repr(made)


def test_without_cryptography_the_error_names_the_package(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(CertificateError, match=r"pip install 'ostinato\[webhook\]'"):
        generate_certificate(simulation, HOSTS, timedelta(days=1))


@pytest.mark.parametrize("pem", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_invalid_data_is_not_a_certificate(pem: bytes, simulation: Simulation) -> None:
    with pytest.raises(CertificateError, match="not a serving certificate"):
        inspect_certificate(pem)
    assert unexpired_authorities(pem, simulation.clock.now()) == []


def test_a_certificate_without_hosts_is_refused(simulation: Simulation) -> None:
    with pytest.raises(ValueError, match="at least one host"):
        SelfSignedCertificates(simulation, [])


# Renewing


def test_a_certificate_serves_until_a_third_of_its_life_is_left(simulation: Simulation) -> None:
    source = SelfSignedCertificates(simulation, HOSTS)

    async def main() -> None:
        first = await source.current()
        assert await source.current() == first
        await simulation.clock.sleep(243 * DAY)
        assert await source.current() == first
        await simulation.clock.sleep(DAY)
        second = await source.current()
        assert second != first
        assert [each.not_valid_after_utc for each in authorities(second)] == [
            datetime(2027, 9, 2, tzinfo=UTC),
            datetime(2027, 1, 1, tzinfo=UTC),
        ]
        await simulation.clock.sleep(244 * DAY)
        assert len(authorities(await source.current())) == 2  # the first has ended

    simulation.run(main())


def test_another_host_makes_another_certificate_and_the_old_authority_is_still_trusted(simulation: Simulation) -> None:
    keeper = MemoryCertificateStore()

    async def main() -> None:
        first = await SelfSignedCertificates(simulation, HOSTS, keeper).current()
        assert await SelfSignedCertificates(simulation, HOSTS[:1], keeper).current() == first
        second = await SelfSignedCertificates(simulation, [*HOSTS, "new.example.dev"], keeper).current()
        assert authorities(first)[0] in authorities(second)

    simulation.run(main())


def test_a_keeper_that_always_has_something_else_is_given_up(simulation: Simulation) -> None:
    class Fickle(MemoryCertificateStore):
        async def save(self, certificate: Certificate, replaces: Any) -> bool:
            return False

    with pytest.raises(CertificateError, match="5 times concurrently"):
        simulation.run(SelfSignedCertificates(simulation, HOSTS, Fickle()).current())


def test_memory_keeps_the_first_of_two(simulation: Simulation) -> None:
    async def main() -> None:
        keeper = MemoryCertificateStore()
        assert await keeper.save(Certificate(b"a", b"b"), None)
        assert not await keeper.save(Certificate(b"c", b"d"), None)

    simulation.run(main())


# Sharing


def test_all_replicas_have_the_same_certificate_from_a_secret() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        def replica() -> SelfSignedCertificates:
            keeper = SecretCertificateStore(objects, "default", "widgets-certificates")
            return SelfSignedCertificates(simulation, HOSTS, keeper, lifetime=timedelta(hours=3))

        one, two, three = await asyncio.gather(*(replica().current() for _ in range(3)))
        assert one == two == three
        secret = await objects.get(SECRET, "widgets-certificates", "default")
        assert secret is not None
        assert secret["type"] == "kubernetes.io/tls"
        assert base64.b64decode(secret["data"]["tls.crt"]) == one.certificate
        await simulation.clock.sleep(9000)
        renewed = await asyncio.gather(*(replica().current() for _ in range(3)))
        assert renewed[0] == renewed[1] == renewed[2] != one
        assert len(authorities(renewed[0])) == 2

    on_a_server(main)


def test_an_empty_secret_is_filled_and_keeps_its_labels() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        metadata = {"name": "given", "namespace": "default", "labels": {"chart": "widgets"}}
        data = {"other": "AAAA", "tls.crt": "", "tls.key": ""}
        kind = "kubernetes.io/tls"
        await objects.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": data})
        made = await SelfSignedCertificates(
            simulation, HOSTS, SecretCertificateStore(objects, "default", "given")
        ).current()
        secret = await objects.get(SECRET, "given", "default")
        assert secret is not None
        assert secret["metadata"]["labels"] == {"chart": "widgets", "app.kubernetes.io/managed-by": "ostinato"}
        assert secret["data"]["other"] == "AAAA"
        assert base64.b64decode(secret["data"]["ca.crt"]) == made.authorities

    on_a_server(main)


def test_a_secret_of_ours_that_holds_nonsense_is_replaced() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        source = SelfSignedCertificates(simulation, HOSTS, SecretCertificateStore(objects, "default", "ours"))
        first = await source.current()
        secret = await objects.get(SECRET, "ours", "default")
        assert secret is not None
        secret["data"]["tls.key"] = secret["data"]["tls.crt"]
        await objects.update(secret)
        assert await source.current() != first

    on_a_server(main)


def test_a_certificate_of_another_program_is_not_changed() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        data = {"tls.crt": "AAAA", "tls.key": "AAAA"}
        metadata = {"name": "theirs", "namespace": "default"}
        await objects.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        source = SelfSignedCertificates(simulation, HOSTS, SecretCertificateStore(objects, "default", "theirs"))
        with pytest.raises(CertificateError, match="default/theirs has a certificate that ostinato did not generate"):
            await source.current()

    on_a_server(main)


def test_data_that_is_not_base64_counts_as_absent(simulation: Simulation) -> None:
    class Odd:
        async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Json:
            return {"metadata": None, "data": {"tls.crt": "!", "tls.key": 3}}

    kept = simulation.run(SecretCertificateStore(Odd(), "a", "b").load())  # type: ignore[arg-type]
    assert kept is not None
    assert kept.certificate == Certificate(b"", b"", b"")


# Files


def write(directory: Path, made: Certificate, *names: str) -> None:
    files = {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.authorities}
    for name in names or files:
        (directory / name).write_bytes(files[name])


def test_files_are_read_again_however_they_were_replaced(tmp_path: Path, simulation: Simulation) -> None:
    made = [generate_certificate(simulation, HOSTS, timedelta(days=1)) for _ in range(4)]
    for number, each in enumerate(made):
        (tmp_path / str(number)).mkdir()
        write(tmp_path / str(number), each)
    served = tmp_path / "served"
    served.mkdir()
    source = CertificateFiles(simulation, served, authorities=True)

    async def main() -> None:
        write(served, made[0])
        assert await source.current() == made[0]
        write(served, made[1])  # written
        assert await source.current() == made[1]
        for name in ("tls.crt", "tls.key", "ca.crt"):  # renamed over
            (tmp_path / "2" / name).rename(served / name)
        assert await source.current() == made[2]
        served.rename(tmp_path / "moved")  # replaced by a link, as a mounted Secret is
        os.symlink(tmp_path / "3", served)
        assert await source.current() == made[3]

    simulation.run(main())


def test_half_a_pair_and_missing_files_are_errors_that_name_the_place(tmp_path: Path, simulation: Simulation) -> None:
    source = CertificateFiles(simulation, tmp_path)
    with pytest.raises(CertificateError, match=r"tls\.crt: cannot read: No such file"):
        simulation.run(source.current())
    write(tmp_path, generate_certificate(simulation, HOSTS, timedelta(days=1)))
    assert simulation.run(source.current()).authorities == b""
    write(tmp_path, generate_certificate(simulation, HOSTS, timedelta(days=1)), "tls.crt")
    with pytest.raises(CertificateError, match="not a pair in PEM"):
        simulation.run(source.current())


def test_an_unusable_pair_does_not_replace_the_serving_certificate(simulation: Simulation) -> None:
    tls = ServerTls()
    good, other = (generate_certificate(simulation, HOSTS, timedelta(days=1)) for _ in range(2))
    tls.use(good)
    for bad in (Certificate(b"", b""), Certificate(b"nonsense", b"x"), Certificate(other.certificate, good.key)):
        with pytest.raises(CertificateError, match="not a pair in PEM"):
            tls.use(bad)
    tls.use(other)


def test_an_encrypted_key_is_an_error_without_a_prompt(simulation: Simulation) -> None:
    from cryptography.hazmat.primitives import serialization

    made = generate_certificate(simulation, HOSTS, timedelta(days=1))
    key = serialization.load_pem_private_key(made.key, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(CertificateError, match="without a passphrase"):
        ServerTls().use(Certificate(made.certificate, locked))


def test_without_memory_files_a_key_is_loaded_from_a_private_one(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    ServerTls().use(generate_certificate(simulation, HOSTS, timedelta(days=1)))


def test_authorities_of_clients_must_be_certificates() -> None:
    with pytest.raises(CertificateError, match="client_authorities: not PEM"):
        ServerTls(b"nonsense")


# CA bundles


def configuration(kind: GroupVersionKind, *names: str) -> Json:
    entry = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:9443/check"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "hooks"},
        "webhooks": [{"name": name, **entry} for name in names],
    }


def definition() -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    webhook = {"clientConfig": {"url": "https://127.0.0.1:9443/convert"}, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
            ],
        },
    }


def bundles_of(document: Json | None) -> list[Any]:
    assert document is not None
    hooks = document.get("webhooks") or [document["spec"]["conversion"]["webhook"]]
    return [hook["clientConfig"].get("caBundle") for hook in hooks]


def test_the_bundle_is_written_wherever_it_is_not() -> None:
    places = [
        BundleTarget(VALIDATING, "hooks"),
        BundleTarget(MUTATING, "hooks"),
        BundleTarget(DEFINITION, "widgets.example.dev"),
    ]

    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        bundles = CaInjector(objects, places)
        first = await SelfSignedCertificates(simulation, HOSTS).current()
        await bundles.inject(first.authorities)  # nothing is there yet
        await objects.create(configuration(VALIDATING, "a.example.dev", "b.example.dev"))
        await objects.create(configuration(MUTATING, "a.example.dev"))
        await objects.create(definition())
        await bundles.inject(first.authorities)
        expected = base64.b64encode(first.authorities).decode()
        for place, count in zip(places, (2, 1, 1), strict=True):
            assert bundles_of(await objects.get(place.kind, place.name)) == [expected] * count
        before = [await objects.get(place.kind, place.name) for place in places]
        await bundles.inject(first.authorities)
        assert [await objects.get(place.kind, place.name) for place in places] == before, "there is nothing to do"

        applied_again = configuration(MUTATING, "a.example.dev", "new.example.dev")
        found = await objects.get(MUTATING, "hooks")
        assert found is not None
        applied_again["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        await objects.update(applied_again)
        await bundles.inject(first.authorities)
        assert bundles_of(await objects.get(MUTATING, "hooks")) == [expected] * 2

    on_a_server(main)


def test_a_configuration_created_later_gets_its_ca_bundle_within_seconds() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        bundles = CaInjector(objects, [BundleTarget(VALIDATING, "hooks")])
        server = WebhookServer(simulation, SelfSignedCertificates(simulation, HOSTS), ca_injector=bundles)
        refreshing = asyncio.create_task(server.watch_certificates())
        await simulation.clock.sleep(30)
        await objects.create(configuration(VALIDATING, "a.example.dev"))
        await simulation.clock.sleep(3)
        assert bundles_of(await objects.get(VALIDATING, "hooks")) != [None]
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing

    on_a_server(main)


def test_a_replica_that_waits_for_a_configuration_leaves_the_newer_bundle_of_another_alone() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        await objects.create(configuration(VALIDATING, "a.example.dev"))
        places = [BundleTarget(VALIDATING, "hooks"), BundleTarget(MUTATING, "hooks")]
        server = WebhookServer(
            simulation, SelfSignedCertificates(simulation, HOSTS), ca_injector=CaInjector(objects, places)
        )
        refreshing = asyncio.create_task(server.watch_certificates())
        await simulation.clock.sleep(30)
        newer = await SelfSignedCertificates(simulation, HOSTS).current()
        await CaInjector(objects, places).inject(
            newer.authorities
        )  # by another replica, which has renewed the certificate
        await simulation.clock.sleep(10)
        expected = [base64.b64encode(newer.authorities).decode()]
        assert bundles_of(await objects.get(VALIDATING, "hooks")) == expected
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing

    on_a_server(main)


def test_a_writer_that_was_faster_is_not_overwritten(caplog: pytest.LogCaptureFixture) -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        await objects.create(configuration(VALIDATING, "a.example.dev"))

        class Racing(LiveObjectAccess):
            def __init__(self, times: int) -> None:
                super().__init__(client)
                self.left = times

            async def patch(self, kind: GroupVersionKind, name: str, operations: list[Json]) -> None:
                if self.left:
                    self.left -= 1
                    found = await self.get(kind, name)
                    assert found is not None
                    found["metadata"]["labels"] = {"writer": str(self.left)}
                    await self.update(found)
                await super().patch(kind, name, operations)

        made = await SelfSignedCertificates(simulation, HOSTS).current()
        await CaInjector(Racing(2), [BundleTarget(VALIDATING, "hooks")]).inject(made.authorities)
        found = await objects.get(VALIDATING, "hooks")
        assert found is not None
        assert found["metadata"]["labels"] == {"writer": "0"}
        other = await SelfSignedCertificates(simulation, HOSTS).current()
        with pytest.raises((Conflict, Invalid)):
            await CaInjector(Racing(99), [BundleTarget(VALIDATING, "hooks")]).inject(other.authorities)

    on_a_server(main)


def test_one_place_that_cannot_be_written_does_not_keep_the_others_from_it() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        await objects.create(configuration(MUTATING, "a.example.dev"))

        class Restricted(LiveObjectAccess):
            async def get(self, kind: GroupVersionKind, name: str, namespace: str = "") -> Json | None:
                if kind == VALIDATING:
                    raise Forbidden.of(GroupResource(kind.group, "validatingwebhookconfigurations"), name, "no")
                return await super().get(kind, name, namespace)

        made = await SelfSignedCertificates(simulation, HOSTS).current()
        bundles = CaInjector(Restricted(client), [BundleTarget(VALIDATING, "hooks"), BundleTarget(MUTATING, "hooks")])
        with pytest.raises(Forbidden):
            await bundles.inject(made.authorities)
        assert bundles_of(await objects.get(MUTATING, "hooks")) == [base64.b64encode(made.authorities).decode()]

    on_a_server(main)


def test_a_definition_without_a_conversion_webhook_is_left_alone() -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        document = definition()
        del document["spec"]["conversion"]
        await objects.create(document)
        made = await SelfSignedCertificates(simulation, HOSTS).current()
        before = await objects.get(DEFINITION, "widgets.example.dev")
        await CaInjector(objects, [BundleTarget(DEFINITION, "widgets.example.dev")]).inject(made.authorities)
        assert await objects.get(DEFINITION, "widgets.example.dev") == before

    on_a_server(main)


def test_a_missing_configuration_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main(simulation: Simulation, objects: LiveObjectAccess, client: Client) -> None:
        bundles = CaInjector(objects, [BundleTarget(VALIDATING, "hooks")])
        for _ in range(3):
            await bundles.inject(b"bundle")

    on_a_server(main)
    assert caplog.text.count("webhook not registered") == 1


def test_the_real_world_makes_certificates_too() -> None:
    world = World.real()
    assert asyncio.run(SelfSignedCertificates(world, HOSTS).current()).authorities
