"""Compare templates with what Go makes of them: vectors that `scripts/go_templates` recorded.

python -m tests.unit.gotemplate.replay vectors.jsonl   # print the differences
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ostinato.gotemplate import Int64, Strings, TemplateError, Templates, Uint8

VECTORS = Path(__file__).parents[2] / "data" / "gotemplate"


def typed(value: Any) -> Any:
    """A value of the vectors: numbers are float64, objects may name another type."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        for name, make in _TYPES.items():
            if name in value:
                return make(value[name])
        return {key: typed(item) for key, item in value.items()}
    return value


_TYPES: dict[str, Callable[[Any], Any]] = {
    "$int": int,
    "$int64": Int64,
    "$uint8": Uint8,
    "$bytes": str.encode,
    "$strings": Strings,
}


def answer(
    vector: Mapping[str, Any], data: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None = None
) -> tuple[str, str]:
    """What ours makes of a case: the kind of the result (o, x or e), and its text."""
    templates = Templates(functions, missing_key=vector.get("m", "default"))
    try:
        templates.parse("t", vector["t"])
        output = templates.render("t", typed(data.get(vector.get("d", ""))))
    except TemplateError as error:
        return "e", str(error)
    try:
        output.encode()
    except UnicodeEncodeError:
        return "x", output.encode("utf-8", "surrogateescape").hex()
    return "o", output


def recorded(vector: Mapping[str, Any]) -> tuple[str, str]:
    """What Go made of it."""
    kind = next(kind for kind in "oxe" if kind in vector)
    return kind, vector[kind]


def differences(
    vectors: Iterable[Mapping[str, Any]],
    data: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> list[tuple[Mapping[str, Any], tuple[str, str]]]:
    """The cases of which ours makes something else."""
    return [(vector, ours) for vector in vectors if (ours := answer(vector, data, functions)) != recorded(vector)]


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The values and the vectors of a file."""
    with path.open(encoding="utf-8") as lines:
        first, *rest = map(json.loads, lines)
    return first["data"], rest


def report(found: Iterable[tuple[Mapping[str, Any], tuple[str, str]]]) -> str:
    """Differences to read."""
    lines = []
    for vector, ours in found:
        kind, theirs = recorded(vector)
        lines.append(f"{json.dumps(vector['t'], ensure_ascii=False)} {vector.get('d', '')} {vector.get('m', '')}")
        lines.append(f"   go   {kind} {theirs!r}")
        lines.append(f"   ours {ours[0]} {ours[1]!r}")
    return "\n".join(lines)


def _main() -> None:
    data, vectors = read(Path(sys.argv[1]))
    found = differences(vectors, data)
    print(report(found))
    print(f"{len(found)} of {len(vectors)} differ")


if __name__ == "__main__":
    _main()
