"""Ciphers of stored objects. Vectors: what kube-apiserver's transformers stored, tests/data/server/encryption.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ostinato.server.store.encryption.providers import AesCbc, AesGcm, DecryptionError, Identity, SecretBox
from ostinato.world import Simulation

VECTORS = json.loads((Path(__file__).parents[4] / "data" / "server" / "encryption.json").read_text())
CIPHERS: dict[str, Any] = {each.cipher: each for each in (AesGcm, AesCbc, SecretBox)}
CONTEXT = b"secrets/default/a"


def provider(cipher: str, key: bytes = b"k" * 32) -> Any:
    return CIPHERS[cipher]("key1", key, Simulation(seed=1).ids)


def test_values_that_kube_apiserver_stored_are_read() -> None:
    assert {each["cipher"] for each in VECTORS} == set(CIPHERS)
    for each in VECTORS:
        cipher = provider(each["cipher"], base64.b64decode(each["key"]))
        stored = base64.b64decode(each["stored"])
        assert stored.startswith(cipher.prefix)
        assert cipher.decrypt(stored, each["context"].encode()) == each["text"].encode(), each


@pytest.mark.parametrize("cipher", sorted(CIPHERS))
def test_a_value_is_read_as_it_was_written_and_looks_different_each_time(cipher: str) -> None:
    one = provider(cipher)
    for data in (b"", b"a", b"x" * 16, b"{}" * 1000):
        stored = one.encrypt(data, CONTEXT)
        assert one.decrypt(stored, CONTEXT) == data
        assert data == b"" or data not in stored[len(one.prefix) :]
        assert stored != one.encrypt(data, CONTEXT), "the nonce must not be used twice"


@pytest.mark.parametrize("cipher", ["aesgcm", "secretbox"])
def test_a_modified_value_is_refused(cipher: str) -> None:
    one = provider(cipher)
    stored = one.encrypt(b'{"a":1}', CONTEXT)
    for place in range(len(one.prefix), len(stored)):
        changed = bytearray(stored)
        changed[place] ^= 1
        with pytest.raises(DecryptionError):
            one.decrypt(bytes(changed), CONTEXT)


@pytest.mark.parametrize("cipher", sorted(CIPHERS))
def test_an_incomplete_value_and_a_wrong_key_are_refused(cipher: str) -> None:
    stored = provider(cipher).encrypt(b'{"a":1}', CONTEXT)
    for length in range(len(provider(cipher).prefix), len(stored)):
        with pytest.raises(DecryptionError):
            provider(cipher).decrypt(stored[:length], CONTEXT)
    with pytest.raises(DecryptionError):
        provider(cipher, b"o" * 32).decrypt(stored, CONTEXT)


def test_a_value_of_another_object_is_refused_by_aesgcm() -> None:
    with pytest.raises(DecryptionError):
        provider("aesgcm").decrypt(provider("aesgcm").encrypt(b"{}", CONTEXT), b"secrets/default/b")


def test_identity_changes_nothing() -> None:
    assert Identity().decrypt(Identity().encrypt(b"{}", CONTEXT), CONTEXT) == b"{}"
