"""Strategies of Secrets and ConfigMaps."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ostinato.api.validation import field_values
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import byte_length
from ostinato.api.wire import DecodeError, decode_json
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import unchanged
from ostinato.server.schema.decoding.builtin import json_type

MOST_BYTES = 1024 * 1024
_DATA, _BINARY_DATA = Path("data"), Path("binaryData")
_IMMUTABLE = "field is immutable when `immutable` is set"
_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"
_DOCKER_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


class ConfigMap(Strategy):
    def validate(self, obj: Json) -> list[FieldError]:
        data, binary = obj.get("data", {}), obj.get("binaryData", {})
        errors: list[FieldError] = []
        size = 0
        for key, value in data.items():
            errors += _key_faults(key, _DATA)
            if key in binary:
                errors.append(FieldError.invalid(_DATA.key(key), key, "duplicate of key present in binaryData"))
            size += byte_length(value)
        for key, value in binary.items():
            errors += _key_faults(key, _BINARY_DATA)
            size += decoded_length(value)
        if size > MOST_BYTES:
            errors.append(FieldError.too_long(Path("[]"), MOST_BYTES))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _validate_immutable(new, old, ("data", "binaryData")) + self.validate(new)


class Secret(Strategy):
    selectable = ("type",)

    def default(self, obj: Json) -> None:
        obj.setdefault("type", "Opaque")
        text = obj.pop("stringData", None)  # write-only field
        if text:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
            obj["data"] = {**obj.get("data", {}), **encoded}

    def validate(self, obj: Json) -> list[FieldError]:
        data = obj.get("data", {})
        errors: list[FieldError] = []
        for key in data:
            errors += _key_faults(key, _DATA)
        if sum(map(decoded_length, data.values())) > MOST_BYTES:
            errors.append(FieldError.too_long(_DATA, MOST_BYTES))
        return errors + _validate_type(obj["type"], data, obj["metadata"])

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = unchanged(new.get("type"), old.get("type"), Path("type"))
        return errors + _validate_immutable(new, old, ("data",)) + self.validate(new)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return _pair_warnings(new.get("data", {})) if new["type"] == "kubernetes.io/tls" else []

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"type": obj.get("type", "")}


def _key_faults(key: str, path: Path) -> list[FieldError]:
    return [FieldError.invalid(path.key(key), key, text) for text in field_values.is_config_map_key(key)]


def decoded_length(text: str) -> int:
    """The number of bytes that base64 text decodes to."""
    return len(text) // 4 * 3 - text[-2:].count("=")


def _validate_immutable(new: Json, old: Json, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [FieldError.forbidden(Path("immutable"), _IMMUTABLE)]
    errors += [FieldError.forbidden(Path(field), _IMMUTABLE) for field in fields if new.get(field) != old.get(field)]
    return errors


def _validate_type(kind: str, data: Mapping[str, str], metadata: Json) -> list[FieldError]:
    match kind:
        case "kubernetes.io/service-account-token":
            if not metadata.get("annotations", {}).get(_SERVICE_ACCOUNT):
                return [FieldError.required(Path("metadata", "annotations").key(_SERVICE_ACCOUNT))]
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson":
            return _validate_docker(_DOCKER_KEYS[kind], data)
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                return _missing("username", "password")
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return _missing("ssh-privatekey")
        case "kubernetes.io/tls":
            return _missing(*(key for key in ("tls.crt", "tls.key") if key not in data))
    return []


def _pair_warnings(data: Mapping[str, str]) -> list[str]:
    """Warn about a TLS certificate and key that cannot be parsed."""
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in base64.b64decode(data.get(key, "")):
            return [f"tls: failed to find any PEM data in {what} input"]
    return []


def _missing(*keys: str) -> list[FieldError]:
    return [FieldError.required(_DATA.key(key)) for key in keys]


def _validate_docker(key: str, data: Mapping[str, str]) -> list[FieldError]:
    if key not in data:
        return _missing(key)
    try:
        value = decode_json(base64.b64decode(data[key]))
        if value is None or isinstance(value, dict):
            return []
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
    except DecodeError as error:
        why = str(error)
    return [FieldError.invalid(_DATA.key(key), "<secret contents redacted>", why)]
