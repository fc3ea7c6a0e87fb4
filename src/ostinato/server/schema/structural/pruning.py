"""Pruning: reduce an object to the fields of its structural schema.

- Unknown fields are dropped and reported, unless the node preserves them (`preserve`).
- Null is dropped unless the node is nullable or has a default; elsewhere null equals absent.
- Metadata of the object and of embedded resources is decoded to ObjectMeta.

The input is not modified. The output shares with it only values without a schema, and in `read_update` values of the
old object.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.text.go_format import json_text
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch
from ostinato.server.schema.decoding.builtin import read as read_builtin
from ostinato.server.schema.structural.node import TYPE_FIELDS, Structural

_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class _Findings:
    """The paths of unknown fields, built from the inside out so that known fields cost nothing."""

    __slots__ = ("fields", "metadata")

    def __init__(self) -> None:
        self.fields: list[str] = []
        self.metadata: list[str] = []  # those in the metadata of embedded resources

    def prefix(self, fields: int, metadata: int, step: str, exact: str) -> None:
        """Prefix the paths after the first `fields` and `metadata` ones with a step."""
        for paths, since, text in ((self.fields, fields, step), (self.metadata, metadata, exact)):
            for i in range(since, len(paths)):
                paths[i] = text + paths[i] if paths[i].startswith("[") else f"{text}.{paths[i]}"


class _BadEmbedded(Exception):  # noqa: N818
    """An embedded resource is invalid. The path is completed on the way out."""

    def __init__(self, field: str, value: Any, why: str) -> None:
        super().__init__(field)
        self.path = field
        self.value = value
        self.why = why

    def below(self, step: str) -> None:
        self.path = step + self.path if self.path.startswith("[") else f"{step}.{self.path}"


def read(node: Structural, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Decode a custom object; return it and the paths of its unknown fields.

    Raises TypeMismatch or BadValue for invalid metadata.
    """
    out: dict[str, Any] = {}
    unknown: list[str] = []
    if "metadata" in body:
        out["metadata"], strange = read_metadata(body["metadata"])
        unknown = [f"metadata.{path}" for path in strange]
    findings = _Findings()
    try:
        rest = _fields(
            {name: value for name, value in body.items() if name not in TYPE_FIELDS}, node, findings, node.preserve
        )
    except _BadEmbedded as error:
        raise BadValue(f"{error.path}: Invalid value: {json_text(error.value)}: {error.why}") from None
    out.update(rest)
    if findings.fields or findings.metadata:
        unknown += [*sorted(findings.fields), *sorted(findings.metadata)]
    return out, unknown


def read_metadata(value: Any) -> tuple[dict[str, Any], list[str]]:
    """Decode metadata; return it and the paths of its unknown fields. TypeMismatch or BadValue if it is invalid."""
    return read_builtin(_METADATA, value if value is not None else {})


def read_update(node: Structural, body: dict[str, Any], old: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Like `read`, for a body derived from a stored object, which is pruned already: values that both share are
    skipped.

    They are shared with the output, except for metadata and nodes with defaults, which are defaulted in place.
    """
    # A null is always processed, since the old object may lack the field.
    changed = {name: value for name, value in body.items() if value is None or value is not old.get(name)}
    if node.has_defaults:
        changed |= {name: value for name, value in body.items() if _has_defaults(node, name)}
    out, unknown = read(node, changed)
    made = dict(body)
    for name in changed:
        if name in out:
            made[name] = out[name]
        else:
            del made[name]
    if "metadata" in made and "metadata" not in changed:
        made["metadata"] = _copied(made["metadata"])
    return made, unknown


def _has_defaults(node: Structural, name: str) -> bool:
    below = node.child(name)
    return below is not None and below.has_defaults and name not in TYPE_FIELDS


def _copied(metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        name: dict(value) if type(value) is dict else list(value) if type(value) is list else value
        for name, value in metadata.items()
    }


def prune(node: Structural, value: Any) -> Any:
    """Prune a value below the root of an object. BadValue for invalid metadata of an embedded resource."""
    try:
        return _value(value, node, _Findings(), keep=node.preserve)
    except _BadEmbedded as error:
        raise BadValue(f"{error.path}: Invalid value: {json_text(error.value)}: {error.why}") from None


def _value(value: Any, node: Structural | None, findings: _Findings, *, keep: bool) -> Any:
    if type(value) is dict:
        if node is None:
            findings.fields.extend(value)
            return {}
        out = _fields(value, node, findings, keep)
        if node.embedded:
            _read_embedded(out, findings)
        return out
    if type(value) is list:
        return _items(value, node, findings, keep)
    return value


def _fields(value: dict[str, Any], node: Structural, findings: _Findings, keep: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    properties = node.properties
    for name, item in value.items():
        below = properties.get(name)
        if below is None:
            if node.embedded and name in TYPE_FIELDS:
                out[name] = item
                continue
            if not node.has_additional:
                if keep:
                    out[name] = item
                else:
                    findings.fields.append(name)
                continue
            below = node.additional
        elif node.embedded and name in TYPE_FIELDS:
            out[name] = item
            continue
        if type(item) is dict or type(item) is list:
            fields, metadata = len(findings.fields), len(findings.metadata)
            exact = name if name in properties else f"[{name}]"
            try:
                item = _value(item, below, findings, keep=below is not None and below.preserve)  # noqa: PLW2901
            except _BadEmbedded as error:
                error.below(exact)
                raise
            if len(findings.fields) > fields or len(findings.metadata) > metadata:
                findings.prefix(fields, metadata, name, exact)
        elif item is None and below is not None and not below.nullable and below.default is None:
            continue
        out[name] = item
    return out


def _items(value: list[Any], node: Structural | None, findings: _Findings, keep: bool) -> list[Any]:
    below = node.items if node is not None else None
    if below is None and keep:
        return value
    # Preserving applies to the items of a list, too, one level deep.
    keep = keep or (below is not None and below.preserve)
    out = []
    for i, item in enumerate(value):
        fields, metadata = len(findings.fields), len(findings.metadata)
        try:
            out.append(_value(item, below, findings, keep=keep))
        except _BadEmbedded as error:
            error.below(f"[{i}]")
            raise
        if len(findings.fields) > fields or len(findings.metadata) > metadata:
            findings.prefix(fields, metadata, f"[{i}]", f"[{i}]")
    return out


def _read_embedded(value: dict[str, Any], findings: _Findings) -> None:
    """Decode the metadata of an embedded resource, in place."""
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            raise _BadEmbedded(name, value[name], "must be a string")
    if "metadata" not in value:
        return
    metadata = value["metadata"]
    try:
        value["metadata"], strange = read_builtin(_METADATA, metadata if metadata is not None else {})
    except (TypeMismatch, BadValue) as error:
        raise _BadEmbedded("metadata", metadata, str(error)) from None
    findings.metadata.extend(f"metadata.{path}" for path in strange)
