"""Maps with string keys. `set`, `unset` and the merges change the map that they are given, as in Go."""

from __future__ import annotations

from typing import Any, Final

from ostinato.gotemplate.library.defaults import is_empty
from ostinato.gotemplate.library.kinds import is_map, is_slice, same_type
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.library.text import strval
from ostinato.gotemplate.limits import check_parts
from ostinato.gotemplate.values import Strings, go_type

DICTS: Final = Registry()
_register = DICTS

_MAP: Final = "map[string]interface {}"
_COPIED_DEPTH: Final = 400


@_register("dict", "...interface {}")
def dict_(*values: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for at in range(0, len(values), 2):
        made[strval(values[at])] = values[at + 1] if at + 1 < len(values) else ""
    return made


@_register("get", f"{_MAP}, string")
def get(values: dict[str, Any], key: str) -> Any:
    return values.get(key, "")


@_register("set", f"{_MAP}, string, interface {{}}")
def set_(values: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    values[key] = value
    return values


@_register("unset", f"{_MAP}, string")
def unset(values: dict[str, Any], key: str) -> dict[str, Any]:
    values.pop(key, None)
    return values


@_register("hasKey", f"{_MAP}, string")
def has_key(values: dict[str, Any], key: str) -> bool:
    return key in values


@_register("pluck", f"string, ...{_MAP}")
def pluck(key: str, *maps: dict[str, Any]) -> list[Any]:
    return [each[key] for each in maps if key in each]


@_register("keys", f"...{_MAP}")
def keys(*maps: dict[str, Any]) -> Strings:
    """Sorted: Go's order is random."""
    return Strings([key for each in maps for key in sorted(each)])


@_register("values", _MAP)
def values_(values: dict[str, Any]) -> list[Any]:
    """In the order of the keys: Go's order is random."""
    return [values[key] for key in sorted(values)]


@_register("pick", f"{_MAP}, ...string")
def pick(values: dict[str, Any], *wanted: str) -> dict[str, Any]:
    return {key: values[key] for key in wanted if key in values}


@_register("omit", f"{_MAP}, ...string")
def omit(values: dict[str, Any], *unwanted: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in unwanted}


@_register("merge mustMerge", f"{_MAP}, ...{_MAP}")
def merge(into: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    for each in sources:
        _merge(into, each, overwrite=False)
    return into


@_register("mergeOverwrite mustMergeOverwrite", f"{_MAP}, ...{_MAP}")
def merge_overwrite(into: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    for each in sources:
        _merge(into, each, overwrite=True)
    return into


def _merge(into: dict[str, Any], source: dict[str, Any], *, overwrite: bool) -> None:
    """Merge as mergo does: an empty value (false, 0, "") of the target counts as absent."""
    if into is source:
        return
    for key, value in list(source.items()):
        present = into.get(key)
        if value is None:
            if overwrite:
                into[key] = None
            continue
        if is_map(value) and isinstance(present, dict):
            _merge(present, value, overwrite=overwrite)
            if present:
                continue
        elif is_slice(value) and not overwrite and present is not None and not _is_blank(present):
            continue
        if overwrite or key not in into or _is_blank(into[key]):
            into[key] = value


def _is_blank(value: Any) -> bool:
    return is_empty(value)


@_register("deepCopy mustDeepCopy", "interface {}")
def deep_copy(value: Any) -> Any:
    if value is None:
        raise PanicError("reflect: call of reflect.Value.Type on zero Value")
    check_parts(value)
    return _copied(value, 0)


def _copied(value: Any, depth: int) -> Any:
    if depth > _COPIED_DEPTH:
        raise PanicError("deepCopy error: the value is nested too deeply; does it contain itself?")
    if is_map(value):
        return same_type(value, {key: _copied(each, depth + 1) for key, each in value.items()})
    if is_slice(value):
        return same_type(value, [_copied(each, depth + 1) for each in value])
    return value


@_register("dig", "...interface {}")
def dig(*arguments: Any) -> Any:
    if len(arguments) < 3:
        raise PanicError("dig needs at least three arguments")
    *path, fallback, values = arguments
    found: Any = _asserted(values, _MAP)
    for key in path:
        _asserted(key, "string")
    for at, key in enumerate(path):
        if key not in found:
            return fallback
        found = found[key] if at == len(path) - 1 else _asserted(found[key], _MAP)
    return found


def _asserted(value: Any, wanted: str) -> Any:
    actual = "nil" if value is None else go_type(value)
    if actual != wanted:
        raise PanicError(f"interface conversion: interface {{}} is {actual}, not {wanted}")
    return value
