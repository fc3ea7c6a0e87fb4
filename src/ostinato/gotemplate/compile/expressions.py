"""Pipelines, commands and operands."""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.gotemplate.builtins import BUILTINS
from ostinato.gotemplate.builtins import call as call_value
from ostinato.gotemplate.compile.calls import Argument, call, conforming, method_call
from ostinato.gotemplate.compile.code import ROOT, STATE, Code, Frame, Run, failing, failure
from ostinato.gotemplate.compile.fields import Chain
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

    def find(self, name: str) -> tuple[int, int | None]:
        """The slot of a variable, and where the type of its value is kept."""
        for known, slot, box in reversed(self._visible):
            if known == name:
                return slot, box
        raise AssertionError(f"the parser accepted an unknown variable {name}")

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
        slots = self._declared(pipe) if declare else []
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

    def _declared(self, pipe: PipeNode) -> list[int]:
        names = [node.names[0] for node in pipe.declared]
        if pipe.assigns:
            return [self.scope.find(name)[0] for name in names]
        return [self.scope.declare(name) for name in names]

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
            slot, _ = self.scope.find(node.names[0])
            return Code(lambda frame, dot: frame[slot], node)  # noqa: ARG005
        if isinstance(node, PipeNode):
            return self.pipeline(node)
        if isinstance(node, DotNode):
            return Code(lambda frame, dot: dot, node)  # noqa: ARG005
        return Code(_constant(node), node)

    def _fields(self, node: FieldNode | ChainNode | VariableNode, rest: list[Node], final: Run | None) -> Code:
        arguments = [Argument(part, self.operand(part)) for part in rest]
        has_arguments = bool(arguments) or final is not None
        caller = method_call(arguments, final, node) if has_arguments else None
        if isinstance(node, FieldNode):
            chain = Chain(node.names, node, self._missing_key, caller)
            run = chain.compiled_from_dot(self.scope.dot_box)
            place: Node | None = node
        elif isinstance(node, VariableNode):
            slot, box = self.scope.find(node.names[0])
            chain = Chain(node.names[1:], node, self._missing_key, caller)
            run = chain.compiled(lambda frame, dot: frame[slot], box)  # noqa: ARG005
            place = node
        elif isinstance(node.node, NilNode):
            return Code(failing(node, f"indirection through explicit nil in {node}"), node)
        else:
            inner = self.operand(node.node)
            place = inner.last
            run = Chain(node.names, place, self._missing_key, caller).compiled(inner.run, None)
        return Code(run, arguments[-1].code.last if arguments else place)

    def _function(self, name: IdentifierNode, node: Node, rest: list[Node], final: Run | None) -> Code:
        target = self._functions[name.name]
        arguments = [Argument(part, self.operand(part)) for part in rest]
        last = arguments[-1].code.last if arguments else name
        if target is BUILTINS["call"]:
            called = str(rest[0]) if rest else "<reflect.Value Value>"
            target = Function(lambda *values: call_value(called, *values), (RAW,), RAW)
        elif target in (BUILTINS["and"], BUILTINS["or"]) and not target.miscounted(
            name.name, len(arguments), final is not None
        ):
            return _logical(arguments, final, stop=name.name == "or")
        return Code(call(target, name.name, arguments, final, node, name), last)


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


def _logical(arguments: list[Argument], final: Run | None, *, stop: bool) -> Code:
    """`and` and `or`: arguments up to the one that decides."""
    parts = [(argument.bound(RAW), argument.code.last) for argument in arguments]

    def run(frame: Frame, dot: Value) -> Value:
        passed = NO_VALUE if final is None else final(frame, dot)
        value: Value = NO_VALUE
        for part, last in parts:
            value = part(frame, dot)
            if bool(value) is stop:
                if last is not None:
                    frame[STATE].last = last
                return value
        if parts and last is not None:
            frame[STATE].last = last
        return value if final is None else passed

    return Code(run, None)


__all__ = ["Expressions", "Scope", "conforming"]
