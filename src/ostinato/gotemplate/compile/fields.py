"""Chains of fields: `.a.b.c`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ostinato.gotemplate.compile.calls import CAUGHT, failed
from ostinato.gotemplate.compile.code import Frame, Run, failure
from ostinato.gotemplate.functions import function
from ostinato.gotemplate.strings import quote
from ostinato.gotemplate.tree import Node
from ostinato.gotemplate.values import NO_VALUE, List, Map, Object, Value, element_type, go_type, zero

INTERFACE: Final = "interface {}"

MethodCall = Callable[[Frame, Value, Callable[..., Value], str], Value]


def no_arguments(frame: Frame, node: Node | None, method: Callable[..., Value], name: str) -> Value:
    """Call a method without arguments."""
    target = function(method)
    problem = target.miscounted(name, 0, 0)
    if problem:
        raise failure(frame, node, problem)
    try:
        return target(frame[1]) if target.wants_state else target()
    except CAUGHT as error:
        raise failed(frame, node, name, error) from error


class Chain:
    """Reads fields one by one.

    - `where`: the node in errors.
    - `missing_key`: default, zero or error.
    - `call`: calls the method that the last name is, with the arguments of the command; None if it has none.
    """

    __slots__ = ("_call", "_missing_key", "_names", "_where")

    def __init__(
        self, names: Sequence[str], where: Node | None, missing_key: str, call: MethodCall | None = None
    ) -> None:
        self._names = tuple(names)
        self._where = where
        self._missing_key = missing_key
        self._call = call

    def compiled(self, start: Run, box: int | None) -> Run:
        """A closure that reads the fields of what `start` gives.

        `box`: the index in the frame of the type of that value, if it comes from a list or map.
        """
        names = self._names
        slow = self.read
        if self._missing_key == "error" or self._call is not None:

            def run(frame: Frame, dot: Value) -> Value:
                return slow(frame, dot, start(frame, dot), box)

            return run
        missing = None if self._missing_key == "zero" else NO_VALUE

        def walk(frame: Frame, dot: Value) -> Value:
            value = first = start(frame, dot)
            for name in names:
                if type(value) is not dict:
                    return slow(frame, dot, first, box)
                value = value.get(name, missing)
            return value

        return walk

    def compiled_from_dot(self, box: int | None) -> Run:
        """The same, of the dot."""
        names = self._names
        slow = self.read
        if self._missing_key == "error" or self._call is not None:

            def run(frame: Frame, dot: Value) -> Value:
                return slow(frame, dot, dot, box)

            return run
        missing = None if self._missing_key == "zero" else NO_VALUE
        if len(names) == 1:
            only = names[0]

            def one(frame: Frame, dot: Value) -> Value:
                return dot.get(only, missing) if type(dot) is dict else slow(frame, dot, dot, box)

            return one

        def walk(frame: Frame, dot: Value) -> Value:
            value = dot
            for name in names:
                if type(value) is not dict:
                    return slow(frame, dot, dot, box)
                value = value.get(name, missing)
            return value

        return walk

    def read(self, frame: Frame, dot: Value, value: Value, box: int | None) -> Value:
        """Read the fields of any value."""
        declared = "" if box is None else str(frame[box])  # the type of the place that the value is in
        last = len(self._names) - 1
        missing = None if self._missing_key == "zero" else NO_VALUE
        for number, name in enumerate(self._names):
            if type(value) is dict and self._call is None and self._missing_key != "error":
                value = value.get(name, missing)
                declared = INTERFACE
                continue
            container = value
            value = self._field(frame, dot, value, name, declared, self._call if number == last else None)
            declared = element_type(container) if isinstance(container, dict) else ""
        return value

    def _field(
        self, frame: Frame, dot: Value, value: Value, name: str, declared: str, call: MethodCall | None
    ) -> Value:
        where = self._where
        if value is NO_VALUE:
            if self._missing_key == "error":
                raise failure(frame, where, f"nil data; no entry for key {quote(name)}")
            return NO_VALUE
        if value is None:
            raise failure(frame, where, f"nil pointer evaluating {INTERFACE}.{name}")
        if isinstance(value, Map | List | Object):
            method = value.methods.get(name)
            if method is not None:
                return call(frame, dot, method, name) if call else no_arguments(frame, where, method, name)
        if isinstance(value, dict):
            if call is not None:
                raise failure(frame, where, f"{name} is not a method but has arguments")
            if name in value:
                return value[name]
            if self._missing_key == "error":
                raise failure(frame, where, f"map has no entry for key {quote(name)}")
            return zero(element_type(value)) if self._missing_key == "zero" else NO_VALUE
        if isinstance(value, Object) and name in value.fields:
            if call is not None:
                raise failure(frame, where, f"{name} has arguments but cannot be invoked as function")
            return value.fields[name]
        shown = INTERFACE if declared == INTERFACE else go_type(value)
        raise failure(frame, where, f"can't evaluate field {name} in type {shown}")
