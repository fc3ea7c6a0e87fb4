"""The format library: named string formats and their validation messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api.validation import names
from ostinato.api.validation.formats import text_check
from ostinato.cel.libraries.urls import problem
from ostinato.cel.values import NONE, Library, Optional


class NamedFormat(Library):
    __slots__ = ("faults", "name", "pattern_size")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, faults: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.faults = faults
        self.pattern_size = pattern_size  # length of the longest pattern of the format, for costs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _checked(name: str, fault: str) -> Callable[[str], list[str]]:
    check = text_check(name)
    return lambda text: [] if check is None or check(text) else [fault]


def _uri(text: str) -> list[str]:
    why = problem(text)
    return [why] if why else []


_FORMATS: Final = {
    name: NamedFormat(name, faults, size)
    for name, faults, size in (
        ("dns1123Label", names.name_is_dns_label, 30),
        ("dns1123Subdomain", names.name_is_dns_subdomain, 60),
        ("dns1035Label", names.name_is_dns1035_label, 30),
        ("qualifiedName", names.is_qualified_name, 60),
        ("dns1123LabelPrefix", lambda text: names.name_is_dns_label(text, prefix=True), 30),
        ("dns1123SubdomainPrefix", lambda text: names.name_is_dns_subdomain(text, prefix=True), 60),
        ("dns1035LabelPrefix", lambda text: names.name_is_dns1035_label(text, prefix=True), 30),
        ("labelValue", names.is_label_value, 40),
        ("uri", _uri, 1104),
        ("uuid", _checked("uuid", "does not match the UUID format"), 72),
        ("byte", _checked("byte", "invalid base64"), 84),
        ("date", _checked("date", "invalid date"), 72),
        ("datetime", _checked("date-time", "invalid datetime"), 72),
    )
}


def _validated(form: NamedFormat, text: str) -> Optional:
    faults = form.faults(text)
    return Optional(faults) if faults else NONE


def _named(name: str) -> Optional:
    return Optional(_FORMATS[name]) if name in _FORMATS else NONE


def _always(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{f"format.{name}": _always(form) for name, form in _FORMATS.items()},
    "format-named": _named,
    "format-validate": _validated,
}
