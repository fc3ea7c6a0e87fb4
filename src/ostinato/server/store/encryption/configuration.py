"""Encryption configuration: an apiserver.config.k8s.io/v1 EncryptionConfiguration file.

- The first entry that matches a resource has its providers. The first provider encrypts, all of them decrypt.
- Entries name resources (`secrets`, `deployments.apps`), all resources of a group (`*.apps`, `*.` for the core group)
  or all resources (`*.*`).
- An EncryptionError names the file and the field, and never a key.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any, Final

import msgspec

from ostinato.api.validation.field_errors import Path
from ostinato.api.wire.files import UnreadableFileError, read_yaml
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.encryption.providers import AesCbc, AesGcm, Identity, Provider, SecretBox
from ostinato.world import Ids

_VERSION: Final = "apiserver.config.k8s.io/v1"
_CIPHERS: Final = {each.cipher: each for each in (AesGcm, AesCbc, SecretBox)}


class EncryptionError(ValueError):
    """The configuration is invalid."""


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    secret: str = ""


class _Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: tuple[_Key, ...] = ()


class _Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    aesgcm: _Keys | None = None
    aescbc: _Keys | None = None
    secretbox: _Keys | None = None
    identity: dict[str, Any] | None = None
    kms: dict[str, Any] | None = None


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resources: tuple[str, ...] = ()
    providers: tuple[_Provider, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    kind: str
    api_version: str
    resources: tuple[_Entry, ...] = ()
    metadata: dict[str, Any] = {}


def load(path: FilePath, ids: Ids) -> Encryption:
    """Load a configuration file. Raises EncryptionError."""
    try:
        content = read_yaml(path)
    except UnreadableFileError as error:
        raise EncryptionError(str(error)) from None
    try:
        return parse(content, ids)
    except EncryptionError as error:
        raise EncryptionError(f"{path}: {error}") from None


def parse(content: Any, ids: Ids) -> Encryption:
    """Read a decoded configuration. Raises EncryptionError."""
    try:
        file = msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        raise EncryptionError(str(error)) from None
    if (file.kind, file.api_version) != ("EncryptionConfiguration", _VERSION):
        raise EncryptionError(
            f"is a {file.kind} of {file.api_version}; it must be an EncryptionConfiguration of {_VERSION}"
        )
    root = Path("resources")
    if not file.resources:
        raise EncryptionError(f"{root}: is empty; name the resources to encrypt, such as secrets")
    entries: list[tuple[Sequence[str], Sequence[Provider]]] = []
    seen: set[str] = set()
    for number, entry in enumerate(file.resources):
        at = root.index(number)
        _check_resources(entry.resources, at.child("resources"), seen)
        if not entry.providers:
            raise EncryptionError(f"{at.child('providers')}: is empty; {{identity: {{}}}} stores objects unencrypted")
        providers = [
            each
            for place, one in enumerate(entry.providers)
            for each in _read(one, at.child("providers").index(place), ids)
        ]
        entries.append((entry.resources, providers))
    return Encryption(entries)


def _check_resources(names: Sequence[str], at: Path, seen: set[str]) -> None:
    if not names:
        raise EncryptionError(f"{at}: is empty; name the resources to encrypt, such as secrets")
    for number, name in enumerate(names):
        here = at.index(number)
        plural, dot, group = name.partition(".")
        if name == "*" or not plural or name != name.lower() or (plural != "*" and dot and not group):
            raise EncryptionError(f"{here}: {name!r} is not a resource; use PLURAL, PLURAL.GROUP, *.GROUP, *. or *.*")
        if name in seen or "*.*" in seen or f"*.{group}" in seen:
            raise EncryptionError(f"{here}: {name!r} has no effect, since an earlier entry matches it; put it first")
        seen.add(name)


def _read(one: _Provider, at: Path, ids: Ids) -> Iterator[Provider]:
    given = [name for name in one.__struct_fields__ if getattr(one, name) is not None]
    if len(given) != 1:
        found = "has none" if not given else f"has {' and '.join(given)}"
        raise EncryptionError(f"{at}: {found}; each item of the list must have exactly one provider")
    (name,) = given
    if name == "kms":
        raise EncryptionError(f"{at.child('kms')}: not supported; use aesgcm or secretbox")
    if name == "identity":
        yield Identity()
        return
    cipher = _CIPHERS[name]
    keys: _Keys = getattr(one, name)
    place = at.child(name).child("keys")
    if not keys.keys:
        raise EncryptionError(f"{place}: is empty; it needs a key with name and secret")
    for number, key in enumerate(keys.keys):
        here = place.index(number)
        if not key.name or ":" in key.name:
            raise EncryptionError(f"{here.child('name')}: must be set, and must not contain a colon")
        if any(key.name == other.name for other in keys.keys[:number]):
            raise EncryptionError(f"{here.child('name')}: {key.name!r} is not unique")
        try:
            yield cipher(key.name, _secret(key, here.child("secret"), cipher.key_sizes), ids)
        except ImportError:
            raise EncryptionError(f"{at}: {name} needs PyNaCl; pip install 'ostinato[secretbox]'") from None


def _secret(key: _Key, at: Path, sizes: Sequence[int]) -> bytes:
    try:
        secret = base64.b64decode(key.secret, validate=True)
    except (binascii.Error, ValueError):
        raise EncryptionError(f"{at}: is not base64; use the output of: head -c 32 /dev/urandom | base64") from None
    if len(secret) not in sizes:
        wanted = " or ".join(map(str, sizes))
        raise EncryptionError(f"{at}: has {len(secret)} bytes and must have {wanted}: head -c 32 /dev/urandom | base64")
    return secret
