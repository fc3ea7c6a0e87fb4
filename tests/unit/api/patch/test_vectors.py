"""What Kubernetes' own Go code makes of the same documents.

tests/data/patch holds inputs with the results, errors and panics of Go: evanphx/json-patch v4.13, and the packages
strategicpatch and jsonmergepatch of apimachinery v0.36.4, on the types of client-go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.patch import (
    MAX_COPIED_BYTES,
    SAME_OBJECT,
    PatchConflict,
    PatchError,
    create_merge_patch,
    create_three_way_merge,
    create_three_way_strategic,
    create_two_way_strategic,
    json_patch,
    merge_patch,
    strategic_merge,
)
from ostinato.api.schema import Schema, builtin_schemas

DATA = Path(__file__).parents[3] / "data" / "patch"


def vectors() -> Iterator[Any]:
    for file in sorted(DATA.glob("*.json")):
        content = json.loads(file.read_text())
        for case in content["cases"]:
            for part in ("original", "modified", "current", "result"):
                value = case.get(part)
                if isinstance(value, str) and value.startswith("@"):
                    case[part] = content["documents"][int(value[1:])]
            yield pytest.param(case, id=f"{case['op']}: {case['name']}")


def schema_of(case: dict[str, Any]) -> Schema | None:
    return builtin_schemas().of(GroupVersionKind(*case["gvk"])) if "gvk" in case else None


def outcome(case: dict[str, Any]) -> Any:
    original, patch, modified, current = (
        deepcopy(case.get(part)) for part in ("original", "patch", "modified", "current")
    )
    schema = schema_of(case)
    match case["op"]:
        case "json":
            result = json_patch(original, patch, max_copied_bytes=case.get("limit", MAX_COPIED_BYTES))
        case "merge":
            result = merge_patch(original, patch)
        case "merge-create":
            result = create_merge_patch(original, modified)
        case "strategic":
            result = strategic_merge(original, patch, schema)
        case "strategic-two":
            result = create_two_way_strategic(original, modified, schema)
        case "strategic-three":
            overwrite = case.get("overwrite", True)
            result = create_three_way_strategic(original, modified, current, schema, overwrite=overwrite)
        case "merge-three":
            result = create_three_way_merge(original, modified, current, preconditions=SAME_OBJECT)
        case other:
            raise AssertionError(other)
    assert (original, patch, modified, current) == tuple(
        case.get(part) for part in ("original", "patch", "modified", "current")
    ), "an argument was changed"
    return result


def canonical(value: Any) -> str:
    return json.dumps(_integral(value), sort_keys=True)


def _integral(value: Any) -> Any:
    """Go writes 1.0 as 1."""
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_integral(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("case", list(vectors()))
def test_outcome_is_that_of_kubernetes(case: dict[str, Any]) -> None:
    if "result" in case or ("error" not in case and "panic" not in case):
        assert canonical(outcome(case)) == canonical(case.get("result"))
        return
    with pytest.raises(PatchError) as refused:
        outcome(case)
    if "panic" in case:
        return  # Go gives up without words
    if isinstance(refused.value, PatchConflict):  # Go has sorted some lists in passing; the lines are the same
        assert sorted(str(refused.value).splitlines()) == sorted(case["error"].splitlines())
    else:
        assert str(refused.value) == case["error"]
