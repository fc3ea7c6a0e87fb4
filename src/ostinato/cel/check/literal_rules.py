"""Checks of well-typed expressions: literals that functions reject, and lists of mixed types.

Literal patterns, timestamps, durations and format strings are validated when an expression is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.cel.issues import Issues
from ostinato.cel.libraries.formatting import clause_error, clauses
from ostinato.cel.libraries.strings import expression
from ostinato.cel.libraries.timestamps import duration, of_seconds, timestamp
from ostinato.cel.tree import Call, ListNode, Literal, MapNode, Node, children
from ostinato.cel.types import STRING, Type, unwrap_optional
from ostinato.cel.values import CelError

# Functions that parse a string, with the index of that argument.
_READERS: Final[dict[str, Callable[[str], Any]]] = {"duration": duration, "timestamp": timestamp, "matches": expression}


def check_literals(node: Node, issues: Issues, *, mixed: bool = False) -> None:
    """Validate literals. `mixed`: lists and maps may have items of several types, as the arguments of `format`."""
    if isinstance(node, Call):
        _call(node, issues)
        mixed = mixed or node.function == "format"
    elif not mixed:
        _alike(node, issues)
    for below in children(node):
        check_literals(below, issues, mixed=mixed)


def _call(call: Call, issues: Issues) -> None:
    if call.function == "format" and call.target is not None:
        _template(call, issues)
    literal = call.args[0] if call.args else None
    if call.function in _READERS and isinstance(literal, Literal):
        try:
            if literal.literal is STRING:
                _READERS[call.function](literal.value)
            elif call.function == "timestamp":
                of_seconds(literal.value)
        except CelError:
            issues.add(literal.at, f"invalid {call.function} argument")


def _alike(node: Node, issues: Issues) -> None:
    if isinstance(node, ListNode):
        first: Type | None = None
        for i, item in enumerate(node.items):
            found = unwrap_optional(item.type)[0] if i in node.optional else item.type
            first = first or found
            if not first.same(found):
                issues.add(item.at, f"expected type '{first}' but found '{found}'")
                return
    elif isinstance(node, MapNode) and node.entries:
        head = node.entries[0]
        value = unwrap_optional(head.value.type)[0] if head.optional else head.value.type
        for entry in node.entries[1:]:
            found = unwrap_optional(entry.value.type)[0] if entry.optional else entry.value.type
            if not head.key.type.same(entry.key.type):
                issues.add(entry.key.at, f"expected type '{head.key.type}' but found '{entry.key.type}'")
            if not value.same(found):
                issues.add(entry.value.at, f"expected type '{value}' but found '{found}'")


def _template(call: Call, issues: Issues) -> None:
    """Validate literal arguments of a literal format string."""
    template, args = call.target, call.args[0]
    if not (isinstance(template, Literal) and template.literal is STRING and isinstance(args, ListNode)):
        return
    used = 0
    try:
        for letter in clauses(template.value):
            if used >= len(args.items):
                raise CelError(f"index {used} out of range")
            arg = args.items[used]
            fault = clause_error(letter, arg.type.kind)
            if fault:
                issues.add(arg.at, f"error during formatting: {fault}, was given {arg.type}")
                return
            used += 1
    except CelError as error:
        issues.add(call.at, str(error))
        return
    if len(args.items) > used:
        issues.add(
            call.at,
            f"too many arguments supplied to string.format (expected {used}, got {len(args.items)})",
        )
