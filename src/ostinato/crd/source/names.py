"""Names of attributes, from wire names, and of classes, from their path."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Final

from ostinato.api.struct import wire_name

_WORDS: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
_TYPES: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "msgspec", "str"})  # must not be shadowed


def attribute_name(wire: str, taken: Iterable[str] = ()) -> str:
    """Return the attribute of a wire name (clusterIPs: cluster_ips, from: from_), distinct from `taken`."""
    name = "_".join(_WORDS.findall(wire)).lower() or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    if keyword.iskeyword(name) or name in _TYPES:
        name += "_"
    return _free(name, taken)


def attribute_names(wires: Iterable[str]) -> dict[str, str]:
    """Return the attributes of wire names. On a collision the exact wire name has precedence."""
    found: dict[str, str] = {}
    for wire in sorted(wires, key=lambda each: (wire_name(attribute_name(each)) != each, each)):
        found[wire] = attribute_name(wire, found.values())
    return found


def class_name(way: Sequence[str], taken: Iterable[str]) -> str:
    """Return the class name of a path from the kind: the shortest one that is free.

    `("Widget", "spec", "template")` is WidgetTemplate, or WidgetSpecTemplate if that is taken.
    """
    first, *rest = [_camel(part) for part in way]
    for length in range(1, len(rest) + 1):
        name = first + "".join(rest[-length:])
        if name not in taken:
            return name
    return _free(first + "".join(rest), taken)


def kind_class_name(kind: str, taken: Iterable[str]) -> str:
    """Return the class name of a kind."""
    name, known = _camel(kind), set(taken)
    return _free(f"{name}Kind" if name in known else name, known)


def singular(name: str) -> str:
    """Return the singular of a name: containers, container."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith(("sses", "xes", "ches", "shes")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith(("ss", "us", "is")) else name


def _camel(text: str) -> str:
    name = "".join(part[:1].upper() + part[1:] for part in re.findall("[A-Za-z0-9]+", text)) or "Field"
    return f"Field{name}" if name[0].isdigit() else name


def _free(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    candidate, number = name, 2
    while candidate in known or keyword.iskeyword(candidate):
        candidate, number = f"{name.rstrip('_')}_{number}", number + 1
    return candidate
