"""EncryptionConfiguration files: which providers a resource has, and what is refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ostinato.server.store.encryption.configuration import EncryptionError, load, parse
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.world import Simulation

KEY = base64.b64encode(b"k" * 32).decode()
IDENTITY: dict[str, Any] = {"identity": {}}


def aesgcm(*names: str, secret: str = KEY) -> dict[str, Any]:
    return {"aesgcm": {"keys": [{"name": name, "secret": secret} for name in names]}}


def read(*entries: tuple[list[str], list[dict[str, Any]]]) -> Encryption:
    resources = [{"resources": names, "providers": providers} for names, providers in entries]
    content = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": resources}
    return parse(content, Simulation(seed=1).ids)


def prefixes(encryption: Encryption, collection: str) -> list[bytes]:
    return [provider.prefix for provider in encryption.providers(collection)]


def test_the_first_matching_entry_has_the_providers_in_order() -> None:
    encryption = read(
        (["secrets", "widgets.example.com"], [aesgcm("new", "old"), IDENTITY]),
        (["configmaps"], [IDENTITY]),
        (["*.apps"], [aesgcm("apps")]),
        (["*."], [aesgcm("core")]),
        (["*.*"], [aesgcm("rest")]),
    )
    assert prefixes(encryption, "secrets") == [b"k8s:enc:aesgcm:v1:new:", b"k8s:enc:aesgcm:v1:old:", b""]
    assert prefixes(encryption, "widgets.example.com") == prefixes(encryption, "secrets")
    assert prefixes(encryption, "configmaps") == [b""]
    assert prefixes(encryption, "deployments.apps") == [b"k8s:enc:aesgcm:v1:apps:"]
    assert prefixes(encryption, "pods") == [b"k8s:enc:aesgcm:v1:core:"]
    assert prefixes(encryption, "leases.coordination.k8s.io") == [b"k8s:enc:aesgcm:v1:rest:"]


def test_resources_without_an_entry_are_not_encrypted() -> None:
    assert prefixes(read((["secrets"], [aesgcm("a")])), "configmaps") == [b""]
    assert not Encryption().is_configured


BAD: list[tuple[list[tuple[list[str], list[dict[str, Any]]]], str]] = [
    ([], "resources: is empty"),
    ([([], [IDENTITY])], "resources[0].resources: is empty"),
    ([(["secrets"], [])], "resources[0].providers: is empty"),
    ([(["secrets"], [{}])], "resources[0].providers[0]: has none"),
    ([(["secrets"], [{**IDENTITY, **aesgcm("a")}])], "resources[0].providers[0]: has aesgcm and identity"),
    (
        [(["secrets"], [{"kms": {"name": "x"}}])],
        "providers[0].kms: not supported; use aesgcm or secretbox",
    ),
    ([(["secrets"], [aesgcm()])], "resources[0].providers[0].aesgcm.keys: is empty"),
    ([(["secrets"], [aesgcm("a", "a")])], "keys[1].name: 'a' is not unique"),
    ([(["secrets"], [aesgcm("a:b")])], "keys[0].name: must be set, and must not contain a colon"),
    ([(["secrets"], [aesgcm("a", secret="***")])], "keys[0].secret: is not base64"),
    ([(["secrets"], [aesgcm("a", secret="YWJj")])], "keys[0].secret: has 3 bytes and must have 16 or 24 or 32"),
    ([(["Secrets"], [IDENTITY])], "'Secrets' is not a resource"),
    ([(["*"], [IDENTITY])], "'*' is not a resource"),
    ([(["secrets."], [IDENTITY])], "'secrets.' is not a resource"),
    ([(["*.*"], [IDENTITY]), (["secrets"], [aesgcm("a")])], "resources[1].resources[0]: 'secrets' has no effect"),
    ([(["*."], [IDENTITY]), (["secrets"], [aesgcm("a")])], "'secrets' has no effect"),
    ([(["secrets", "secrets"], [IDENTITY])], "resources[0].resources[1]: 'secrets' has no effect"),
]


@pytest.mark.parametrize(("entries", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_configuration_is_refused_with_the_field(entries: Any, message: str) -> None:
    with pytest.raises(EncryptionError) as caught:
        read(*entries)
    assert message in str(caught.value)
    assert KEY not in str(caught.value)


def test_errors_of_files_name_the_file(tmp_path: Path) -> None:
    ids = Simulation(seed=1).ids
    file = tmp_path / "encryption.yaml"
    for content, message in (
        (None, "cannot be read"),
        ("a: [", "is neither YAML nor JSON"),
        ("kind: Secret\napiVersion: v1\n", "is a Secret of v1; it must be an EncryptionConfiguration"),
        ("kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresource: []\n", "resource"),
    ):
        if content is not None:
            file.write_text(content)
        with pytest.raises(EncryptionError, match=message) as caught:
            load(file, ids)
        assert str(file) in str(caught.value)
