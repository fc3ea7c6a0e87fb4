"""Functions that templates call: what they take, and how their arguments are checked."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any, Final

from ostinato.gotemplate.errors import ExecutionError, TemplateError
from ostinato.gotemplate.values import (
    NO_VALUE,
    FunctionValue,
    Int64,
    Map,
    Object,
    Strings,
    Value,
    element_type,
    go_type,
)

ANY: Final = "interface {}"
RAW: Final = "reflect.Value"  # gets NO_VALUE where others get None
MAP: Final = "map[string]interface {}"
LIST: Final = "[]interface {}"

_ANNOTATIONS: Final[dict[object, str]] = {
    str: "string",
    int: "int",
    Int64: "int64",
    float: "float64",
    bool: "bool",
    bytes: "[]uint8",
    dict: MAP,
    list: LIST,
    Strings: "[]string",
}
_PYTHON: Final[dict[str, type]] = {
    "string": str,
    "int": int,
    "int64": Int64,
    "float64": float,
    "bool": bool,
    "[]uint8": bytes,
}


class Function(FunctionValue):
    """A Python callable with the Go types of its parameters.

    - `parameters`: a type for each parameter, as Go writes it; ANY accepts all values, RAW also those that are missing.
    - `variadic`: the type of further arguments; None if there are none.
    - `wants_state`: whether the callable gets the `State` of the execution as its first argument.
    """

    __slots__ = ("call", "parameters", "variadic", "wants_state")

    def __init__(
        self,
        call: Callable[..., Value],
        parameters: Iterable[str] = (),
        variadic: str | None = None,
        *,
        wants_state: bool = False,
    ) -> None:
        self.call = call
        self.parameters = tuple(parameters)
        self.variadic = variadic
        self.wants_state = wants_state

    def __call__(self, *arguments: Value) -> Value:
        return self.call(*arguments)

    def type_of(self, index: int) -> str:
        """The type of the parameter that takes an argument."""
        return self.parameters[index] if index < len(self.parameters) else self.variadic or ANY

    def miscounted(self, name: str, given: int, final: int) -> str:
        """The error for this many arguments and a final one (0 or 1) from a pipeline; empty if they fit."""
        wanted = len(self.parameters)
        if self.variadic is not None:
            if given + final < wanted:
                return f"wrong number of args for {name}: want at least {wanted} got {given}"
        elif given + final != wanted:
            return f"wrong number of args for {name}: want {wanted} got {given + final}"
        return ""


def function(call: Callable[..., Value]) -> Function:
    """The function of a callable, by its annotations.

    `str`, `int`, `Int64`, `float`, `bool`, `bytes`, `dict`, `list` and `Strings` are checked; other annotations, or
    none, take any value. `*args` is variadic. A first parameter with the annotation `State` gets the state. Parameters
    with defaults and keyword parameters are not allowed.
    """
    if isinstance(call, Function):
        return call
    parameters: list[str] = []
    variadic: str | None = None
    wants_state = False
    for number, parameter in enumerate(_signature(call).parameters.values()):
        if parameter.annotation == "State" or getattr(parameter.annotation, "__name__", "") == "State":
            if number:
                raise TypeError(f"{call!r}: the state is not the first parameter")
            wants_state = True
        elif parameter.kind is parameter.VAR_POSITIONAL:
            variadic = _type_name(parameter.annotation)
        elif (
            parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) or parameter.default is not inspect._empty
        ):
            raise TypeError(f"{call!r}: parameter {parameter.name} is not positional and required")
        else:
            parameters.append(_type_name(parameter.annotation))
    return Function(call, parameters, variadic, wants_state=wants_state)


def _signature(call: Callable[..., Value]) -> inspect.Signature:
    try:
        return inspect.signature(call, eval_str=True)
    except NameError:  # a name that is imported for type checkers alone
        return inspect.signature(call)


def _type_name(annotation: Any) -> str:
    if isinstance(annotation, str):
        annotation = {"str": str, "int": int, "float": float, "bool": bool, "dict": dict, "list": list}.get(
            annotation.partition("[")[0]
        )
    return _ANNOTATIONS.get(typing.get_origin(annotation) or annotation, ANY)


def checked(value: Value, type_name: str) -> Value:
    """The value as an argument of the type; TemplateError if it is none."""
    if type_name == RAW:
        return value
    if type_name == ANY:
        return None if value is NO_VALUE else value
    python = _PYTHON.get(type_name)
    if python is not None:
        if type(value) is python:
            return value
        if python is str and isinstance(value, str):
            return value
    elif _assignable(value, type_name):
        return value
    if value is NO_VALUE:
        if type_name.startswith("map["):
            return {}
        if type_name.startswith("[]"):
            return []
        if type_name.startswith("*"):
            return None
        raise TemplateError(f"invalid value; expected {type_name}")
    given = ANY if value is None else go_type(value)
    raise TemplateError(f"wrong type for value; expected {type_name}; got {given}")


def _assignable(value: Value, type_name: str) -> bool:
    if isinstance(value, dict):
        return go_type(value) == type_name or (
            type_name.startswith("map[") and f"map[string]{element_type(value)}" == type_name
        )
    if isinstance(value, list):
        return f"[]{element_type(value)}" == type_name
    return isinstance(value, Object | Map) and value.go_type == type_name


def nil_argument(type_name: str) -> Value:
    """The literal `nil` as an argument."""
    if type_name == RAW:
        return NO_VALUE
    if type_name == ANY or type_name.startswith("*"):
        return None
    if type_name.startswith("map["):
        return {}
    if type_name.startswith("[]"):
        return []
    raise ExecutionError(f"cannot assign nil to {type_name}")
