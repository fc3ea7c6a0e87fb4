"""Syntax trees of templates. `str(node)` is the text that Go shows in error messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from ostinato.gotemplate.strings import encode, quote


@dataclass(slots=True, eq=False)
class Tree:
    """A template: the text of a file, or of one `define` or `block` in it."""

    name: str
    file: str  # the name that the text was parsed under
    text: str
    root: ListNode | None = None

    def location(self, node: Node) -> str:
        """`NAME:LINE:COLUMN` of a node; columns are counted in bytes, from 0."""
        before = self.text[: node.position]
        start = before.rfind("\n") + 1
        return f"{self.file}:{before.count(chr(10)) + 1}:{len(encode(before[start:]))}"


@dataclass(slots=True, eq=False)
class Node:
    """A part of a template."""

    position: int
    tree: Tree


@dataclass(slots=True, eq=False)
class ListNode(Node):
    nodes: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(map(str, self.nodes))


@dataclass(slots=True, eq=False)
class TextNode(Node):
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True, eq=False)
class PipeNode(Node):
    declared: list[VariableNode] = field(default_factory=list)
    assigns: bool = False
    commands: list[CommandNode] = field(default_factory=list)

    def __str__(self) -> str:
        names = ", ".join(map(str, self.declared))
        prefix = f"{names} {'=' if self.assigns else ':='} " if names else ""
        return prefix + " | ".join(map(str, self.commands))


@dataclass(slots=True, eq=False)
class CommandNode(Node):
    arguments: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, PipeNode) else str(part) for part in self.arguments)


@dataclass(slots=True, eq=False)
class ActionNode(Node):
    pipe: PipeNode

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


@dataclass(slots=True, eq=False)
class IdentifierNode(Node):
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True, eq=False)
class VariableNode(Node):
    names: list[str]  # the variable with its dollar sign, then fields

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(slots=True, eq=False)
class DotNode(Node):
    def __str__(self) -> str:
        return "."


@dataclass(slots=True, eq=False)
class NilNode(Node):
    def __str__(self) -> str:
        return "nil"


@dataclass(slots=True, eq=False)
class FieldNode(Node):
    names: list[str]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


@dataclass(slots=True, eq=False)
class ChainNode(Node):
    node: Node
    names: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        start = f"({self.node})" if isinstance(self.node, PipeNode) else str(self.node)
        return start + "".join(f".{name}" for name in self.names)


@dataclass(slots=True, eq=False)
class BoolNode(Node):
    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(slots=True, eq=False)
class NumberNode(Node):
    text: str
    integer: int | None  # the value as int64
    unsigned: int | None  # the value as uint64
    floating: float

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True, eq=False)
class StringNode(Node):
    literal: str
    text: str

    def __str__(self) -> str:
        return self.literal


@dataclass(slots=True, eq=False)
class EndNode(Node):
    def __str__(self) -> str:
        return "{{end}}"


@dataclass(slots=True, eq=False)
class ElseNode(Node):
    def __str__(self) -> str:
        return "{{else}}"


@dataclass(slots=True, eq=False)
class BreakNode(Node):
    def __str__(self) -> str:
        return "{{break}}"


@dataclass(slots=True, eq=False)
class ContinueNode(Node):
    def __str__(self) -> str:
        return "{{continue}}"


@dataclass(slots=True, eq=False)
class BranchNode(Node):
    """`if`, `with` or `range`."""

    keyword: str
    pipe: PipeNode
    body: ListNode
    otherwise: ListNode | None

    def __str__(self) -> str:
        otherwise = "" if self.otherwise is None else f"{{{{else}}}}{self.otherwise}"
        return f"{{{{{self.keyword} {self.pipe}}}}}{self.body}{otherwise}{{{{end}}}}"


@dataclass(slots=True, eq=False)
class TemplateNode(Node):
    name: str
    pipe: PipeNode | None

    def __str__(self) -> str:
        argument = "" if self.pipe is None else f" {self.pipe}"
        return f"{{{{template {quote(self.name)}{argument}}}}}"


def is_empty(node: Node | None) -> bool:
    """Whether the template has only spaces: it then does not replace another of its name."""
    if isinstance(node, ListNode):
        return all(map(is_empty, node.nodes))
    return node is None or (isinstance(node, TextNode) and not node.text.strip())
