"""The parser: text to syntax trees."""

from __future__ import annotations

from collections.abc import Container

from ostinato.gotemplate.errors import ParseError
from ostinato.gotemplate.lex import Token, tokens
from ostinato.gotemplate.numbers import character, is_imaginary, number
from ostinato.gotemplate.strings import quote, unquote
from ostinato.gotemplate.tree import (
    ActionNode,
    BoolNode,
    BranchNode,
    BreakNode,
    ChainNode,
    CommandNode,
    ContinueNode,
    DotNode,
    ElseNode,
    EndNode,
    FieldNode,
    IdentifierNode,
    ListNode,
    NilNode,
    Node,
    NumberNode,
    PipeNode,
    StringNode,
    TemplateNode,
    TextNode,
    Tree,
    VariableNode,
    is_empty,
)

MAX_DEPTH = 100  # of parentheses and blocks inside each other

_OPERANDS = frozenset(
    ["bool", "character", "complex", "dot", "field", "word", "number", "nil", "raw", "string", "variable", "open"]
)


def parse(name: str, text: str, functions: Container[str]) -> dict[str, Tree]:
    """The template of the text, under its name, and those that it defines."""
    found = tokens(text, loop_keywords="break" not in functions)
    trees: dict[str, Tree] = {}
    _Parser(Tree(name, name, text), found, 0, functions, trees, 0).parse()
    return trees


class _Parser:
    """Parses one tree. Positions and lines in errors are those of Go's parser, which reads up to three tokens ahead."""

    def __init__(
        self,
        tree: Tree,
        found: list[Token],
        start: int,
        functions: Container[str],
        trees: dict[str, Tree],
        depth: int,
    ) -> None:
        self._tree = tree
        self._tokens = found
        self._next = start  # index of the next token
        self._furthest = start  # index of the last token that was looked at
        self._functions = functions
        self._trees = trees
        self._variables = ["$"]
        self._range_depth = 0
        self._depth = depth
        self._action_start: Token | None = None  # of the action that is being read

    # tokens

    def _token(self) -> Token:
        at = self._next
        if at > self._furthest:  # noqa: PLR1730 - a call would take as long as all the rest
            self._furthest = at
        self._next = at + 1
        return self._tokens[at]

    def _peek(self) -> Token:
        at = self._next
        if at > self._furthest:  # noqa: PLR1730
            self._furthest = at
        return self._tokens[at]

    def _token_after_space(self) -> Token:
        at = self._next
        token = self._tokens[at]
        if token[0] == "space":
            at += 1
            token = self._tokens[at]
        if at > self._furthest:  # noqa: PLR1730
            self._furthest = at
        self._next = at + 1
        return token

    def _peek_after_space(self) -> Token:
        at = self._next
        token = self._tokens[at]
        if token[0] == "space":
            at += 1
            token = self._tokens[at]
            self._next = at
        if at > self._furthest:  # noqa: PLR1730
            self._furthest = at
        return token

    def _line(self, token: Token) -> int:
        return self._tree.text.count("\n", 0, token.position) + 1

    def _error(self, message: str) -> ParseError:
        line = self._line(self._tokens[self._furthest])
        return ParseError(f"template: {self._tree.file}:{line}: {message}")

    def _unexpected(self, token: Token, context: str) -> ParseError:
        if token.kind != "error":
            return self._error(f"unexpected {token} in {context}")
        extra = ""
        line = self._line(self._action_start) if self._action_start is not None else 0
        if line and line != self._line(token):
            extra = f" in action started at {self._tree.file}:{line}"
            if token.text.endswith(" action"):
                extra = extra.removeprefix(" in action")
        return self._error(f"{token}{extra}")

    def _expect(self, kind: str, context: str) -> Token:
        token = self._token_after_space()
        if token.kind != kind:
            raise self._unexpected(token, context)
        return token

    def _unquoted(self, token: Token) -> str:
        try:
            return unquote(token.text)
        except ValueError as error:
            raise self._error(str(error)) from None

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error("max expression depth exceeded")

    # templates

    def parse(self) -> None:
        root = self._tree.root = ListNode(self._peek().position, self._tree)
        while (token := self._peek()).kind != "eof":
            if token.kind == "left":
                start = self._next
                self._next += 1
                if self._token_after_space().kind == "define":
                    self._definition()
                    continue
                self._next = start
            node = self._text_or_action()
            if isinstance(node, EndNode | ElseNode):
                raise self._error(f"unexpected {node}")
            root.nodes.append(node)
        self._add()

    def _add(self) -> None:
        known = self._trees.get(self._tree.name)
        if known is None or is_empty(known.root):
            self._trees[self._tree.name] = self._tree
        elif not is_empty(self._tree.root):
            raise self._error(f"template: multiple definition of template {quote(self._tree.name)}")

    def _inner(self, name: str) -> _Parser:
        tree = Tree(name, self._tree.file, self._tree.text)
        inner = _Parser(tree, self._tokens, self._next, self._functions, self._trees, self._depth)
        inner._deeper()
        return inner

    def _definition(self) -> None:
        context = "define clause"
        inner = self._inner("definition")
        token = inner._token_after_space()
        if token.kind not in ("string", "raw"):
            raise inner._unexpected(token, context)
        inner._tree.name = inner._unquoted(token)
        inner._expect("right", context)
        inner._tree.root, end = inner._list()
        if not isinstance(end, EndNode):
            raise inner._error(f"unexpected {end} in {context}")
        inner._add()
        self._next = inner._next

    def _block(self) -> Node:
        context = "block clause"
        token = self._token_after_space()
        name = self._template_name(token, context)
        pipe = self._pipeline(context, "right")
        inner = self._inner(name)
        inner._tree.root, end = inner._list()
        if not isinstance(end, EndNode):
            raise self._error(f"unexpected {end} in {context}")
        inner._add()
        self._next = inner._next
        return TemplateNode(token.position, self._tree, name, pipe)

    def _template(self) -> Node:
        context = "template clause"
        token = self._token_after_space()
        name = self._template_name(token, context)
        pipe = None
        if self._token_after_space().kind != "right":
            self._next -= 1
            pipe = self._pipeline(context, "right")
        return TemplateNode(token.position, self._tree, name, pipe)

    def _template_name(self, token: Token, context: str) -> str:
        if token.kind not in ("string", "raw"):
            raise self._unexpected(token, context)
        return self._unquoted(token)

    # texts and actions

    def _list(self) -> tuple[ListNode, Node]:
        items = ListNode(self._peek_after_space().position, self._tree)
        while self._peek_after_space().kind != "eof":
            node = self._text_or_action()
            if isinstance(node, EndNode | ElseNode):
                return items, node
            items.nodes.append(node)
        raise self._error("unexpected EOF")

    def _text_or_action(self) -> Node:
        token = self._token_after_space()
        if token.kind == "text":
            return TextNode(token.position, self._tree, token.text)
        if token.kind != "left":
            raise self._unexpected(token, "input")
        self._action_start = token
        node = self._action()
        self._action_start = None
        return node

    def _action(self) -> Node:
        token = self._token_after_space()
        match token.kind:
            case "if" | "range" | "with":
                return self._branch(token.kind)
            case "end":
                return EndNode(self._expect("right", "end").position, self._tree)
            case "else":
                return self._else()
            case "template":
                return self._template()
            case "block":
                return self._block()
            case "break" | "continue":
                return self._loop_control(token)
        self._next -= 1
        return ActionNode(token.position, self._tree, self._pipeline("command", "right"))

    def _loop_control(self, token: Token) -> Node:
        context = f"{{{{{token.kind}}}}}"
        after = self._token_after_space()
        if after.kind != "right":
            raise self._unexpected(after, context)
        if not self._range_depth:
            raise self._error(f"{context} outside {{{{range}}}}")
        node = BreakNode if token.kind == "break" else ContinueNode
        return node(token.position, self._tree)

    def _else(self) -> Node:
        token = self._peek_after_space()
        if token.kind not in ("if", "with"):
            token = self._expect("right", "else")
        return ElseNode(token.position, self._tree)

    def _branch(self, keyword: str) -> Node:
        self._deeper()
        visible = len(self._variables)
        pipe = self._pipeline(keyword, "right")
        self._range_depth += keyword == "range"
        body, end = self._list()
        self._range_depth -= keyword == "range"
        otherwise: ListNode | None = None
        if isinstance(end, ElseNode):
            if keyword in ("if", "with") and self._peek().kind == keyword:
                self._next += 1
                self._depth -= 1
                otherwise = ListNode(end.position, self._tree, [self._branch(keyword)])
                self._depth += 1
            else:
                otherwise, end = self._list()
                if not isinstance(end, EndNode):
                    raise self._error(f"expected end; found {end}")
        del self._variables[visible:]
        self._depth -= 1
        return BranchNode(pipe.position, self._tree, keyword, pipe, body, otherwise)

    # pipelines

    def _pipeline(self, context: str, end: str) -> PipeNode:
        pipe = PipeNode(self._peek_after_space().position, self._tree)
        while (token := self._peek_after_space()).kind == "variable" and self._declaration(token, pipe, context):
            pass
        while (token := self._token_after_space()).kind != end:
            if token.kind not in _OPERANDS:
                raise self._unexpected(token, context)
            self._next -= 1
            pipe.commands.append(self._command())
        if not pipe.commands:
            raise self._error(f"missing value for {context}")
        for stage, command in enumerate(pipe.commands[1:], 2):
            if isinstance(command.arguments[0], BoolNode | DotNode | NilNode | NumberNode | StringNode):
                raise self._error(f"non executable command in pipeline stage {stage}")
        return pipe

    def _declaration(self, token: Token, pipe: PipeNode, context: str) -> bool:
        """Read `$x :=`, `$x =` or `$x,`; whether another variable may follow."""
        start = self._next
        self._next += 1
        after = self._peek_after_space()
        comma = after.kind == "char" and after.text == ","
        if not comma and after.kind not in ("assign", "declare"):
            self._next = start
            return False
        self._next += 1
        pipe.declared.append(VariableNode(token.position, self._tree, [token.text]))
        self._variables.append(token.text)
        if not comma:
            pipe.assigns = after.kind == "assign"
            return False
        if context == "range" and len(pipe.declared) < 2:
            if self._peek_after_space().kind in ("variable", "right", "shut"):
                return True
            raise self._error("range can only initialize variables")
        raise self._error(f"too many declarations in {context}")

    def _command(self) -> CommandNode:
        command = CommandNode(self._peek_after_space().position, self._tree)
        arguments = command.arguments
        while True:
            operand = self._operand()
            if operand is not None:
                arguments.append(operand)
            token = self._token()
            kind = token[0]
            if kind == "space":
                continue
            if kind in ("right", "shut"):
                self._next -= 1
            elif kind != "pipe":
                raise self._unexpected(token, "operand")
            break
        if not arguments:
            raise self._error("empty command")
        return command

    def _operand(self) -> Node | None:
        node = self._term()
        if node is None or (token := self._peek()).kind != "field":
            return node
        names = []
        while self._peek().kind == "field":
            names.append(self._token().text[1:])
        if isinstance(node, FieldNode):
            return FieldNode(token.position, self._tree, node.names + names)
        if isinstance(node, VariableNode):
            return VariableNode(token.position, self._tree, node.names + names)
        if isinstance(node, BoolNode | StringNode | NumberNode | NilNode | DotNode):
            raise self._error(f"unexpected . after term {quote(str(node))}")
        return ChainNode(token.position, self._tree, node, names)

    def _term(self) -> Node | None:
        token = self._token_after_space()
        kind, position, text = token
        if kind == "field":
            return FieldNode(position, self._tree, [text[1:]])
        if kind == "word":
            if text not in self._functions:
                raise self._error(f"function {quote(text)} not defined")
            return IdentifierNode(position, self._tree, text)
        if kind in ("string", "raw"):
            return StringNode(position, self._tree, text, self._unquoted(token))
        if kind == "variable":
            if text not in self._variables:
                raise self._error(f"undefined variable {quote(text)}")
            return VariableNode(position, self._tree, [text])
        if kind == "dot":
            return DotNode(position, self._tree)
        if kind == "open":
            self._deeper()
            pipe = self._pipeline("parenthesized pipeline", "shut")
            self._depth -= 1
            return pipe
        if kind in ("number", "character"):
            return self._number(token)
        if kind == "bool":
            return BoolNode(position, self._tree, text == "true")
        if kind == "nil":
            return NilNode(position, self._tree)
        if kind == "complex":
            raise self._error(f"complex numbers are not supported: {quote(text)}")
        self._next -= 1
        return None

    def _number(self, token: Token) -> Node:
        try:
            if token.kind == "character":
                code = character(token.text)
                return NumberNode(token.position, self._tree, token.text, code, code, float(code))
            if is_imaginary(token.text):
                raise ValueError(f"complex numbers are not supported: {quote(token.text)}")
            return NumberNode(token.position, self._tree, token.text, *number(token.text))
        except ValueError as error:
            raise self._error(str(error)) from None
