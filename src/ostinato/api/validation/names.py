"""Validation of names, labels, annotations and finalizers.

- `is_...` functions return a list of messages without a field path; it is empty for a valid value. The messages are
  those of the API server; lengths are in bytes.
- Rules for particular fields (ports, environment variables, ...) are in `field_values`.
- A `NameRule` validates names of objects. With `prefix` it validates a `generateName`, which may end with a dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path

NameRule = Callable[[str, bool], list[str]]

LABEL_KEY_NAME_LENGTH: Final = 63
LABEL_VALUE_LENGTH: Final = 63
DNS_LABEL_LENGTH: Final = 63
DNS_SUBDOMAIN_LENGTH: Final = 253
FIELD_MANAGER_LENGTH: Final = 128
ANNOTATIONS_SIZE: Final = 256 * 1024
GENERATED_SUFFIX_LENGTH: Final = 5

# The patterns are part of the messages.
_LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123 = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_LABEL_1123_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123_UNDERSCORE = rf"{_LABEL_1123_UNDERSCORE}(\.{_LABEL_1123_UNDERSCORE})*"
_WILDCARD_SUBDOMAIN = rf"\*\.{_SUBDOMAIN_1123}"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_KEY_NAME})?"

_is_label_1123 = re.compile(_LABEL_1123).fullmatch
_is_subdomain_1123 = re.compile(_SUBDOMAIN_1123).fullmatch
_is_subdomain_1123_underscore = re.compile(_SUBDOMAIN_1123_UNDERSCORE).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_label_key = re.compile(f"({_SUBDOMAIN_1123}/)?{_LABEL_KEY_NAME}").fullmatch
_is_label_key_name = re.compile(_LABEL_KEY_NAME).fullmatch


def pattern_message(text: str, pattern: str, *examples: str) -> str:
    """Return the message for a value that does not match a pattern."""
    named = " or ".join(f"'{example}', " for example in examples)
    return f"{text} ({f'e.g. {named}' if examples else ''}regex used for validation is '{pattern}')"


_NOT_LABEL_1123 = pattern_message(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL_1123,
    "my-name",
    "123-abc",
)
_NOT_SUBDOMAIN_1123 = pattern_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN_1123,
    "example.com",
)
_NOT_SUBDOMAIN_1123_UNDERSCORE = pattern_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN_1123_UNDERSCORE,
    "example.com",
)
_NOT_SUBDOMAIN_1123_ANY_CASE = pattern_message(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN_1123,
    "Example.com",
)
_NOT_WILDCARD_SUBDOMAIN = pattern_message(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
    "which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD_SUBDOMAIN,
    "*.example.com",
)
_NOT_LABEL_1035 = pattern_message(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_NOT_LABEL_KEY_NAME = pattern_message(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _LABEL_KEY_NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_TOO_MANY_SLASHES = (
    f"a valid label key {_NOT_LABEL_KEY_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_NOT_LABEL_VALUE = pattern_message(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def byte_length(text: str) -> int:
    """Return the length in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def too_long(text: str, most: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {most} {unit}"] if byte_length(text) > most else []


# DNS


def is_dns1123_label(value: str) -> list[str]:
    if _is_label_1123(value) and len(value) <= DNS_LABEL_LENGTH:
        return []
    messages = too_long(value, DNS_LABEL_LENGTH)
    if not _is_label_1123(value):
        messages.append("must not contain dots" if _is_subdomain_1123(value) else _NOT_LABEL_1123)
    return messages


def is_dns1123_subdomain(value: str) -> list[str]:
    if _is_subdomain_1123(value) and len(value) <= DNS_SUBDOMAIN_LENGTH:
        return []
    messages = too_long(value, DNS_SUBDOMAIN_LENGTH)
    if not _is_subdomain_1123(value):
        messages.append(_NOT_SUBDOMAIN_1123)
    return messages


def is_dns1123_subdomain_with_underscore(value: str) -> list[str]:
    messages = too_long(value, DNS_SUBDOMAIN_LENGTH)
    if not _is_subdomain_1123_underscore(value):
        messages.append(_NOT_SUBDOMAIN_1123_UNDERSCORE)
    return messages


def is_dns1123_subdomain_of_any_case(value: str) -> list[str]:
    messages = too_long(value, DNS_SUBDOMAIN_LENGTH, "bytes")
    if not value.isascii() or not _is_subdomain_1123(value.lower()):
        messages.append(_NOT_SUBDOMAIN_1123_ANY_CASE)
    return messages


def is_wildcard_dns1123_subdomain(value: str) -> list[str]:
    messages = too_long(value, DNS_SUBDOMAIN_LENGTH)
    if not value.startswith("*.") or not _is_subdomain_1123(value[2:]):
        messages.append(_NOT_WILDCARD_SUBDOMAIN)
    return messages


def is_dns1035_label(value: str) -> list[str]:
    messages = too_long(value, DNS_LABEL_LENGTH)
    if not _is_label_1035(value):
        messages.append(_NOT_LABEL_1035)
    return messages


# Labels and annotations


def is_qualified_name(value: str) -> list[str]:
    """Validate a label key: a name, or a DNS subdomain, a slash and a name."""
    if len(value) <= LABEL_KEY_NAME_LENGTH and _is_label_key(value):
        return []  # fast path: no part can be too long
    match value.split("/"):
        case [name]:
            messages = []
        case ["", name]:
            messages = ["prefix part must be non-empty"]
        case [prefix, name]:
            messages = [f"prefix part {message}" for message in too_long(prefix, DNS_SUBDOMAIN_LENGTH, "bytes")]
            if not _is_subdomain_1123(prefix):
                messages.append(f"prefix part {_NOT_SUBDOMAIN_1123}")
        case _:
            return [_TOO_MANY_SLASHES]
    if not name:
        messages.append("name part must be non-empty")
    messages.extend(f"name part {message}" for message in too_long(name, LABEL_KEY_NAME_LENGTH, "bytes"))
    if not _is_label_key_name(name):
        messages.append(f"name part {_NOT_LABEL_KEY_NAME}")
    return messages


is_label_key = is_qualified_name
is_finalizer_name = is_qualified_name


def is_label_value(value: str) -> list[str]:
    if not value or (_is_label_key_name(value) and len(value) <= LABEL_VALUE_LENGTH):
        return []
    messages = too_long(value, LABEL_VALUE_LENGTH, "bytes")
    if not _is_label_key_name(value):
        messages.append(_NOT_LABEL_VALUE)
    return messages


def validate_field_manager(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a field manager: short and printable. Empty means that none was given."""
    errors = [FieldError.too_long(path, FIELD_MANAGER_LENGTH)] if byte_length(name) > FIELD_MANAGER_LENGTH else []
    if not name.isprintable():
        position = 0
        for character in name:
            if not character.isprintable():
                detail = f"invalid character U+{ord(character):04X} (at position {position})"
                errors.append(FieldError.invalid(path, name, detail))
            position += byte_length(character)
    return errors


def is_annotation_key(value: str) -> list[str]:
    """Validate an annotation key: a label key, with upper case allowed in the prefix."""
    return is_qualified_name(value.lower())


def validate_labels(labels: Mapping[str, str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors.extend(FieldError.invalid(path, key, message) for message in is_label_key(key))
        errors.extend(FieldError.invalid(path, value, message) for message in is_label_value(value))
    return errors


def validate_annotations(annotations: Mapping[str, str], path: Path) -> list[FieldError]:
    """Validate the keys, and the total size of keys and values."""
    errors: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        errors.extend(FieldError.invalid(path, key, message) for message in is_annotation_key(key))
        size += byte_length(key) + byte_length(value)
    if size > ANNOTATIONS_SIZE:
        errors.append(FieldError.too_long(path, ANNOTATIONS_SIZE))
    return errors


def validate_finalizers(finalizers: Sequence[str], path: Path) -> list[FieldError]:
    """Validate that each is a qualified name, and that not both orphan and foregroundDeletion are set."""
    errors = [
        FieldError.invalid(path, finalizer, message)
        for finalizer in finalizers
        for message in is_finalizer_name(finalizer)
    ]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(FieldError.invalid(path, list(finalizers), detail))
    return errors


def validate_built_in_finalizer(name: str, path: Path) -> list[FieldError]:
    """Validate a finalizer of a built-in kind: a standard one, or one with a domain prefix."""
    if "/" in name or name in ("kubernetes", "orphan", "foregroundDeletion"):
        return []
    return [FieldError.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def validate_no_new_finalizers(new: Sequence[str], old: Sequence[str], path: Path) -> list[FieldError]:
    """Validate that no finalizers are added to an object that is being deleted."""
    extra = sorted(set(new) - set(old))
    if not extra:
        return []
    shown = ", ".join(map(quote, extra))
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
    return [FieldError.forbidden(path, detail)]


# Names of objects


def _mask_trailing_dash(name: str) -> str:
    """Return a name to validate in place of a prefix. Kubernetes replaces the last two bytes, not only the dash."""
    if len(name) > 1 and name.endswith("-") and name[-2].isascii():
        return f"{name[:-2]}a"
    return name


def name_is_dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    return is_dns1123_subdomain(_mask_trailing_dash(name) if prefix else name)


def name_is_dns_label(name: str, prefix: bool = False) -> list[str]:
    return is_dns1123_label(_mask_trailing_dash(name) if prefix else name)


def name_is_dns1035_label(name: str, prefix: bool = False) -> list[str]:
    return is_dns1035_label(_mask_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool = False) -> list[str]:
    """Validate a segment of a URL path, the least strict rule."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    if "/" in name or "%" in name:
        return [f"may not contain '{character}'" for character in "/%" if character in name]
    return []


def generate_name_base(base: str) -> str:
    """Truncate a `generateName` so that it fits into a DNS label with the random suffix."""
    most = DNS_LABEL_LENGTH - GENERATED_SUFFIX_LENGTH
    if base.isascii():
        return base[:most]
    return base.encode("utf-8", "surrogatepass")[:most].decode("utf-8", "replace")
