"""Strategic merge patch: a merge patch that merges lists according to the schema.

Lists with `x-kubernetes-patch-strategy: merge` are merged: maps by merge key, scalars as a union. Other lists are
replaced; maps are merged. Directives in the patch override that:

- `null` deletes a field;
- `$patch: replace` in a map replaces the map; in an item of a merged list it replaces the list by the other items;
- `$patch: delete` in a map empties it; in an item of a merged list it removes that item;
- `$deleteFromPrimitiveList/finalizers: [...]` removes items of a merged list of scalars;
- `$setElementOrder/containers: [...]` sets the order of a merged list;
- `$retainKeys: [...]` removes all other fields of a map.

The schema contains the struct tags of the Go types. Fields that are not in the schema are merged if they are maps, and
replaced if they are lists; in Kubernetes they are errors, as such objects cannot be decoded.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.patch.directives import (
    DELETE,
    DELETE_FROM_PRIMITIVE_LIST,
    MERGE,
    PATCH,
    REPLACE,
    RETAIN_KEYS,
    SET_ELEMENT_ORDER,
)
from ostinato.api.patch.errors import MalformedPatch, PatchError, UnmergeablePatch
from ostinato.api.patch.go_values import go_string, go_value, json_name
from ostinato.api.patch.merge_order import (
    check_element_order,
    element_type,
    interleaved,
    item_identity,
    partition,
    positions,
    wrong_type,
)
from ostinato.api.patch.values import identity
from ostinato.api.schema import Schema


def strategic_merge(original: dict[str, Any], patch: Any, schema: Schema | None) -> dict[str, Any]:
    """Apply a strategic merge patch and return the new object. Arguments are not modified, but shared."""
    if patch is None:
        return original
    if not isinstance(patch, dict):
        raise MalformedPatch(
            f"json: cannot unmarshal {json_name(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merged_map(original, patch, schema, onto_patch=False)


def merged_patches(first: dict[str, Any], second: dict[str, Any], schema: Schema | None) -> dict[str, Any]:
    """Merge two patches into one: nulls and directives are kept, not applied."""
    return _merged_map(first, second, schema, onto_patch=True)


def _merged_map(
    original: dict[str, Any], patch: dict[str, Any], schema: Schema | None, *, onto_patch: bool
) -> dict[str, Any]:
    if PATCH in patch:
        return _replaced_or_emptied(patch)
    result = original.copy()
    done: set[str] = set()
    if any(key.startswith("$") for key in patch):
        done = _directed(result, patch, schema, onto_patch=onto_patch)
    for name, value in patch.items():
        if name in done:
            continue
        key = name
        deleting = key.startswith(DELETE_FROM_PRIMITIVE_LIST)
        if deleting:
            if onto_patch:
                result[key] = value
                continue
            key = _field_of(key, MalformedPatch("invalid patch format of primitive list"))
        if value is None:
            result.pop(key, None)
            if onto_patch:
                result[key] = None
            continue
        kind = type(value)
        if kind is str and not deleting:
            result[key] = value
            continue
        current: Any = result.get(key)
        if kind is not type(current) or kind not in (dict, list):
            if not deleting:
                _set_cleaned(result, key, value, drop_nulls=not onto_patch)
            continue
        field = None if schema is None else schema.field(key)
        if kind is list:
            result[key] = _merged_field(current, value, field, deleting=deleting, onto_patch=onto_patch)
        elif field is not None and REPLACE in field.patch_strategies:
            result[key] = value
        else:
            result[key] = _merged_map(current, value, field, onto_patch=onto_patch)
    return result


def _replaced_or_emptied(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[PATCH]
    if directive == REPLACE:
        return {key: value for key, value in patch.items() if key != PATCH}
    if directive == DELETE:
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: dict[str, Any]) -> PatchError:
    return UnmergeablePatch(f"unknown patch type: {go_string(directive)} in map: {go_value(patch)}")


def _set_cleaned(result: dict[str, Any], key: str, value: Any, *, drop_nulls: bool) -> None:
    """Set a field that the object does not have to a value of the patch."""
    if _is_directed(value, drop_nulls=drop_nulls):
        result.pop(key, None)
    else:
        result[key] = _cleaned(value, drop_nulls=drop_nulls)


def _cleaned(value: Any, *, drop_nulls: bool) -> Any:
    """Return a value of the patch without the maps that have a directive."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            if not ((item is None and drop_nulls) or _is_directed(item, drop_nulls=drop_nulls)):
                kept[key] = _cleaned(item, drop_nulls=drop_nulls)
        return kept
    if isinstance(value, list):
        items = []
        for item in value:
            if not _is_directed(item, drop_nulls=drop_nulls):
                items.append(_cleaned(item, drop_nulls=drop_nulls))  # noqa: PERF401 a comprehension doubles the stack
        return items
    return value


def _is_directed(value: Any, *, drop_nulls: bool) -> bool:
    return isinstance(value, dict) and PATCH in value and not (drop_nulls and value[PATCH] is None)


# Directives beside the fields that they refer to


def _field_of(directive: str, malformed: PatchError) -> str:
    """Return the field of a directive such as `$setElementOrder/containers`."""
    prefix, slash, field = directive.partition("/")
    if not slash or prefix not in (SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST):
        raise malformed
    return field or directive


def _directed(result: dict[str, Any], patch: dict[str, Any], schema: Schema | None, *, onto_patch: bool) -> set[str]:
    """Apply `$retainKeys` and `$setElementOrder` to `result`. Returns the keys of the patch that are done."""
    done: set[str] = set()
    if RETAIN_KEYS in patch:
        done.add(RETAIN_KEYS)
        patch = patch.copy()
        retained = patch.pop(RETAIN_KEYS)
        if onto_patch:  # both patches lead to the same object, and retain the same keys
            result.setdefault(RETAIN_KEYS, retained)
        else:
            _retain_keys(result, patch, retained)
    for key, value in patch.items():
        if key.startswith(SET_ELEMENT_ORDER):
            done.add(key)
            if onto_patch:  # and have the same order
                result.setdefault(key, value)
            ordered = _set_element_order(result, patch, key, schema, onto_patch=onto_patch)
            if ordered is not None:
                done.add(ordered)
    return done


def _retain_keys(result: dict[str, Any], patch: dict[str, Any], retained: Any) -> None:
    malformed = MalformedPatch("invalid patch format of retainKeys")
    if not isinstance(retained, list) or any(isinstance(key, dict | list) for key in retained):
        raise malformed
    keys = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        exempt = key.startswith((DELETE_FROM_PRIMITIVE_LIST, SET_ELEMENT_ORDER))
        if value is not None and not exempt and key not in keys:
            raise malformed
    for key in result.keys() - keys:
        del result[key]


def _set_element_order(
    result: dict[str, Any], patch: dict[str, Any], directive: str, schema: Schema | None, *, onto_patch: bool
) -> str | None:
    """Merge and sort the list of a directive. Returns the field that is done, None if there is none."""
    order = patch[directive]
    if not isinstance(order, list):
        raise wrong_type(list, order)
    key = _field_of(directive, MalformedPatch("invalid patch format of setElementOrder list"))
    current = result.get(key, [])
    wanted = patch.get(key, [])
    for items in (current, wanted):
        if not isinstance(items, list):
            raise wrong_type(list, items)
    field = None if schema is None else schema.field(key)
    merge_key = _merge_key(field)
    check_element_order(wanted, order, merge_key)
    if key in result and key in patch:
        merged = _merged_field(current, wanted, field, deleting=False, onto_patch=onto_patch)
    elif key in result:
        merged = current
    elif key in patch:
        merged = _cleaned(wanted, drop_nulls=False)
    else:
        return None
    ordered, rest = partition(merged, order, merge_key)
    result[key] = interleaved(ordered, rest, order, current, merge_key=merge_key, kind=element_type(current, wanted))
    return key


# Lists


def _merge_key(field: Schema | None) -> str:
    return "" if field is None else field.patch_merge_key or ""


def _merged_field(
    original: list[Any], patch: list[Any], field: Schema | None, *, deleting: bool, onto_patch: bool
) -> list[Any]:
    if not deleting and (field is None or MERGE not in field.patch_strategies):
        return patch
    if not original and not patch:
        return original
    merge_key = _merge_key(field)
    kind = element_type(original, patch)
    if kind is dict:
        if not merge_key:
            raise UnmergeablePatch("cannot merge lists without merge key for struct")
        original, patch = _without_directives(original, patch, merge_key)
        items = None if field is None else field.items
        merged, settled = _merged_items(original, patch, merge_key, items, onto_patch=onto_patch)
        if settled:
            return merged
    elif deleting:
        gone = {identity(item) for item in patch}
        return [item for item in original if identity(item) not in gone]
    else:
        merged = list({identity(item): item for item in (*original, *patch)}.values())
    patched, rest = partition(merged, patch, merge_key)
    return interleaved(patched, rest, patch, original, merge_key=merge_key, kind=kind)


def _without_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Apply the directives in items of the patch to the original. Returns both without them."""
    plain: list[Any] = []
    gone = set()
    replace = False
    for item in patch:
        directive = item.get(PATCH)
        if PATCH not in item:
            plain.append(item)
        elif directive == DELETE:
            gone.add(item_identity(item, merge_key))
        elif directive == REPLACE:
            replace = True
        elif directive == MERGE:
            raise UnmergeablePatch("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    if replace:
        return plain, []
    if gone:
        original = [item for item in original if merge_key not in item or identity(item[merge_key]) not in gone]
    return original, plain


def _merged_items(
    original: list[Any], patch: list[Any], merge_key: str, schema: Schema | None, *, onto_patch: bool
) -> tuple[list[Any], bool]:
    """Merge items by key; new items are last. Also returns whether this is the final order.

    It is if the patch has no new items, and its items have the order of the object, as in most patches.
    """
    identities = [item_identity(item, merge_key) for item in patch]
    merged = original.copy()
    place = positions(original, merge_key)
    settled = len(place) == len(original) and not onto_patch
    last = -1
    for found, item in zip(identities, patch, strict=True):
        position = place.get(found)
        if position is None:
            place[found] = len(merged)
            merged.append(item)
            settled = False
        else:
            merged[position] = _merged_map(merged[position], item, schema, onto_patch=onto_patch)
            settled = settled and position > last
            last = position
    return merged, settled
