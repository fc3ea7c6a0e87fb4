"""Validation of particular fields: keys of ConfigMaps, environment variables, ports, percentages, domains and paths.

The `is_...` functions return messages, as those of `names`. The `validate_...` functions return field errors, as the
invalid value may be a part of the field's.
"""

from __future__ import annotations

import re

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import (
    DNS_SUBDOMAIN_LENGTH,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_label_key,
    pattern_message,
    too_long,
)

_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_ENV_VAR = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_HTTP_HEADER = "[-A-Za-z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PERCENT = "[0-9]+%"

_is_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_env_var = re.compile(_ENV_VAR).fullmatch
_is_http_header = re.compile(_HTTP_HEADER).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_decimal_integer = re.compile("0|-?[1-9][0-9]*").fullmatch

_NOT_C_IDENTIFIER = pattern_message(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_NOT_CONFIG_KEY = pattern_message(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_NOT_ENV_VAR = pattern_message(
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit",
    _ENV_VAR,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
_NOT_HTTP_HEADER = pattern_message(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HTTP_HEADER, "X-Header-Name"
)
_NOT_PERCENT = pattern_message(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_NOT_HTTP_PATH = pattern_message("Invalid path", _HTTP_PATH)


def is_c_identifier(value: str) -> list[str]:
    return [] if _is_c_identifier(value) else [_NOT_C_IDENTIFIER]


def is_config_map_key(value: str) -> list[str]:
    """Validate a key of a ConfigMap or Secret: a file name without a path."""
    if _is_config_key(value) and len(value) <= DNS_SUBDOMAIN_LENGTH and value[0] != ".":
        return []  # nearly every key
    messages = too_long(value, DNS_SUBDOMAIN_LENGTH)
    if not _is_config_key(value):
        messages.append(_NOT_CONFIG_KEY)
    return messages + _not_upwards(value)


def is_env_var_name(value: str) -> list[str]:
    """Validate strictly; the server uses `is_relaxed_env_var_name`."""
    messages = [] if _is_env_var(value) else [_NOT_ENV_VAR]
    return messages + _not_upwards(value)


def is_relaxed_env_var_name(value: str) -> list[str]:
    if not value:
        return ["environment variable name must be non-empty"]
    if value.isascii() and value.isprintable() and "=" not in value:
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def is_http_header_name(value: str) -> list[str]:
    return [] if _is_http_header(value) else [_NOT_HTTP_HEADER]


def is_percent(value: str) -> list[str]:
    return [] if _is_percent(value) else [_NOT_PERCENT]


def is_decimal_integer(value: str) -> list[str]:
    """Validate a canonical integer: no plus sign, no leading zeros."""
    if not value:
        return ["must be non-empty"]
    return [] if _is_decimal_integer(value) else ["must be a valid decimal integer in canonical form"]


def is_in_range(value: int, least: int, most: int) -> list[str]:
    return [] if least <= value <= most else [f"must be between {least} and {most}, inclusive"]


def is_port_number(port: int) -> list[str]:
    return is_in_range(port, 1, 65535)


def is_user_id(number: int) -> list[str]:
    """Validate a user or group id."""
    return is_in_range(number, 0, 2**31 - 1)


def is_port_name(port: str) -> list[str]:
    messages = too_long(port, 15)
    if not _is_port_name(port):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(port):
        messages.append("must contain at least one letter (a-z)")
    if "--" in port:
        messages.append("must not contain consecutive hyphens")
    if port.startswith("-") or port.endswith("-"):
        messages.append("must not begin or end with a hyphen")
    return messages


def _not_upwards(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


# Domains


def validate_fully_qualified_name(name: str, path: Path) -> list[FieldError]:
    """Validate a domain of at least three parts, as names of signers and drivers."""
    if not name:
        return [FieldError.required(path)]
    if messages := is_dns1123_subdomain(name):
        return [FieldError.invalid(path, name, ",".join(messages))]
    if name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        return [FieldError.invalid(path, name, detail)]
    return []


def validate_fully_qualified_domain_name(name: str, path: Path) -> list[FieldError]:
    """Validate a domain of at least two parts, with an optional dot at the end."""
    if not name:
        return [FieldError.required(path)]
    name = name.removesuffix(".")
    if messages := is_dns1123_subdomain(name):
        return [FieldError.invalid(path, name, ",".join(messages))]
    labels = name.split(".")
    if len(labels) < 2:
        return [FieldError.invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if messages := is_dns1123_label(label):
            return [FieldError.invalid(path, label, ",".join(messages))]
    return []


def validate_domain_prefixed_path(value: str, path: Path) -> list[FieldError]:
    """Validate a domain, a slash and an HTTP path: "acme.io/foo"."""
    if not value:
        return [FieldError.required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [FieldError.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [FieldError.invalid(path, host, message) for message in is_dns1123_subdomain(host)]
    if not _is_http_path(rest):
        errors.append(FieldError.invalid(path, rest, _NOT_HTTP_PATH))
    return errors


def validate_domain_prefixed_key(value: str, path: Path) -> list[FieldError]:
    """Validate a label key with a domain prefix."""
    if not value:
        return [FieldError.required(path)]
    if messages := is_label_key(value):
        return [FieldError.invalid(path, value, message) for message in messages]
    if "/" not in value:
        return [FieldError.invalid(path, value, 'must be a domain-prefixed key (such as "acme.io/foo")')]
    return []
