"""Selection: which objects of a kind have a daemon or a timer."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.cache.lister import selector_of
from ostinato.client.options import LabelSelection


class Selection:
    """Objects that are not being deleted, and that match labels and a function."""

    def __init__(self, labels: LabelSelection = None, when: Callable[[Any], object] | None = None) -> None:
        if when is not None and (not callable(when) or iscoroutinefunction(when)):
            raise TypeError(f"when: {when!r} is not a plain function of an object")
        self._selector = None if labels is None else selector_of(labels)
        self._when = when

    def includes(self, instance: AnyObject | None) -> bool:
        """Return whether the object exists and is selected."""
        if instance is None or access.is_being_deleted(instance):
            return False
        if self._selector is not None and not self._selector.matches(access.labels(instance)):
            return False
        return self._when is None or bool(self._when(instance))
