"""Schema validation errors of a value, with kube-apiserver's messages.

Messages and their order follow kube-openapi: which alternative of `anyOf` and `oneOf` is reported depends on how many
checks it passed, so passed checks are counted. Ratcheting: on an update, errors of unchanged values are ignored
(`CorrelatedValue` holds the old values).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ostinato.api.text.go_format import json_text, quote
from ostinato.api.text.patterns import pattern
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.formats import known_format, text_check
from ostinato.server.schema.structural.node import Structural
from ostinato.server.schema.validation.check import type_fault, types_of
from ostinato.server.schema.validation.equality import equal, in_enum
from ostinato.server.schema.validation.numbers import Fault, number_faults


class CorrelatedValue:
    """The old value of an update, as long as the old and new value can be correlated."""

    __slots__ = ("_by_key", "new", "node", "old")

    def __init__(self, node: Structural, new: Any, old: Any) -> None:
        self.node = node
        self.new = new
        self.old = old
        self._by_key: dict[str, Any] | None = None

    def field(self, name: str) -> CorrelatedValue | None:
        if type(self.new) is not dict or type(self.old) is not dict or name not in self.new or name not in self.old:
            return None
        below = self.node.child(name)
        return None if below is None else CorrelatedValue(below, self.new[name], self.old[name])

    def item(self, index: int) -> CorrelatedValue | None:
        """The old item of a list; items are correlated by their map keys."""
        node = self.node
        if type(self.new) is not list or type(self.old) is not list or node.list_type != "map" or node.items is None:
            return None
        if self._by_key is None:
            self._by_key = {_key(node, item): item for item in reversed(self.old)}
        item = self.new[index]
        key = _key(node, item)
        old = self._by_key.get(key) if key else None
        return None if old is None else CorrelatedValue(node.items, item, old)

    @property
    def unchanged(self) -> bool:
        """Whether old and new value are equal in the fields of the schema; unknown fields are ignored."""
        new, old = self.new, self.old
        if type(new) is dict and type(old) is dict:
            if len(new) != len(old):
                return False
            fields = (self.field(name) for name in new)
            return all(field is not None and field.unchanged for field in fields)
        if type(new) is list and type(old) is list and self.node.list_type == "map":
            if len(new) != len(old):
                return False
            items = (self.item(i) for i in range(len(new)))
            return all(item is not None and item.unchanged for item in items)
        return equal(new, old)


def _key(node: Structural, item: Any) -> str:
    """The map key of an item of a list; "" without keys."""
    if type(item) is not dict or not all(isinstance(item.get(name), str | int | float) for name in node.keys):
        return ""
    return json_text([item[name] for name in node.keys])


class _Result:
    """The errors of one value, and the number of checks that it passed."""

    __slots__ = ("_messages", "faults", "passed")

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.passed = 0
        self._messages: set[str] = set()

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            if fault.message not in self._messages:
                self._messages.add(fault.message)
                self.faults.append(fault)

    def merge(self, other: _Result) -> None:
        self.add(other.faults)
        self.passed += other.passed


def explain(
    raw: Mapping[str, Any], value: Any, below: str = "", before: CorrelatedValue | None = None
) -> list[FieldError]:
    """Validate a value; `below` is the path of its field, if any."""
    return [_field_error(fault, below) for fault in _validate(raw, value, "", before).faults]


def _field_error(fault: Fault, below: str) -> FieldError:
    """The FieldError of a fault."""
    where = (fault.name or "").removeprefix(".")
    path = Path(f"{below}.{where}" if below and where else below or where)
    if fault.name is None:
        return FieldError.invalid(Path(below), "", fault.message)
    match fault.code:
        case "required":
            return FieldError.required(path)
        case "enum":
            allowed = [choice if isinstance(choice, str) else json_text(choice) for choice in fault.valid]
            return FieldError.not_supported(path, fault.value, allowed)
        case "long":
            return FieldError.too_long(path, fault.valid)
        case "many":
            return FieldError.too_many(path, fault.value, fault.valid)
        case "type":
            return FieldError.type_invalid(path, "" if fault.value is None else fault.value, fault.message)
        case _:
            return FieldError.invalid(path, "" if fault.value is None else fault.value, fault.message)


def _validate(raw: Mapping[str, Any], value: Any, path: str, before: CorrelatedValue | None = None) -> _Result:
    result = _Result()
    types = types_of(raw)
    format_ = known_format(raw, types)
    if value is None:
        if types and not raw.get("nullable"):
            result.add([_wrong_type(path, ",".join(types), "null")])
        elif types or format_:
            result.passed += 1
        result.add(_enum(raw, value, path))
    else:
        _validate_value(result, raw, value, path, before)
    if result.faults and before is not None and before.unchanged:
        forgiven = _Result()
        forgiven.passed = result.passed
        return forgiven
    return result


def _validate_value(
    result: _Result, raw: Mapping[str, Any], value: Any, path: str, before: CorrelatedValue | None
) -> None:
    types = types_of(raw)
    format_ = known_format(raw, types)
    if types or format_:
        wrong = type_fault(types, format_, value)
        if wrong is None:
            result.passed += 1
        else:
            result.add([_wrong_type(path, *wrong)])
        result.passed += 1
    result.merge(_junctors(raw, value, path))
    result.passed += 1
    if type(value) is str:
        result.add(_text(raw, value, path))
        result.passed += 1
        check = text_check(format_) if format_ else None
        if check is not None:
            if not check(value):
                result.add([Fault("type", path, f"{path} in body must be of type {format_}: {quote(value)}", value)])
            result.passed += 1
    elif type(value) is int or type(value) is float:
        kind = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
        result.add(number_faults(raw, kind, format_ if kind else "", value, path))
        result.passed += 2
    elif type(value) is list:
        _validate_items(result, raw, value, path, before)
        result.passed += 2
    result.add(_enum(raw, value, path))
    result.passed += 1
    if type(value) is dict:
        _validate_fields(result, raw, value, path, before)
        result.passed += 1
    result.passed += 1


def _wrong_type(path: str, expected: str, found: str) -> Fault:
    return Fault("type", path, f"{path} in body must be of type {expected}: {quote(found)}", found)


def _enum(raw: Mapping[str, Any], value: Any, path: str) -> list[Fault]:
    allowed = raw.get("enum")
    if not allowed or in_enum(value, allowed):
        return []
    return [Fault("enum", path, f"{path} in body should be one of {json_text(allowed)}", value, allowed)]


def _text(raw: Mapping[str, Any], value: str, path: str) -> list[Fault]:
    longest, shortest, expression = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is not None and len(value) > longest:
        return [Fault("long", path, f"{path} in body should be at most {longest} chars long", value, longest)]
    if shortest is not None and len(value) < shortest:
        return [Fault("short", path, f"{path} in body should be at least {shortest} chars long", value, shortest)]
    if expression:
        search = pattern(expression)
        if search is None or not search.search(value):
            return [Fault("pattern", path, f"{path} in body should match '{expression}'", value)]
    return []


def _validate_items(
    result: _Result, raw: Mapping[str, Any], value: list[Any], path: str, before: CorrelatedValue | None
) -> None:
    items = raw.get("items")
    if isinstance(items, Mapping):
        for i, item in enumerate(value):
            was = before.item(i) if before is not None else None
            result.merge(_validate(items, item, f"{path}[{i}]", was))
    least, most = raw.get("minItems"), raw.get("maxItems")
    size = len(value)
    if least is not None and size < least:
        result.add([Fault("few", path, f"{path} in body should have at least {least} items", size, least)])
    if most is not None and size > most:
        result.add([Fault("many", path, f"{path} in body should have at most {most} items", size, most)])


def _validate_fields(
    result: _Result, raw: Mapping[str, Any], value: dict[str, Any], path: str, before: CorrelatedValue | None
) -> None:
    size, least, most = len(value), raw.get("minProperties"), raw.get("maxProperties")
    if least is not None and size < least:
        result.add([Fault("few", path, f"{path} in body should have at least {least} properties", size, least)])
    if most is not None and size > most:
        result.add([Fault("many", path, f"{path} in body should have at most {most} properties", size, most)])
    properties: Mapping[str, Any] = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    for name, item in value.items():
        if name in properties:
            schema, where = properties[name], f"{path}.{name}" if path else name
        elif additional is False:
            result.add([Fault("forbidden", path, f"{path}.{name} in body is a forbidden property", name)])
            continue
        elif isinstance(additional, Mapping):
            schema, where = additional, f"{path}.{name}"
        else:
            continue
        was = before.field(name) if before is not None else None
        if not path and name in ("kind", "apiVersion"):
            was = None
        result.merge(_validate(schema, item, where, was))
    result.add(
        Fault("required", f"{path}.{name}", f"{path}.{name} in body is required")
        for name in raw.get("required") or ()
        if name not in value
    )


def _junctors(raw: Mapping[str, Any], value: Any, path: str) -> _Result:
    """Validate the junctors. Inside them ratcheting does not apply, except to the whole value."""
    result = _Result()
    any_of, one_of, all_of = (
        [_validate(schema, value, path) for schema in raw.get(name) or ()] for name in ("anyOf", "oneOf", "allOf")
    )
    if any_of:
        good = next((part for part in any_of if not part.faults), None)
        if good is None:
            result.add([Fault("plain", None, f"{quote(path)} must validate at least one schema (anyOf)")])
            result.merge(max(any_of, key=lambda part: part.passed))
        else:
            result.merge(good)
    if one_of:
        _one_of(result, one_of, path)
    if all_of:
        for part in all_of:
            result.merge(part)
        valid = sum(not part.faults for part in all_of)
        if valid != len(all_of):
            none = "" if valid else ". None validated"
            result.add([Fault("plain", None, f"{quote(path)} must validate all the schemas (allOf){none}")])
    if raw.get("not") is not None and not _validate(raw["not"], value, path).faults:
        result.add([Fault("plain", None, f"{quote(path)} must not validate the schema (not)")])
    result.passed += 1
    return result


def _one_of(result: _Result, parts: list[_Result], path: str) -> None:
    valid = [part for part in parts if not part.faults]
    if len(valid) == 1:
        result.merge(valid[0])
        return
    found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    result.add([Fault("plain", None, f"{quote(path)} must validate one and only one schema (oneOf). {found}")])
    if not valid:
        result.merge(max(parts, key=lambda part: part.passed))
