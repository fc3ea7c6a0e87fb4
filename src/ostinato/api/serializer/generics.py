"""Generic classes: what their annotations say with the types that they are given.

`Page[Item]` has the fields of Page, for Items; and so has `class Items(Page[Item])`.
"""

from __future__ import annotations

import inspect
import typing
from typing import Any


def class_of(model: Any) -> Any:
    """The class itself: Page of `Page[Item]`."""
    return typing.get_origin(model) or model


def hints_of(model: Any) -> dict[str, Any]:
    """The annotations of a class by attribute, its own and those of its bases."""
    cls = class_of(model)
    hints = typing.get_type_hints(cls, include_extras=True)
    given = _given(model)
    if not any(given.values()):
        return hints
    # One type variable may stand for different types in a class and in a base of it: each has its own.
    written = {name: each for each in reversed(cls.__mro__) for name in inspect.get_annotations(each)}
    return {name: _filled(hint, given.get(written[name], {})) for name, hint in hints.items()}


def _given(model: Any) -> dict[Any, dict[Any, Any]]:
    """By class, the model's and those of its bases, the types that its type variables are given."""
    cls = class_of(model)
    own = {} if cls is model else dict(zip(cls.__parameters__, typing.get_args(model), strict=False))
    found = {cls: own}
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        if class_of(base) is not typing.Generic:
            found |= _given(_filled(base, own))
    return found


def _filled(annotation: Any, given: dict[Any, Any]) -> Any:
    if isinstance(annotation, typing.TypeVar):
        return given.get(annotation, annotation)
    variables = getattr(annotation, "__parameters__", ())
    if isinstance(annotation, type) or not variables:
        return annotation
    return annotation[tuple(given.get(each, each) for each in variables)]
