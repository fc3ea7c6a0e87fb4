"""An object as lines of YAML, each with the owners of its field, from managedFields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ostinato.page.facts import Fact

Json = dict[str, Any]
_Owned = list[tuple[str, Json]]  # owners, and what they own below the current field

_PLAIN: Final = re.compile(r"[A-Za-z_/][\w./@+-]*( [\w./@+-]+)*")
_RESERVED: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"})


class Line(Fact, frozen=True):
    text: str
    owner: str | None = None


def yaml_lines(instance: Json) -> list[Line]:
    """Return the object without its managedFields."""
    metadata = instance.get("metadata")
    owned: _Owned = []
    if isinstance(metadata, dict):
        owned = [(owner_name(each), each.get("fieldsV1") or {}) for each in metadata.get("managedFields") or ()]
        metadata = {name: value for name, value in metadata.items() if name != "managedFields"}
        instance = {**instance, "metadata": metadata}
    return [*_mapping(instance, owned, "")]


def owner_name(entry: Json) -> str:
    """Return the name of an entry of managedFields: its manager, and the subresource that it wrote."""
    manager, subresource = str(entry.get("manager") or "unknown"), entry.get("subresource")
    return f"{manager} ({subresource})" if subresource else manager


def _mapping(value: Json, owned: _Owned, indent: str) -> Iterator[Line]:
    for name, each in value.items():
        yield from _field(f"{indent}{_scalar(name)}:", each, _below(owned, f"f:{name}"), indent)


def _field(begin: str, value: Any, owned: _Owned, indent: str) -> Iterator[Line]:
    if isinstance(value, dict) and value:
        yield Line(begin, _owner(owned))
        yield from _mapping(value, owned, f"{indent}  ")
    elif isinstance(value, list) and value:
        yield Line(begin, _owner(owned))
        for element in value:
            yield from _element(element, _of_element(owned, element), indent)
    elif isinstance(value, str) and "\n" in value:
        yield Line(f"{begin} |" + ("" if value.endswith("\n") else "-"), _owner(owned))
        for line in value.removesuffix("\n").split("\n"):
            yield Line(f"{indent}  {line}", _owner(owned))
    else:
        yield Line(f"{begin} {_scalar(value)}", _owner(owned))


def _element(value: Any, owned: _Owned, indent: str) -> Iterator[Line]:
    if not isinstance(value, dict | list) or not value:
        yield Line(f"{indent}- {_scalar(value)}", _owner(owned))
        return
    inner = [*_mapping(value, owned, f"{indent}  ")] if isinstance(value, dict) else []
    if isinstance(value, list):
        inner = [line for each in value for line in _element(each, [], f"{indent}  ")]
    first = inner[0]
    yield Line(f"{indent}- {first.text[len(indent) + 2 :]}", first.owner)
    yield from inner[1:]


def _below(owned: _Owned, name: str) -> _Owned:
    return [(owner, fields[name]) for owner, fields in owned if isinstance(fields.get(name), dict)]


def _of_element(owned: _Owned, element: Any) -> _Owned:
    """Return who owns an element of a list: by its key fields, or by its value; of an atomic list all."""
    found: _Owned = []
    for owner, fields in owned:
        if not fields:
            found.append((owner, {}))
        for name, inner in fields.items():
            if _names(name, element) and isinstance(inner, dict):
                found.append((owner, inner))
    return found


def _names(name: str, element: Any) -> bool:
    kind, _, text = name.partition(":")
    if kind not in ("k", "v"):
        return False
    try:
        wanted = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    if kind == "v":
        return bool(wanted == element)
    return isinstance(element, dict) and all(element.get(key) == value for key, value in wanted.items())


def _owner(owned: _Owned) -> str | None:
    """Return who owns a field itself, or the only one that owns something below it."""
    leaves = [owner for owner, fields in owned if not fields or "." in fields]
    names = dict.fromkeys(leaves or ([owned[0][0]] if len(owned) == 1 else []))
    return ", ".join(names) or None


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    return msgspec.json.encode(value).decode()
