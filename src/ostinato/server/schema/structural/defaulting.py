"""Defaulting by a structural schema.

A default replaces an absent field, and null if the field is not nullable. Defaults also apply below defaulted values.
"""

from __future__ import annotations

from typing import Any

from ostinato.server.schema.structural.node import Structural


def apply_defaults(node: Structural, value: Any) -> None:
    """Apply defaults to a value, in place. The nodes on the way to a default must not be shared with other objects."""
    if type(value) is dict:
        _default_fields(node, value)
    elif type(value) is list and node.items is not None and node.items.has_defaults:
        items = node.items
        for i, item in enumerate(value):
            if item is None and not items.nullable:
                value[i] = _copy(items.default)
            if type(value[i]) is dict or type(value[i]) is list:
                apply_defaults(items, value[i])


def _default_fields(node: Structural, value: dict[str, Any]) -> None:
    for name, default, nullable in node.defaults:
        if name not in value or (value[name] is None and not nullable):
            value[name] = _copy(default)
    for name, below in node.defaults_below:
        if name in value:
            apply_defaults(below, value[name])
    additional = node.additional
    if additional is not None and additional.has_defaults:
        properties = node.properties
        for name, item in value.items():
            if name in properties:
                continue
            if item is None and not additional.nullable:
                value[name] = _copy(additional.default)
            apply_defaults(additional, value[name])


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copy(item) for name, item in value.items()}
    if type(value) is list:
        return [_copy(item) for item in value]
    return value
