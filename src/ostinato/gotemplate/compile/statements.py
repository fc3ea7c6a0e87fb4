"""Texts, actions, branches, loops and templates inside templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ostinato.gotemplate.compile.code import APPEND, STATE, Code, Frame, Run, failure
from ostinato.gotemplate.compile.expressions import Expressions, undefined
from ostinato.gotemplate.errors import LimitError, TemplateError
from ostinato.gotemplate.fmt import sprint, text
from ostinato.gotemplate.functions import Function
from ostinato.gotemplate.strings import quote
from ostinato.gotemplate.tree import (
    ActionNode,
    BranchNode,
    BreakNode,
    ListNode,
    Node,
    PipeNode,
    TemplateNode,
    TextNode,
    Tree,
)
from ostinato.gotemplate.values import NO_VALUE, Uint8, Value, element_type, sorted_keys


class _Break(Exception):  # noqa: N818
    pass


class _Continue(Exception):  # noqa: N818
    pass


def compiled(tree: Tree, functions: Mapping[str, Function], missing_key: str) -> tuple[Run, int, int]:
    """The closure of a template, the size of its frame, and its weight in steps."""
    statements = _Statements(functions, missing_key)
    root = tree.root if tree.root is not None else ListNode(0, tree)
    run, weight = statements.block(root)
    return run, statements.expressions.scope.size, weight


class _Statements:
    def __init__(self, functions: Mapping[str, Function], missing_key: str) -> None:
        self.expressions = Expressions(functions, missing_key)
        self._scope = self.expressions.scope

    def block(self, nodes: ListNode) -> tuple[Run, int]:
        """A closure that runs all nodes, and their weight."""
        parts = [self._statement(node) for node in nodes.nodes]
        runs = tuple(run for run, _ in parts)
        weight = 1 + sum(weight for _, weight in parts)
        if len(runs) == 1:
            return runs[0], weight

        def run(frame: Frame, dot: Value) -> Value:
            for part in runs:
                part(frame, dot)

        return run, weight

    def _statement(self, node: Node) -> tuple[Run, int]:
        if isinstance(node, TextNode):
            plain = node.text

            def write(frame: Frame, _: Value) -> Value:
                frame[APPEND](plain)

            return write, 1
        if isinstance(node, ActionNode):
            return self._action(node), _weight(node.pipe)
        if isinstance(node, BranchNode):
            return self._range(node) if node.keyword == "range" else self._branch(node)
        if isinstance(node, TemplateNode):
            return self._template(node), 1
        return _stop if isinstance(node, BreakNode) else _skip, 1

    def _action(self, node: ActionNode) -> Run:
        if node.pipe.declared:
            return self.expressions.pipeline(node.pipe).run
        value_of = self.expressions.printed(node.pipe).run

        def write(frame: Frame, dot: Value) -> Value:
            value = value_of(frame, dot)
            if type(value) is not str:
                try:
                    value = text(value)
                except TemplateError as error:
                    raise failure(
                        frame, node, f"can't print {node}: {error}", limit=type(error) is LimitError
                    ) from None
            frame[APPEND](value)

        return write

    def _branch(self, node: BranchNode) -> tuple[Run, int]:
        mark = self._scope.mark()
        condition = self.expressions.pipeline(node.pipe).run
        declared = self._scope.mark()
        box = self._scope.dot_box
        sets_dot = node.keyword == "with"
        if sets_dot:
            self._scope.dot_box = None
        body, weight = self.block(node.body)
        self._scope.dot_box = box
        self._scope.release(declared)  # to the parser, the else part sees them; in execution they do not exist
        weight += _weight(node.pipe)
        otherwise: Run | None = None
        if node.otherwise is not None:
            otherwise, more = self.block(node.otherwise)
            weight += more
        self._scope.release(mark)

        def with_(frame: Frame, dot: Value) -> Value:
            value = condition(frame, dot)
            if value:
                body(frame, value)
            elif otherwise is not None:
                otherwise(frame, dot)

        def if_(frame: Frame, dot: Value) -> Value:
            if condition(frame, dot):
                body(frame, dot)
            elif otherwise is not None:
                otherwise(frame, dot)

        return with_ if sets_dot else if_, weight

    def _template(self, node: TemplateNode) -> Run:
        name = node.name
        argument = None if node.pipe is None else self.expressions.pipeline(node.pipe).run

        def run(frame: Frame, dot: Value) -> Value:
            state = frame[STATE]
            template = state.templates.lookup(name)
            if template is None:
                raise failure(frame, node, f"template {quote(name)} not defined")
            data = NO_VALUE if argument is None else argument(frame, dot)
            try:
                template.execute(frame[APPEND], state, data)
            except LimitError as error:
                if str(error).startswith("template: "):
                    raise
                raise failure(frame, node, str(error), limit=True) from error

        return run

    def _range(self, node: BranchNode) -> tuple[Run, int]:
        scope = self._scope
        mark = scope.mark()
        code = self.expressions.pipeline(node.pipe, declare=False)
        names = [variable.names[0] for variable in node.pipe.declared]
        box_slot = scope.slot()
        slots: list[int] | None
        if node.pipe.assigns:
            slots = self.expressions.assigned(names)
        else:
            slots = [
                scope.declare(name, box_slot if number == len(names) - 1 else None) for number, name in enumerate(names)
            ]
        if slots is None:
            return undefined(names, code.run, code.last, scope), 1
        declared = scope.mark()
        outer = scope.dot_box
        scope.dot_box = box_slot
        body, weight = self.block(node.body)
        scope.dot_box = outer
        scope.release(declared)
        otherwise, more = (None, 0) if node.otherwise is None else self.block(node.otherwise)
        scope.release(mark)
        if _has_loop_control(node.body):
            body = _continued(body)
        return _loop(code, slots, box_slot, body, weight, otherwise), _weight(node.pipe) + more


def _weight(pipe: PipeNode) -> int:
    """The number of operands of a pipeline."""
    parts = [part for command in pipe.commands for part in command.arguments]
    return 1 + len(parts) + sum(_weight(part) for part in parts if isinstance(part, PipeNode))


def _loop(code: Code, slots: list[int], box_slot: int, body: Run, weight: int, otherwise: Run | None) -> Run:
    collection, last = code
    key_slot = slots[0] if len(slots) > 1 else None
    item_slot = slots[-1] if slots else None

    def run(frame: Frame, dot: Value) -> Value:
        values = collection(frame, dot)
        for slot in slots:
            frame[slot] = values
        frame[box_slot] = element_type(values)
        budget = frame[STATE].budget
        if isinstance(values, list | dict | bytes):
            budget.steps -= len(values) // 16
        done = False
        try:
            for key, item in _items(frame, values, last, len(slots)):
                done = True
                budget.steps -= weight
                if budget.steps < 0:
                    raise failure(frame, last, str(budget.out_of_steps()), limit=True)
                if item_slot is not None:
                    frame[item_slot] = item
                    if key_slot is not None:
                        frame[key_slot] = key
                body(frame, item)
            if not done and otherwise is not None:
                otherwise(frame, dot)  # a break in it ends this loop, as in Go, not the one around it
        except _Break:
            return

    return run


def _items(frame: Frame, values: Value, last: Node | None, variables: int) -> Iterable[tuple[Value, Value]]:
    if isinstance(values, list):
        return enumerate(list(values))
    if isinstance(values, dict):
        return [(key, values[key]) for key in sorted_keys(values)]
    if values is NO_VALUE:
        return ()
    if isinstance(values, bytes):
        return enumerate(map(Uint8, values))
    if isinstance(values, int) and not isinstance(values, bool):
        if variables > 1:
            raise failure(frame, last, f"can't use {int(values)} to iterate over more than one variable")
        return _count(values)
    try:
        shown = sprint(values)
    except TemplateError as error:
        shown = str(error)
    raise failure(frame, last, f"range can't iterate over {shown}")


def _count(limit: int) -> Iterator[tuple[Value, Value]]:
    make: Callable[[int], Any] = type(limit)
    for number in range(limit):
        yield NO_VALUE, make(number)


def _has_loop_control(node: ListNode) -> bool:
    """Whether the body of a loop has `break` or `continue`, outside of loops inside it."""
    for part in node.nodes:
        if isinstance(part, BranchNode):
            own = part.keyword != "range" and _has_loop_control(part.body)
            if own or (part.otherwise is not None and _has_loop_control(part.otherwise)):
                return True
        elif not isinstance(part, TextNode | ActionNode | TemplateNode):
            return True
    return False


def _continued(body: Run) -> Run:
    def run(frame: Frame, dot: Value) -> Value:
        try:
            body(frame, dot)
        except _Continue:
            return

    return run


def _stop(_: Frame, __: Value) -> Value:
    raise _Break


def _skip(_: Frame, __: Value) -> Value:
    raise _Continue
