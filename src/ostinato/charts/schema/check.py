"""A value against a JSON Schema. References to other documents are not followed: they accept everything."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ostinato.charts.schema.keywords import array_problems, number_problems, string_problems
from ostinato.charts.schema.problem import Problem, display, quoted, same, type_name
from ostinato.charts.schema.references import References, compiled_pattern

_log: Final = logging.getLogger(__name__)

_DEEPEST: Final = 200
_OLD: Final = ("draft-04", "draft-06", "draft-07")  # in which $ref hides the keywords beside it


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the values, and how deep in the schema."""

    path: tuple[str, ...] = ()
    depth: int = 0

    def at(self, *keys: str) -> _Place:
        return _Place((*self.path, *keys), self.depth + 1)


class Schema:
    """A schema with what it refers to."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._references = References(document)
        draft = str(document.get("$schema", "")) if isinstance(document, dict) else ""
        self._old = any(each in draft for each in _OLD)
        self._tuples = self._old or "2019-09" in draft  # items may be a list

    def problems(self, value: Any) -> str:
        """Return what is wrong, a line each; "" if the value is valid."""
        found = self._check(self._document, value, _Place())
        if found is None:
            return ""
        causes = found.causes if found.group else [found]
        return "\n".join(line for each in causes for line in each.lines(0))

    def _check(self, schema: Any, value: Any, place: _Place) -> Problem | None:
        if place.depth > _DEEPEST:
            raise ValueError("schemas are nested too deeply; does one refer to itself?")
        if schema is True or schema is None:
            return None
        if schema is False:
            return Problem(place.path, "false schema")
        if not isinstance(schema, dict):
            raise ValueError(f"a schema must be an object or a boolean, got {type_name(schema)}")
        first = _first_problem(schema, value)
        if first:
            return Problem(place.path, first)
        found: list[Problem] = []
        if "$ref" in schema:
            referred = self._referred(schema["$ref"], value, place)
            if self._old:
                return referred
            found += [referred] if referred is not None else []
        found += self._by_type(schema, value, place)
        found += self._conditions(schema, value, place)
        if len(found) < 2:
            return found[0] if found else None
        return Problem(place.path, "validation failed", found, group=True)

    def _referred(self, reference: Any, value: Any, place: _Place) -> Problem | None:
        known, target = self._references.resolve(str(reference))
        if not known:
            _log.warning("schema reference to another document is not followed reference=%s", reference)
            return None
        found = self._check(target, value, place.at())
        if found is None:
            return None
        causes = found.causes if found.group else [found]
        return causes[0] if len(causes) == 1 else Problem(place.path, "validation failed", causes)

    def _by_type(self, schema: dict[str, Any], value: Any, place: _Place) -> Iterator[Problem]:
        match value:
            case dict():
                yield from self._object(schema, value, place)
            case list():
                yield from (Problem(place.path, each) for each in array_problems(schema, value))
                yield from self._items(schema, value, place)
            case str():
                yield from (Problem(place.path, each) for each in string_problems(schema, value))
            case bool() | None:
                pass
            case _:
                yield from (Problem(place.path, each) for each in number_problems(schema, value))

    def _object(self, schema: dict[str, Any], value: dict[str, Any], place: _Place) -> Iterator[Problem]:
        for keyword, fails in (("minProperties", len(value).__lt__), ("maxProperties", len(value).__gt__)):
            if keyword in schema and fails(int(schema[keyword])):
                yield Problem(place.path, f"{keyword}: got {len(value)}, want {int(schema[keyword])}")
        missing = [each for each in schema.get("required", ()) if each not in value]
        if missing:
            word = "property" if len(missing) == 1 else "properties"
            yield Problem(place.path, f"missing {word} {', '.join(map(quoted, missing))}")
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, needed in schema.get(keyword, {}).items():
                if name in value:
                    yield from self._dependency(name, needed, value, place)
        yield from self._properties(schema, value, place)
        if "propertyNames" in schema:
            for name in sorted(value):
                found = self._check(schema["propertyNames"], name, _Place((), place.depth + 1))
                if found is not None:
                    causes = found.causes if found.group else [found]
                    yield Problem(place.path, f"invalid propertyName {quoted(name)}", causes)

    def _dependency(self, name: str, needed: Any, value: dict[str, Any], place: _Place) -> Iterator[Problem]:
        if isinstance(needed, list):
            missing = [each for each in needed if each not in value]
            if missing:
                names = ", ".join(map(quoted, missing))
                yield Problem(place.path, f"properties {names} required, if {quoted(name)} exists")
        else:
            found = self._check(needed, value, place.at())
            if found is not None:
                yield found

    def _properties(self, schema: dict[str, Any], value: dict[str, Any], place: _Place) -> Iterator[Problem]:
        known = schema.get("properties", {})
        patterns = [(compiled_pattern(text), each) for text, each in schema.get("patternProperties", {}).items()]
        others = schema.get("additionalProperties", True)
        refused = []
        for name in sorted(value):
            checks = [known[name]] if name in known else []
            checks += [each for pattern, each in patterns if pattern.search(name)]
            if not checks and others is False:
                refused.append(name)
            for check in checks or ([others] if others is not False else []):
                found = self._check(check, value[name], place.at(name))
                if found is not None:
                    yield found
        if refused:
            yield Problem(place.path, f"additional properties {', '.join(map(quoted, refused))} not allowed")

    def _items(self, schema: dict[str, Any], value: list[Any], place: _Place) -> Iterator[Problem]:
        items = schema.get("items", True)
        if self._tuples and isinstance(items, list):
            first, rest, keyword = items, schema.get("additionalItems", True), "additionalItem(s)"
        else:
            first, rest, keyword = schema.get("prefixItems", []) if not self._tuples else [], items, ""
        if rest is False and keyword and len(value) > len(first):
            yield Problem(place.path, f"last {len(value) - len(first)} {keyword} not allowed")
            rest = True
        for number, item in enumerate(value):
            found = self._check(first[number] if number < len(first) else rest, item, place.at(str(number)))
            if found is not None:
                yield found
        if "contains" in schema:
            yield from self._contains(schema, value, place)

    def _contains(self, schema: dict[str, Any], value: list[Any], place: _Place) -> Iterator[Problem]:
        checked = [self._check(schema["contains"], item, place.at(str(at))) for at, item in enumerate(value)]
        matched = [at for at, found in enumerate(checked) if found is None]
        causes = [found for found in checked if found is not None]
        shown = f"matched {len(matched)} items at {' '.join(map(str, matched))}" if matched else "none matched"
        if "minContains" in schema:
            if len(matched) < schema["minContains"]:
                what = f"min {schema['minContains']} items required to match contains schema, but {shown}"
                yield Problem(place.path, what, causes)
        elif not matched:
            yield Problem(place.path, "no items match contains schema", causes)
        if "maxContains" in schema and len(matched) > schema["maxContains"]:
            yield Problem(
                place.path, f"max {schema['maxContains']} items required to match contains schema, but {shown}"
            )

    def _conditions(self, schema: dict[str, Any], value: Any, place: _Place) -> Iterator[Problem]:
        inner = place.at()
        if "not" in schema and self._check(schema["not"], value, inner) is None:
            yield Problem(place.path, "'not' failed")
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword not in schema:
                continue
            checked = [self._check(each, value, inner) for each in schema[keyword]]
            causes = [found for found in checked if found is not None]
            matched = [at for at, found in enumerate(checked) if found is None]
            if keyword == "allOf" and causes:
                yield Problem(place.path, "'allOf' failed", causes)
            elif keyword == "anyOf" and not matched:
                yield Problem(place.path, "'anyOf' failed", causes)
            elif keyword == "oneOf" and len(matched) != 1:
                what = f"subschemas {matched[0]}, {matched[1]} matched" if matched else "none matched"
                yield Problem(place.path, f"'oneOf' failed, {what}", [] if matched else causes)
        if "if" in schema:
            chosen = "then" if self._check(schema["if"], value, inner) is None else "else"
            found = self._check(schema.get(chosen), value, inner)
            if found is not None:
                yield found


def _first_problem(schema: dict[str, Any], value: Any) -> str:
    """Check type, const and enum, which hide what else is wrong."""
    wanted = schema.get("type", ())
    types = [wanted] if isinstance(wanted, str) else list(wanted)
    actual = type_name(value)
    whole = actual == "number" and float(value).is_integer()
    if types and actual not in types and not (whole and "integer" in types):
        return f"got {actual}, want {' or '.join(types)}"
    if "const" in schema and not same(value, schema["const"]):
        return (
            "'const' failed"
            if isinstance(schema["const"], dict | list)
            else f"value must be {display(schema['const'])}"
        )
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        if any(isinstance(each, dict | list) for each in schema["enum"]):
            return "'enum' failed"
        shown = ", ".join(map(display, schema["enum"]))
        return f"value must be {'one of ' if len(schema['enum']) > 1 else ''}{shown}"
    return ""
