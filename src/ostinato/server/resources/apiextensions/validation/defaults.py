"""Validation of defaults in a schema: each must be valid for its schema and contain no unknown fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.schema.decoding.builtin import BadValue
from ostinato.server.schema.rules.evaluation import check_rules, rule_tree
from ostinato.server.schema.structural.embedded_resources import embedded_faults
from ostinato.server.schema.structural.node import TYPE_FIELDS, Structural
from ostinato.server.schema.structural.pruning import prune
from ostinato.server.schema.validation.explain import explain


def default_faults(schema: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the defaults in the schema of a kind."""
    return _below(Structural({**schema, "x-kubernetes-embedded-resource": True}), path, metadata=False)


def _below(node: Structural, path: Path, *, metadata: bool) -> list[FieldError]:
    """Validate the defaults at and below a node; `metadata`: the node is part of ObjectMeta."""
    errors: list[FieldError] = []
    if not node.has_defaults:
        return errors
    if node.default is not None:
        errors += _faults(node, path.child("default"), metadata=metadata)
    if node.items is not None:
        errors += _below(node.items, path.child("items"), metadata=metadata)
    for name, below in node.properties.items():
        inside = name in TYPE_FIELDS if node.embedded else metadata
        errors += _below(below, path.child("properties").key(name), metadata=inside)
    return errors


def _faults(node: Structural, path: Path, *, metadata: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    try:
        pruned = prune(node, node.default)
    except BadValue as error:
        return [FieldError.invalid(path, node.default, str(error))]
    if not metadata and pruned != node.default:
        errors.append(FieldError.invalid(path, node.default, "must not have unknown fields"))
    embedded = embedded_faults(node, node.default, path)
    if embedded:
        return errors + embedded
    return errors + (explain(_without_int_or_string(node.raw), node.default, str(path)) or _rule_violations(node, path))


def _without_int_or_string(raw: Any) -> Any:
    """The schema without `x-kubernetes-int-or-string`: a default is not type-checked there, except by alternatives."""
    if isinstance(raw, Mapping):
        return {
            name: _without_int_or_string(value) for name, value in raw.items() if name != "x-kubernetes-int-or-string"
        }
    return [_without_int_or_string(item) for item in raw] if isinstance(raw, list) else raw


def _rule_violations(node: Structural, path: Path) -> list[FieldError]:
    """Validate a default against the CEL rules, whether or not the old definition had it."""
    tree = rule_tree(node.raw, root=node.embedded)
    if tree is None:
        return []
    past = check_rules(tree, node.default, node.default, path=path).errors
    return past or check_rules(tree, node.default, None, path=path).errors
