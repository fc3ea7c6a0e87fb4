"""Pipelines, commands and operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ostinato.gotemplate.builtins import BOXED, BUILTINS
from ostinato.gotemplate.builtins import call as call_value
from ostinato.gotemplate.compile.calls import Argument, call, conforming, method_call
from ostinato.gotemplate.compile.code import ROOT, STATE, Code, Frame, Run, failing, failure
from ostinato.gotemplate.compile.fields import INTERFACE, Chain
from ostinato.gotemplate.functions import RAW, Function
from ostinato.gotemplate.tree import (
    BoolNode,
    ChainNode,
    CommandNode,
    DotNode,
    FieldNode,
    IdentifierNode,
    NilNode,
    Node,
    NumberNode,
    PipeNode,
    StringNode,
    VariableNode,
)
from ostinato.gotemplate.values import NO_VALUE, Value


class Scope:
    """The variables of a template, and what is known of the dot, at one place of its text."""

    def __init__(self) -> None:
        self.size = ROOT + 1  # of the frame
        self._visible: list[tuple[str, int, int | None]] = [("$", ROOT, None)]
        self.dot_box: int | None = None  # where a loop keeps the type of its elements

    def slot(self) -> int:
        """A new place in the frame."""
        self.size += 1
        return self.size - 1

    def declare(self, name: str, box: int | None = None) -> int:
        slot = self.slot()
        self._visible.append((name, slot, box))
        return slot

    def find(self, name: str) -> tuple[int, int | None] | None:
        """The slot of a variable, and where the type of its value is kept; None if it is not declared yet."""
        for known, slot, box in reversed(self._visible):
            if known == name:
                return slot, box
        return None

    def mark(self) -> int:
        return len(self._visible)

    def release(self, mark: int) -> None:
        del self._visible[mark:]


class Expressions:
    """Compiles the expressions of one template."""

    def __init__(self, functions: Mapping[str, Function], missing_key: str) -> None:
        self._functions = functions
        self._missing_key = missing_key
        self.scope = Scope()

    def pipeline(self, pipe: PipeNode, *, declare: bool = True) -> Code:
        """The value of a pipeline: never None, but NO_VALUE. It sets the variables that the pipeline declares."""
        code = self._commands(pipe)
        run = code.run
        names = [node.names[0] for node in pipe.declared] if declare else []
        slots = self.assigned(names) if pipe.assigns else [self.scope.declare(name) for name in names]
        if slots is None:
            return Code(undefined(names, run, code.last, self.scope), code.last)
        if not slots:
            if isinstance(pipe.commands[-1].arguments[0], BoolNode | NumberNode | StringNode):
                return code

            def value_of(frame: Frame, dot: Value) -> Value:
                value = run(frame, dot)
                return NO_VALUE if value is None else value

            return Code(value_of, code.last)

        def assign(frame: Frame, dot: Value) -> Value:
            value = run(frame, dot)
            if value is None:
                value = NO_VALUE
            for slot in slots:
                frame[slot] = value
            return value

        return Code(assign, code.last)

    def printed(self, pipe: PipeNode) -> Code:
        """The value of a pipeline that declares nothing; None and NO_VALUE print alike."""
        return self._commands(pipe)

    def assigned(self, names: Sequence[str]) -> list[int] | None:
        """The slots of variables that are assigned to; None if one is not declared."""
        found = [self.scope.find(name) for name in names]
        return None if None in found else [place[0] for place in found if place is not None]

    def _commands(self, pipe: PipeNode) -> Code:
        code = self._command(pipe.commands[0], None, pipe)
        for command in pipe.commands[1:]:
            code = self._command(command, code, pipe)
        return code

    def _command(self, command: CommandNode, final: Code | None, pipe: PipeNode) -> Code:
        """One command; `final` is the one before it."""
        first, *rest = command.arguments
        previous = None if final is None else _elem(final.run)
        if isinstance(first, IdentifierNode):
            return self._function(first, command, rest, previous)
        if isinstance(first, FieldNode | ChainNode) or (isinstance(first, VariableNode) and len(first.names) > 1):
            return self._fields(first, rest, previous)
        if rest or previous is not None:
            place = (pipe if final is None else final.last) if isinstance(first, PipeNode) else first
            return Code(_not_a_function(first, previous, place), place)
        if isinstance(first, NilNode):
            return Code(failing(first, "nil is not a command"), first)
        return self.operand(first)

    def operand(self, node: Node) -> Code:
        """A value that stands alone or as an argument."""
        if isinstance(node, IdentifierNode):
            return self._function(node, node, [], None)
        if isinstance(node, FieldNode | ChainNode):
            return self._fields(node, [], None)
        if isinstance(node, VariableNode):
            if len(node.names) > 1:
                return self._fields(node, [], None)
            place = self.scope.find(node.names[0])
            if place is None:
                return Code(failing(node, f"undefined variable: {node.names[0]}"), node)
            slot = place[0]
            return Code(lambda frame, dot: frame[slot], node)  # noqa: ARG005
        if isinstance(node, PipeNode):
            return self.pipeline(node)
        if isinstance(node, DotNode):
            return Code(lambda frame, dot: dot, node)  # noqa: ARG005
        return Code(_constant(node), node)

    def _fields(self, node: FieldNode | ChainNode | VariableNode, rest: list[Node], final: Run | None) -> Code:
        arguments = [Argument(part, self.operand(part)) for part in rest]
        has_arguments = bool(arguments) or final is not None
        slot_of_final = 0 if final is None else self.scope.slot()
        passed = None if final is None else lambda frame, dot: frame[slot_of_final]  # noqa: ARG005
        caller = method_call(arguments, passed, node) if has_arguments else None
        if isinstance(node, FieldNode):
            chain = Chain(node.names, node, self._missing_key, caller)
            run = chain.compiled_from_dot(self.scope.dot_box)
            place: Node | None = node
        elif isinstance(node, VariableNode):
            found = self.scope.find(node.names[0])
            if found is None:
                return Code(failing(node, f"undefined variable: {node.names[0]}"), node)
            slot, box = found
            chain = Chain(node.names[1:], node, self._missing_key, caller)
            run = chain.compiled(lambda frame, dot: frame[slot], box)  # noqa: ARG005
            place = node
        elif isinstance(node.node, NilNode):
            return Code(failing(node, f"indirection through explicit nil in {node}"), node)
        else:
            inner = self.operand(node.node)
            place = inner.last
            run = Chain(node.names, place, self._missing_key, caller).compiled(inner.run, None)
        if final is not None:
            run = _after(final, slot_of_final, run)
        return Code(run, arguments[-1].code.last if arguments else place)

    def _boxed(self, argument: Argument) -> Code:
        """An index of `slice`: Go refuses those that come from a list or map of interfaces."""
        node, (run, last) = argument.node, argument.code
        box: int | None = None
        if isinstance(node, DotNode):
            box = self.scope.dot_box
        elif isinstance(node, VariableNode) and len(node.names) == 1:
            place = self.scope.find(node.names[0])
            box = None if place is None else place[1]
        elif isinstance(node, FieldNode | ChainNode | VariableNode):
            box = STATE  # never a type
        if box is None:
            return argument.code

        def boxed(frame: Frame, dot: Value) -> Value:
            value = run(frame, dot)
            return BOXED if value is not NO_VALUE and frame[box] in (INTERFACE, frame[STATE]) else value

        return Code(boxed, last)

    def _function(self, name: IdentifierNode, node: Node, rest: list[Node], final: Run | None) -> Code:
        target = self._functions[name.name]
        arguments = [Argument(part, self.operand(part)) for part in rest]
        last = arguments[-1].code.last if arguments else name
        if target is BUILTINS["call"]:
            called = str(rest[0]) if rest else ""
            target = Function(lambda *values: call_value(called, *values), (RAW,), RAW)
        elif target is BUILTINS["slice"]:
            arguments[1:] = [Argument(part.node, self._boxed(part)) for part in arguments[1:]]
        elif target in (BUILTINS["and"], BUILTINS["or"]) and not target.miscounted(
            name.name, len(arguments), final is not None
        ):
            return _logical(name, arguments, final)
        return Code(call(target, name.name, arguments, final, node, name), last)


def _after(final: Run, slot: int, run: Run) -> Run:
    """A closure that evaluates the pipeline so far, keeps its value, and then runs another."""

    def both(frame: Frame, dot: Value) -> Value:
        frame[slot] = final(frame, dot)
        return run(frame, dot)

    return both


def undefined(names: Sequence[str], run: Run, last: Node | None, scope: Scope) -> Run:
    """A closure for an assignment to a variable that is not declared; the parser does not notice."""
    name = next(name for name in names if scope.find(name) is None)

    def fail(frame: Frame, dot: Value) -> Value:
        run(frame, dot)
        raise failure(frame, last, f"undefined variable: {name}")

    return fail


def _elem(run: Run) -> Run:
    """The value of a command for the next one of the pipeline."""

    def value_of(frame: Frame, dot: Value) -> Value:
        value = run(frame, dot)
        return NO_VALUE if value is None else value

    return value_of


def _not_a_function(first: Node, previous: Run | None, place: Node | None) -> Run:
    shown = f"{first}"

    def run(frame: Frame, dot: Value) -> Value:
        if previous is not None:
            previous(frame, dot)
        raise failure(frame, place, f"can't give argument to non-function {shown}")

    return run


def _constant(node: Node) -> Run:
    if isinstance(node, BoolNode):
        value: Value = node.value
    elif isinstance(node, StringNode):
        value = node.text
    elif isinstance(node, NumberNode):
        text = node.text
        is_hexadecimal = text[:2].lower() == "0x" and len(text) > 2 and not set(text) & set("pP")
        if not is_hexadecimal and text[0] != "'" and set(text) & set(".eEpP"):
            value = node.floating
        elif node.integer is None:
            return failing(node, f"{text} overflows int")
        else:
            value = node.integer
    else:
        return failing(node, f"can't handle assignment of {node} to empty interface argument")
    return lambda frame, dot: value  # noqa: ARG005


def _logical(name: IdentifierNode, arguments: list[Argument], final: Run | None) -> Code:
    """`and` and `or`: arguments up to the one that decides."""
    stop = name.name == "or"
    parts = [(argument.bound(RAW), argument.code.last) for argument in arguments]

    def run(frame: Frame, dot: Value) -> Value:
        passed = NO_VALUE if final is None else final(frame, dot)
        value: Value = NO_VALUE
        last: Node | None = name
        for part, last in parts:  # noqa: B007
            value = part(frame, dot)
            if bool(value) is stop:
                break
        else:
            if final is not None:
                value = passed
        if last is not None:  # else the part has set it
            frame[STATE].last = last
        return value

    return Code(run, None)


__all__ = ["Expressions", "Scope", "conforming"]
