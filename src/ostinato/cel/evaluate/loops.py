"""Comprehensions: the loops of the macros over lists and maps, and the cost of each iteration.

Costs equal those of the folds that kube-apiserver expands the macros to, accesses to the accumulator included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ostinato.cel.cost.runtime import LIST
from ostinato.cel.evaluate.code import Code, Frame, Run, charged
from ostinato.cel.values import CelError, CostExceededError, no_overload, type_name


def loop(macro: str, source: Code, places: tuple[int, int], parts: list[Code]) -> Code:
    """Compile a loop; `places` are the indexes of its variables in the frame."""
    bodies = [charged(part) for part in parts]
    match macro:
        case "all":
            return Code(_quantified(source.run, places, bodies[0], (False, 3, 2)), source.cost + 1)
        case "exists":
            return Code(_quantified(source.run, places, bodies[0], (True, 4, 3)), source.cost + 1)
        case "exists_one":
            return Code(_exactly_one(source.run, places, bodies[0]), source.cost + 2)
        case "filter":
            return Code(_filtered(source.run, places, bodies[0]), source.cost + 1)
        case "map" | "transformList":
            return Code(_mapped(source.run, places, bodies), source.cost + 1)
        case _:
            return Code(_entries(macro, source.run, places, bodies), source.cost + 1)


_GO_TYPES: Final = {
    "bool": "Bool",
    "bytes": "Bytes",
    "double": "Double",
    "google.protobuf.Duration": "Duration",
    "google.protobuf.Timestamp": "Timestamp",
    "int": "Int",
    "null_type": "Null",
    "string": "String",
    "uint": "Uint",
}


def _iterations(frame: Frame, value: Any, places: tuple[int, int]) -> Iterator[None]:
    """Iterate, with the variables set."""
    first, second = places
    limit = frame[1]
    kind = type(value)
    if kind is not list and kind is not dict:
        raise CelError(f"got 'types.{_GO_TYPES.get(type_name(value), 'Unknown')}', expected iterable type")
    if second:
        pairs: Iterable[tuple[Any, Any]] = enumerate(value) if kind is list else list(value.items())
        for frame[first], frame[second] in pairs:
            if frame[0] > limit:
                raise CostExceededError
            yield
        return
    for frame[first] in value:
        if frame[0] > limit:
            raise CostExceededError
        yield


def _quantified(source: Run, places: tuple[int, int], body: Run, rule: tuple[bool, int, int]) -> Run:
    """Compile `all` and `exists`: short-circuit; errors count only if no value decides."""
    decides, turn, end = rule

    def function(frame: Frame) -> Any:
        failed: CelError | None = None
        value = source(frame)
        left = len(value) if isinstance(value, (list, dict)) else 0
        for _ in _iterations(frame, value, places):
            left -= 1
            frame[0] += turn
            try:
                value = body(frame)
            except CelError as error:
                failed = failed or error
                continue
            if value is decides:
                frame[0] += end if left else 0
                return decides
            if type(value) is not bool:
                failed = failed or no_overload()
        if failed is not None:
            raise failed
        return not decides

    return function


def _true(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise no_overload()


def _exactly_one(source: Run, places: tuple[int, int], body: Run) -> Run:
    def function(frame: Frame) -> bool:
        count = 0
        for _ in _iterations(frame, source(frame), places):
            if _true(body(frame)):
                count += 1
                frame[0] += 2
        return count == 1

    return function


def _filtered(source: Run, places: tuple[int, int], body: Run) -> Run:
    variable = places[0]

    def function(frame: Frame) -> list[Any]:
        found = []
        for _ in _iterations(frame, source(frame), places):
            if _true(body(frame)):
                frame[0] += LIST + 3
                found.append(frame[variable])
        return found

    return function


def _mapped(source: Run, places: tuple[int, int], bodies: list[Run]) -> Run:
    body = bodies[-1]
    condition = bodies[0] if len(bodies) == 2 else None

    def function(frame: Frame) -> list[Any]:
        found = []
        for _ in _iterations(frame, source(frame), places):
            if condition is not None and not _true(condition(frame)):
                continue
            frame[0] += LIST + 2
            found.append(body(frame))
        return found

    return function


def _entries(macro: str, source: Run, places: tuple[int, int], bodies: list[Run]) -> Run:
    """Compile the macros that construct maps."""
    body = bodies[-1]
    condition = bodies[0] if len(bodies) == 2 else None
    variable = places[0]
    whole = macro == "transformMapEntry"

    def function(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in _iterations(frame, source(frame), places):
            if condition is not None and not _true(condition(frame)):
                continue
            frame[0] += 2 if whole else 3
            made = body(frame) if whole else {frame[variable]: body(frame)}
            for key, value in made.items():
                if key in found:
                    raise CelError(f"insert failed: key {key} already exists")
                found[key] = value
        return found

    return function
