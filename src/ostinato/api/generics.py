"""Generic classes: what their annotations say with the types that they are given.

`Page[Item]` has the fields of Page, for Items; and so has `class Items(Page[Item])`.
"""

from __future__ import annotations

import typing
from typing import Any


def class_of(model: Any) -> Any:
    """The class itself: Page of `Page[Item]`."""
    return typing.get_origin(model) or model


def hints_of(model: Any) -> dict[str, Any]:
    """The annotations of a class by attribute, its own and those of its bases."""
    hints = typing.get_type_hints(class_of(model), include_extras=True)
    given = _given(model)
    return {name: _filled(hint, given) for name, hint in hints.items()} if given else hints


def _given(model: Any) -> dict[Any, Any]:
    """By type variable, the types that a class, and bases of it, are given."""
    cls = class_of(model)
    given = {} if cls is model else dict(zip(cls.__parameters__, typing.get_args(model), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        if class_of(base) is not typing.Generic:
            given |= {variable: _filled(each, given) for variable, each in _given(base).items()}
    return given


def _filled(annotation: Any, given: dict[Any, Any]) -> Any:
    if isinstance(annotation, typing.TypeVar):
        return given.get(annotation, annotation)
    variables = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not variables:
        return annotation
    return annotation[tuple(given.get(each, each) for each in variables)]
