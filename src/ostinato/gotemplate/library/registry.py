"""Functions by name, with the types of their parameters in Go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.functions import Function

F = TypeVar("F", bound=Callable[..., Any])


class PanicError(TemplateError):
    """Go would panic: text/template reports it as the error of the function, with the message of the panic."""


class Registry(dict[str, Function]):
    """A part of the library."""

    def __call__(self, names: str, parameters: str) -> Callable[[F], F]:
        """Register a function under one or several names. The last parameter repeats if it begins with "..."."""

        def register(function: F) -> F:
            self.add(names, parameters, function)
            return function

        return register

    def add(self, names: str, parameters: str, function: Callable[..., Any]) -> None:
        """Register a function that is not defined in place."""
        types = parameters.split(", ") if parameters else []
        variadic = types.pop().removeprefix("...") if types and types[-1].startswith("...") else None
        for name in names.split():
            self[name] = Function(function, types, variadic)
