from __future__ import annotations

import os
import ssl
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

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


def test_a_client_certificate_names_its_user_and_cannot_serve(tmp_path: Path) -> None:
    authority = Authority(world(), tmp_path)
    certificate = load(authority.client("admin", "kubernetes-admin", ["system:masters"]))
    assert certificate.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use.dotted_string for use in usage] == ["1.3.6.1.5.5.7.3.2"]


def test_private_keys_have_the_form_that_all_clients_read(tmp_path: Path) -> None:
    authority = Authority(world(), tmp_path)
    pair = authority.client("admin", "kubernetes-admin", ["system:masters"])
    issued = authority.user("jane", [], timedelta(days=1))
    for key in (read_private(pair.key), read_private(authority.files.key), issued.key):
        assert key.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_a_key_in_the_form_of_earlier_versions_is_replaced(tmp_path: Path) -> None:
    pair = Authority(world(), tmp_path).client("admin", "kubernetes-admin", ["system:masters"])
    key = load_pem_private_key(read_private(pair.key), None)
    write_private(pair.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    Authority(world(), tmp_path).client("admin", "kubernetes-admin", ["system:masters"])
    assert read_private(pair.key).startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_certificates_serve_again_at_the_next_start(tmp_path: Path) -> None:
    first = Authority(world(), tmp_path)
    before = [first.server("apiserver", HOSTS).certificate.read_bytes(), first.certificate]
    second = Authority(world(datetime(2026, 6, 1, tzinfo=UTC)), tmp_path)
    assert [second.server("apiserver", HOSTS).certificate.read_bytes(), second.certificate] == before


@pytest.mark.parametrize("why", ["age", "host", "authority", "key", "note", "certificate"])
def test_a_certificate_is_reissued_when_names_or_validity_require_it(tmp_path: Path, why: str) -> None:
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
    with pytest.raises(StateError, match=r"ca.key can be read by others \(mode 0644\); chmod 600 it"):
        Authority(world(), tmp_path).server("apiserver", HOSTS)


# The clock


def days(number: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def start(directory: Path, day: float) -> tuple[x509.Certificate, list[x509.Certificate]]:
    """The authority and the certificates of a start on a day; they are valid then, and fit together."""
    authority = Authority(world(days(day)), directory)
    leaves = [load(authority.server("apiserver", HOSTS)), load(authority.client("admin", "kubernetes-admin", ["m"]))]
    issuer = load(authority.files)
    for certificate in (issuer, *leaves):
        assert certificate.not_valid_before_utc <= days(day) < certificate.not_valid_after_utc
        certificate.verify_directly_issued_by(issuer)
    assert all(leaf.not_valid_after_utc <= issuer.not_valid_after_utc for leaf in leaves)
    return issuer, leaves


@pytest.mark.parametrize(
    "clock",
    [
        [400, 0],
        [0, 400, 0],
        [0, 4000, 0, 4000],
        [0, -20_000, 0],
        [-20_000, 0],
        [0, 3600],
        [400, 0, 400, 0],
        [0, 9000, -9000, 1],
    ],
    ids=str,
)
def test_a_corrected_clock_does_not_lock_clients_out(tmp_path: Path, clock: list[float]) -> None:
    for day in clock:
        start(tmp_path, day)


def test_certificates_signed_with_the_clock_ahead_stay_valid_when_it_is_corrected(tmp_path: Path) -> None:
    """No new start is needed: a kubeconfig that was copied away works, too."""
    start(tmp_path, 0)
    _, leaves = start(tmp_path, 400)
    assert all(leaf.not_valid_before_utc < days(0) for leaf in leaves)


def test_a_renewed_authority_keeps_its_key_and_signed_certificates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, leaves = start(tmp_path, 400)
    assert "renewing with the same key" not in caplog.text
    new, _ = start(tmp_path, 0)
    assert "renewing with the same key" in caplog.text
    assert "not_before=2027-02-04" in caplog.text
    assert new.public_key() == old.public_key()
    for leaf in leaves:
        leaf.verify_directly_issued_by(new)


def test_an_authority_that_another_has_signed_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    Authority(world(days(400)), tmp_path)
    root = Authority(world(days(400)), tmp_path / "other")
    pair = root.client("intermediate", "intermediate", [])
    for source, target in zip(pair, Authority(world(days(400)), tmp_path).files, strict=True):
        write_private(target, source.read_bytes())
    with pytest.raises(
        StateError, match=r"ca.crt: not valid at 2026-01-01, only from 2027-02-04 to .*; correct the clock"
    ):
        Authority(world(days(0)), tmp_path)
    Authority(world(days(400)), tmp_path)


def test_certificates_of_an_earlier_version_are_reused_or_reissued(tmp_path: Path) -> None:
    start(tmp_path, 0)
    (tmp_path / "ca.json").unlink()
    note = tmp_path / "apiserver.json"
    note.write_text(note.read_text().replace('"begins"', '"other"'))
    start(tmp_path, 1)


# The directory


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777, 0o1777])
def test_an_empty_state_directory_that_others_can_read_is_closed_to_them(tmp_path: Path, mode: int) -> None:
    (tmp_path / "lost+found").mkdir()
    tmp_path.chmod(mode)
    StateDirectory(tmp_path).release()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_state_directory_of_ours_that_others_can_read_is_closed_to_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    StateDirectory(tmp_path).release()
    tmp_path.chmod(0o755)
    for name in ("admin.kubeconfig", "store.db", "store.db-wal", "store.db-shm", "store.db-mark", "ca.crt"):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(0o644)
    StateDirectory(tmp_path).release()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert "state directory was accessible to others, restricted" in caplog.text


@pytest.mark.parametrize(("mode", "ours"), [(0o755, False), (0o1777, False), (0o777, True), (0o770, True)])
def test_a_directory_of_others_is_no_state_directory(tmp_path: Path, mode: int, ours: bool) -> None:
    (tmp_path / ("lock" if ours else "notes.txt")).write_text("x")
    tmp_path.chmod(mode)
    done = "read" if mode == 0o755 else "written"
    with pytest.raises(StateError, match=rf"can be {done} by others \(mode {mode:04o}\) and is not empty; inspect"):
        StateDirectory(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_rejected(tmp_path: Path) -> None:
    Authority(world(), tmp_path)
    for name, message in (
        ("", "the state directory .* is owned by uid 4242"),
        ("ca.crt", "ca.crt is owned by uid 4242"),
    ):
        os.chown(tmp_path / name, 4242, 4242)
        with pytest.raises(StateError, match=message):
            StateDirectory(tmp_path)
        os.chown(tmp_path / name, 0, 0)
    os.chown(tmp_path / "ca.key", 4242, 4242)
    with pytest.raises(StateError, match=r"ca.key is owned by uid 4242; remove it, or change its owner"):
        Authority(world(), tmp_path).server("apiserver", HOSTS)


def test_a_key_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    Authority(world(), tmp_path / "state")
    key = tmp_path / "state" / "ca.key"
    key.rename(tmp_path / "elsewhere.key")
    key.symlink_to(tmp_path / "elsewhere.key")
    with pytest.raises(StateError, match=r"ca.key is a symbolic link; replace it with the key file, or remove it"):
        Authority(world(), tmp_path / "state").server("apiserver", HOSTS)


@pytest.mark.parametrize("how", ["open", "link"])
def test_a_certificate_with_an_exposed_key_is_reissued(tmp_path: Path, how: str) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    pair = Authority(world(), tmp_path / "state").client("admin", "kubernetes-admin", ["system:masters"])
    before = pair.key.read_bytes()
    if how == "open":
        pair.key.chmod(0o640)
    else:
        pair.key.rename(tmp_path / "elsewhere.key")
        pair.key.symlink_to(tmp_path / "elsewhere.key")
    pair = Authority(world(), tmp_path / "state").client("admin", "kubernetes-admin", ["system:masters"])
    assert pair.key.read_bytes() != before
    assert (stat.S_IMODE(pair.key.lstat().st_mode), pair.key.is_symlink()) == (0o600, False)


def test_a_link_that_was_planted_where_a_file_is_written_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("victim")
    (tmp_path / ".ca.key.new").symlink_to(tmp_path / "victim")
    write_private(tmp_path / "ca.key", b"secret")
    assert (tmp_path / "victim").read_text() == "victim"
    assert (tmp_path / "ca.key").read_bytes() == b"secret"


def test_the_state_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "a" / "b")
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    state.release()


def test_one_server_at_a_time_uses_a_state_directory(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with pytest.raises(StateError, match=r"is in use by process [0-9]+; choose another directory with --state"):
        StateDirectory(tmp_path)
    state.release()
    StateDirectory(tmp_path).release()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_an_unwritable_state_directory_is_reported() -> None:
    with pytest.raises(StateError, match="cannot use the state directory /proc/nowhere"):
        StateDirectory(Path("/proc/nowhere"))


def test_a_file_is_replaced_as_a_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert read_private(path) == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
