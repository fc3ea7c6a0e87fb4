"""Keys, certificates and passwords: random, so that they are checked instead of compared."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Any

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ostinato.gotemplate import TemplateError, Templates
from ostinato.gotemplate.library import helm_functions
from ostinato.world import World


def call(expression: str, **data: Any) -> str:
    templates = Templates(helm_functions(World.real()))
    templates.parse("t", "{{ " + expression + " }}")
    return templates.render("t", data)


def test_a_certificate_is_signed_by_its_authority() -> None:
    made = call(
        '$key := genPrivateKey "ecdsa" }}{{ $ca := genCAWithKey "root" 365 $key }}'
        '{{ $c := genSignedCertWithKey "web" (list "10.0.0.1" "::1") (list "web" "web.ns.svc") 30 $ca $key }}'
        "{{ $ca.Cert }}|{{ $c.Cert }}|{{ $c.Key"
    )
    authority, certificate = (x509.load_pem_x509_certificate(each.encode()) for each in made.split("|")[:2])
    certificate.verify_directly_issued_by(authority)
    assert certificate.subject.rfc4514_string() == "CN=web"
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=30)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["web", "web.ns.svc"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(each) for each in ("10.0.0.1", "::1")]
    for each, is_authority in ((authority, True), (certificate, False)):
        assert each.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is is_authority
        assert each.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is is_authority
    key = load_pem_private_key(made.split("|")[2].encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.public_key() == certificate.public_key()


def test_a_custom_certificate_is_checked() -> None:
    made = call(
        '$c := genSelfSignedCert "a" nil nil 1 }}{{ $b := buildCustomCert (b64enc $c.Cert) (b64enc $c.Key) }}'
        "{{ eq $b.Cert $c.Cert"
    )
    assert made == "true"
    with pytest.raises(TemplateError, match="error parsing certificate"):
        call('buildCustomCert (b64enc "-----BEGIN CERTIFICATE-----\\nYQ==\\n-----END CERTIFICATE-----\\n") "eA=="')


def test_keys_have_their_kinds() -> None:
    assert isinstance(load_pem_private_key(call('genPrivateKey "ed25519"').encode(), None), ed25519.Ed25519PrivateKey)


def test_passwords_are_hashed_and_texts_encrypted() -> None:
    user, _, hashed = call('htpasswd "ann" "secret"').partition(":")
    assert user == "ann"
    assert bcrypt.checkpw(b"secret", hashed.encode())
    assert not bcrypt.checkpw(b"other", hashed.encode())
    assert call('bcrypt "x"') != call('bcrypt "x"')
    assert call('encryptAES "key" "héllo" | decryptAES "key"') == "héllo"
    assert call("bcrypt .long", long="x" * 73).endswith("password length exceeds 72 bytes")
