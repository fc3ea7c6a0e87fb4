"""Validity check of a value against its schema: a boolean, as fast as possible.

A schema is compiled to a table from types of JSON values to functions; None if all values of the type are valid.
`explain` finds the errors of an invalid value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api.text.patterns import pattern
from ostinato.api.validation.formats import known_format, text_check
from ostinato.server.schema.validation.equality import in_enum
from ostinato.server.schema.validation.numbers import fits, is_integral, number_faults, truncate

Check = Callable[[Any], bool]
Table = Mapping[type, Check | None]

_KINDS: Final[Mapping[type, tuple[str, str]]] = {
    str: ("string", ""),
    bool: ("boolean", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}
_ANYTHING: Final[Table] = dict.fromkeys((*_KINDS, type(None)))


def types_of(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The types of a schema."""
    if raw.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = raw.get("type")
    return (kind,) if kind else ()


def type_fault(types: tuple[str, ...], format_: str, value: Any) -> tuple[str, str] | None:
    """Expected and found type, if a value other than null has none of the types."""
    found, own_format = _KINDS[type(value)]
    as_integer = type(value) is float and "integer" in types and is_integral(value)
    fits_type = found in types or as_integer or (type(value) is int and "number" in types)
    if type(value) is str or type(value) is list:
        if format_ and "number" not in types and "integer" not in types:
            return None  # the format check reports the error
    elif format_ and not fits_type and own_format != format_:
        return format_, own_format
    if not types and not format_:
        return None
    return None if fits_type else (",".join(types), found)


def compiled(raw: Mapping[str, Any]) -> Table:
    """Compile a schema to its table."""
    types = types_of(raw)
    format_ = known_format(raw, types)
    enum = raw.get("enum") or []
    general = _junctors(raw)
    if enum:
        general.append(lambda value: in_enum(value, enum))
    special: dict[type, list[Check]] = {
        str: _text_checks(raw, format_),
        bool: [],
        int: _integer_checks(raw, types, format_),
        list: _list_checks(raw),
        dict: _object_checks(raw),
    }
    table: dict[type, Check | None] = {
        kind: _all([*checks, *general]) if type_fault(types, format_, kind()) is None else _never
        for kind, checks in special.items()
    }
    floats: list[Check] = [] if not types and not format_ else [lambda v: type_fault(types, format_, v) is None]
    table[float] = _all([*floats, *_number_checks(raw, types, format_), *general])
    table[type(None)] = _never if (types and not raw.get("nullable")) or enum else None
    if all(check is None for check in table.values()):
        return _ANYTHING
    return table


def fits_table(table: Table, value: Any) -> bool:
    check = table[type(value)]
    return check is None or check(value)


def _never(_value: Any) -> bool:
    return False


def _all(checks: list[Check]) -> Check | None:
    if not checks:
        return None
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)

    def every(value: Any) -> bool:
        for check in checks:  # noqa: SIM110 - a loop is faster than a generator
            if not check(value):
                return False
        return True

    return every


def _junctors(raw: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    any_of, one_of, all_of = ([compiled(s) for s in raw.get(name) or ()] for name in ("anyOf", "oneOf", "allOf"))
    if any_of:
        checks.append(lambda value: any(fits_table(table, value) for table in any_of))
    if one_of:
        checks.append(lambda value: sum(fits_table(table, value) for table in one_of) == 1)
    if all_of:
        checks.append(lambda value: all(fits_table(table, value) for table in all_of))
    if raw.get("not") is not None:
        negated = compiled(raw["not"])
        checks.append(lambda value: not fits_table(negated, value))
    return checks


def _text_checks(raw: Mapping[str, Any], format_: str) -> list[Check]:
    checks: list[Check] = []
    longest, shortest, expression = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if longest is not None:
        checks.append(lambda value: len(value) <= longest)
    if shortest is not None:
        checks.append(lambda value: len(value) >= shortest)
    if expression:
        search = pattern(expression)
        checks.append((lambda value: search.search(value) is not None) if search is not None else _never)
    form = text_check(format_) if format_ else None
    if form is not None:
        checks.append(form)
    return checks


def _integer_checks(raw: Mapping[str, Any], types: tuple[str, ...], format_: str) -> list[Check]:
    kind = types[0] if len(types) == 1 else ""
    bounds = [raw[name] for name in ("multipleOf", "minimum", "maximum") if raw.get(name) is not None]
    if any(not fits(bound, kind, format_) for bound in bounds) or kind not in ("integer", ""):
        return _number_checks(raw, types, format_)
    checks: list[Check] = []
    if format_ == "int32":
        checks.append(lambda value: -(1 << 31) <= value < 1 << 31)
    if raw.get("minimum") is not None:
        least = truncate(raw["minimum"]) + bool(raw.get("exclusiveMinimum"))
        checks.append(lambda value: value >= least)
    if raw.get("maximum") is not None:
        most = truncate(raw["maximum"]) - bool(raw.get("exclusiveMaximum"))
        checks.append(lambda value: value <= most)
    if raw.get("multipleOf") is not None:
        factor = truncate(raw["multipleOf"])
        checks.append((lambda value: value % factor == 0) if factor > 0 else _never)
    return checks


def _number_checks(raw: Mapping[str, Any], types: tuple[str, ...], format_: str) -> list[Check]:
    kind = types[0] if len(types) == 1 and types[0] in ("integer", "number") else ""
    format_ = format_ if kind else ""
    if not kind and all(raw.get(name) is None for name in ("multipleOf", "minimum", "maximum")):
        return []
    return [lambda value: not number_faults(raw, kind, format_, value, "")]


def _list_checks(raw: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    most, least, items = raw.get("maxItems"), raw.get("minItems"), raw.get("items")
    if most is not None:
        checks.append(lambda value: len(value) <= most)
    if least is not None:
        checks.append(lambda value: len(value) >= least)
    table = compiled(items) if isinstance(items, Mapping) else _ANYTHING
    if table is not _ANYTHING:

        def check_items(value: list[Any]) -> bool:
            for item in value:
                check = table[type(item)]
                if check is not None and not check(item):
                    return False
            return True

        checks.append(check_items)
    return checks


def _object_checks(raw: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    most, least = raw.get("maxProperties"), raw.get("minProperties")
    if most is not None:
        checks.append(lambda value: len(value) <= most)
    if least is not None:
        checks.append(lambda value: len(value) >= least)
    required = frozenset(raw.get("required") or ())
    if required:
        checks.append(required.issubset)
    properties: Mapping[str, Any] = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    if additional is False:
        checks.append(lambda value: value.keys() <= properties.keys())
    tables = {name: compiled(below) for name, below in properties.items()}
    others = compiled(additional) if isinstance(additional, Mapping) else _ANYTHING
    if others is _ANYTHING:
        tables = {name: table for name, table in tables.items() if table is not _ANYTHING}
    if tables or others is not _ANYTHING:

        def check_fields(value: dict[str, Any]) -> bool:
            for name, item in value.items():
                check = tables.get(name, others)[type(item)]
                if check is not None and not check(item):
                    return False
            return True

        checks.append(check_fields)
    return checks
