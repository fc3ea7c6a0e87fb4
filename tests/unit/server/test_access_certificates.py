from __future__ import annotations

import ssl
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from ostinato.server.access.authority import Authority, Pair
from ostinato.server.state import StateDirectory, StateError, read_private, write_private
from ostinato.world import Simulation, World

HOSTS = ["127.0.0.1", "::1", "localhost"]


def world(start: datetime | None = None) -> World:
    return Simulation(1, start=start or datetime(2026, 1, 1, tzinfo=UTC))


def load(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.read_bytes())


def test_the_first_start_makes_an_authority_that_only_its_owner_can_read(tmp_path: Path) -> None:
    authority = Authority(world(), tmp_path)
    certificate = load(authority.files)
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    assert certificate.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.not_valid_after_utc.year == 2035
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_the_servers_certificate_names_every_host(tmp_path: Path) -> None:
    authority = Authority(world(), tmp_path)
    certificate = load(authority.server("apiserver", [*HOSTS, "example.org"]))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name) for name in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "example.org"]
    certificate.verify_directly_issued_by(load(authority.files))


def test_a_clients_certificate_says_who_it_is_and_can_serve_nothing(tmp_path: Path) -> None:
    authority = Authority(world(), tmp_path)
    certificate = load(authority.client("admin", "kubernetes-admin", ["system:masters"]))
    assert certificate.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use.dotted_string for use in usage] == ["1.3.6.1.5.5.7.3.2"]


def test_certificates_serve_again_at_the_next_start(tmp_path: Path) -> None:
    first = Authority(world(), tmp_path)
    before = [first.server("apiserver", HOSTS).certificate.read_bytes(), first.certificate]
    second = Authority(world(datetime(2026, 6, 1, tzinfo=UTC)), tmp_path)
    assert [second.server("apiserver", HOSTS).certificate.read_bytes(), second.certificate] == before


@pytest.mark.parametrize("why", ["age", "host", "authority", "key", "note", "certificate"])
def test_a_certificate_is_made_anew_when_it_no_longer_serves(tmp_path: Path, why: str) -> None:
    pair = Authority(world(), tmp_path).server("apiserver", HOSTS)
    before = pair.certificate.read_bytes()
    if why == "authority":
        (tmp_path / "ca.key").unlink()
    elif why == "key":
        pair.key.unlink()
    elif why == "note":
        (tmp_path / "apiserver.json").write_text("{")
    elif why == "certificate":
        pair.certificate.write_bytes(Authority(world(), tmp_path).certificate)
    later = world(datetime(2026, 11, 1, tzinfo=UTC)) if why == "age" else world()
    authority = Authority(later, tmp_path)
    pair = authority.server("apiserver", [*HOSTS, "other"] if why == "host" else HOSTS)
    assert pair.certificate.read_bytes() != before
    load(pair).verify_directly_issued_by(load(authority.files))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(pair.certificate, pair.key)  # the key is its own


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    Authority(world(), tmp_path)
    (tmp_path / "ca.key").chmod(0o644)
    with pytest.raises(StateError, match=r"ca.key can be read by others \(mode 0644\): chmod 600 it"):
        Authority(world(), tmp_path).server("apiserver", HOSTS)


# The directory


def test_the_state_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "a" / "b")
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    state.release()


def test_one_server_at_a_time_uses_a_state_directory(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with pytest.raises(StateError, match=r"is in use by process [0-9]+; choose another with --state"):
        StateDirectory(tmp_path)
    state.release()
    StateDirectory(tmp_path).release()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_place_where_nothing_can_be_made_is_told() -> None:
    with pytest.raises(StateError, match="cannot use the state directory /proc/nowhere"):
        StateDirectory(Path("/proc/nowhere"))


def test_a_file_is_replaced_as_a_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert read_private(path) == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
