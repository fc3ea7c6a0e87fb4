"""Calls of functions and methods with checked arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ostinato.gotemplate.compile.code import STATE, Code, Frame, Run, failure
from ostinato.gotemplate.errors import LimitError, TemplateError
from ostinato.gotemplate.functions import ANY, LIST, RAW, Function, checked, function, nil_argument
from ostinato.gotemplate.limits import MAX_ITEMS
from ostinato.gotemplate.tree import BoolNode, NilNode, Node, NumberNode, StringNode
from ostinato.gotemplate.values import NO_VALUE, Int32, Int64, Uint8, Uint64, Value

LARGE = 256  # results of more than this size count towards the limits
CAUGHT = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)  # what functions may raise

HUGE = 4096  # arguments of more than this size count as steps
_SIZED = frozenset([str, list, dict])
_READ = frozenset([str, list])  # what functions read all of

_INTEGERS: dict[str, Callable[[int], int]] = {"int": int, "int64": Int64, "int32": Int32}
_UNSIGNED: dict[str, Callable[[int], int]] = {"uint8": Uint8, "uint32": int, "uint64": Uint64}


class Argument:
    """An argument of a call: its node, and its code as a value of any type."""

    __slots__ = ("code", "node")

    def __init__(self, node: Node, code: Code) -> None:
        self.node = node
        self.code = code

    def bound(self, type_name: str) -> Run:
        """A closure that gives the argument as the type, or fails."""
        if isinstance(self.node, BoolNode | NilNode | NumberNode | StringNode):
            return self._literal(type_name)
        run, last = self.code
        if type_name == RAW:
            return run
        if type_name == ANY:

            def anything(frame: Frame, dot: Value) -> Value:
                value = run(frame, dot)
                return None if value is NO_VALUE else value

            return anything

        if type_name == "string":

            def string(frame: Frame, dot: Value) -> Value:
                value = run(frame, dot)
                return value if type(value) is str else conforming(frame, value, type_name, last)

            return string

        def typed(frame: Frame, dot: Value) -> Value:
            return conforming(frame, run(frame, dot), type_name, last)

        return typed

    def _literal(self, type_name: str) -> Run:
        node = self.node
        try:
            value = _literal_value(node, type_name)
        except TemplateError as error:
            message = str(error)

            def run(frame: Frame, _: Value) -> Value:
                raise failure(frame, node, message)

            return run
        if value is NO_VALUE and not isinstance(node, NilNode):
            return self.code.run  # a number without a type
        return lambda frame, dot: value  # noqa: ARG005


def _literal_value(node: Node, type_name: str) -> Value:
    """A literal as an argument of a type; NO_VALUE for a number whose type its own syntax decides."""
    if isinstance(node, NilNode):
        return nil_argument(type_name)
    if type_name in (ANY, RAW):
        if isinstance(node, BoolNode):
            return node.value
        return node.text if isinstance(node, StringNode) else NO_VALUE
    if type_name == "bool":
        if isinstance(node, BoolNode):
            return node.value
        raise TemplateError(f"expected bool; found {node}")
    if type_name == "string":
        if isinstance(node, StringNode):
            return node.text
        raise TemplateError(f"expected string; found {node}")
    if type_name in _INTEGERS:
        if isinstance(node, NumberNode) and node.integer is not None:
            return _INTEGERS[type_name](node.integer)
        raise TemplateError(f"expected integer; found {node}")
    if type_name in _UNSIGNED:
        if isinstance(node, NumberNode) and node.unsigned is not None:
            return _UNSIGNED[type_name](node.unsigned)
        raise TemplateError(f"expected unsigned integer; found {node}")
    if type_name == "float64":
        if isinstance(node, NumberNode):
            return node.floating
        raise TemplateError(f"expected float; found {node}")
    raise TemplateError(f"can't handle {node} for arg of type {type_name}")


def conforming(frame: Frame, value: Value, type_name: str, where: Node | None) -> Value:
    """The value as an argument of the type."""
    try:
        return checked(value, type_name)
    except TemplateError as error:
        raise failure(frame, where, str(error)) from None


def call(target: Function, name: str, arguments: Sequence[Argument], final: Run | None, node: Node, named: Node) -> Run:
    """A closure that calls a function.

    - `final`: the value of the pipeline so far; the last argument, evaluated first.
    - `node`: the command, in errors of the function. `named`: the name of the function, in errors of the call.
    """
    problem = target.miscounted(name, len(arguments), final is not None)
    if problem:

        def run(frame: Frame, dot: Value) -> Value:
            if final is not None:
                final(frame, dot)
            raise failure(frame, named, problem)

        return run
    runs = [argument.bound(target.type_of(number)) for number, argument in enumerate(arguments)]
    plain = target.call
    if target.wants_state:

        def with_state(frame: Frame, dot: Value) -> Value:
            passed = None if final is None else final(frame, dot)
            values = [run(frame, dot) for run in runs]
            if final is not None:
                values.append(conforming(frame, passed, final_type, last))
            return _called(frame, node, name, plain, [frame[STATE], *values])

        final_type = target.type_of(len(arguments))
        last = arguments[-1].code.last if arguments else named
        return with_state
    if final is not None:
        return _with_final(plain, name, runs, final, target.type_of(len(arguments)), arguments, node, named)
    return _without_final(plain, name, runs, node)


def _called(frame: Frame, node: Node, name: str, plain: Callable[..., Value], values: list[Value]) -> Value:
    try:
        for value in values:
            if type(value) in _READ and len(value) > HUGE:
                frame[STATE].budget.read(len(value))
        result = plain(*values)
        if type(result) in _SIZED and len(result) > LARGE:
            _account(frame, result, values)
    except CAUGHT as error:
        raise failed(frame, node, name, error) from error
    return result


def _account(frame: Frame, result: Sequence[Value], values: Sequence[Value]) -> None:
    """Count a result that is not one of the arguments: `set` gives the map that it changed."""
    if not any(result is value for value in values):
        frame[STATE].charge(len(result))
        if len(result) > MAX_ITEMS and not isinstance(result, str):
            raise LimitError(f"a list of {len(result)} elements is too long; the limit is {MAX_ITEMS}")


def failed(frame: Frame, node: Node | None, name: str, error: Exception) -> Exception:
    """The error of a function as an error of the template."""
    message = str(error)
    if isinstance(error, LimitError) and message.startswith("template: "):
        return LimitError(message)
    if isinstance(error, KeyError | TypeError | AttributeError):
        message = f"{type(error).__name__}: {message}"
    return failure(frame, node, f"error calling {name}: {message}", limit=isinstance(error, LimitError))


def _without_final(plain: Callable[..., Value], name: str, runs: list[Run], node: Node) -> Run:
    if len(runs) == 1:
        (only,) = runs

        def one(frame: Frame, dot: Value) -> Value:
            value = only(frame, dot)
            try:
                if type(value) in _READ and len(value) > HUGE:
                    frame[STATE].budget.read(len(value))
                result = plain(value)
                if type(result) in _SIZED and len(result) > LARGE:
                    _account(frame, result, (value,))
            except CAUGHT as error:
                raise failed(frame, node, name, error) from error
            return result

        return one
    if len(runs) == 2:
        first, second = runs

        def two(frame: Frame, dot: Value) -> Value:
            value, other = first(frame, dot), second(frame, dot)
            try:
                if type(value) in _READ and len(value) > HUGE:
                    frame[STATE].budget.read(len(value))
                if type(other) in _READ and len(other) > HUGE:
                    frame[STATE].budget.read(len(other))
                result = plain(value, other)
                if type(result) in _SIZED and len(result) > LARGE:
                    _account(frame, result, (value, other))
            except CAUGHT as error:
                raise failed(frame, node, name, error) from error
            return result

        return two

    def many(frame: Frame, dot: Value) -> Value:
        return _called(frame, node, name, plain, [run(frame, dot) for run in runs])

    return many


def _with_final(
    plain: Callable[..., Value],
    name: str,
    runs: list[Run],
    final: Run,
    type_name: str,
    arguments: Sequence[Argument],
    node: Node,
    named: Node,
) -> Run:
    last = arguments[-1].code.last if arguments else named

    def run(frame: Frame, dot: Value) -> Value:
        passed = final(frame, dot)
        values = [run(frame, dot) for run in runs]
        if type_name != RAW:
            if passed is NO_VALUE and type_name == ANY:
                passed = None
            elif type_name != ANY and not (type_name == "string" and type(passed) is str):
                passed = conforming(frame, passed, type_name, last)
        values.append(passed)
        return _called(frame, node, name, plain, values)

    return run


def method_call(arguments: Sequence[Argument], final: Run | None, node: Node) -> Callable[..., Value]:
    """A function that calls a method, known only in execution, with the arguments of the command."""
    compiled: dict[int, tuple[Function, Run]] = {}

    def run(frame: Frame, dot: Value, method: Callable[..., Value], name: str) -> Value:
        known = compiled.get(id(method))
        if known is None:
            target = function(method)
            known = (target, call(target, name, arguments, final, node, node))
        return known[1](frame, dot)

    return run


__all__ = ["LIST", "Argument", "call", "conforming", "failed", "method_call"]
