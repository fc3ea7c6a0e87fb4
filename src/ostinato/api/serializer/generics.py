"""Type hints of generic classes, with their type arguments substituted.

`Page[Item]` and `class Items(Page[Item])` have the fields of Page with Item for its type variable.
"""

from __future__ import annotations

import inspect
import typing
from typing import Any


def class_of(model: Any) -> Any:
    """Return the class without type arguments: Page for `Page[Item]`."""
    return typing.get_origin(model) or model


def hints_of(model: Any) -> dict[str, Any]:
    """Return the annotations of a class and its bases by attribute."""
    cls = class_of(model)
    hints = typing.get_type_hints(cls, include_extras=True)
    given = _given(model)
    if not any(given.values()):
        return hints
    # A type variable may have different arguments in a class and in one of its bases.
    written = {name: each for each in reversed(cls.__mro__) for name in inspect.get_annotations(each)}
    return {name: _filled(hint, given.get(written[name], {})) for name, hint in hints.items()}


def _given(model: Any) -> dict[Any, dict[Any, Any]]:
    """Return the type arguments of the model's class and of each base, by type variable."""
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
