"""Parser: source text to a syntax tree, with macros expanded.

Parsing stops at the first syntax error; `syntax_errors` then reports all of them.
"""

from __future__ import annotations

from typing import Final

from ostinato.cel.identifiers import RESERVED
from ostinato.cel.issues import Issues
from ostinato.cel.parse.lexer import END, Token, tokens
from ostinato.cel.parse.literals import LiteralError, number, text_of
from ostinato.cel.parse.macros import MacroError, expand
from ostinato.cel.tree import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from ostinato.cel.types import BOOL, BYTES, DOUBLE, ERROR, INT, NULL, STRING, UINT

LONGEST: Final = 100_000  # characters of an expression
DEEPEST: Final = 250  # nested expressions

_STARTS: Final = (
    "[", "{", "(", ".", "-", "!", "true", "false", "null",
    "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER",
)  # fmt: skip
# Precedence of binary operators; "in" is a function of another name.
_BINARY: Final = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 1),
    **dict.fromkeys(("+", "-"), 2),
    **dict.fromkeys(("*", "/", "%"), 3),
}


class _StopError(Exception):
    """Parsing cannot continue."""


class _SyntaxError(_StopError):
    """The next token is unexpected."""


def parse(text: str) -> tuple[Node, Issues]:
    """Return the tree of an expression, and its errors; with errors the tree is meaningless."""
    issues = Issues(text)
    nothing = Literal(0, None, ERROR)
    if len(text) > LONGEST:
        issues.add(0, f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}")
        return nothing, issues
    parser = _Parser(text, issues)
    try:
        node = parser.whole()
    except _SyntaxError:
        parser.report_syntax_errors()
        node = nothing
    except _StopError:
        node = nothing
    except RecursionError:
        issues.add(0, f"expression recursion limit exceeded: {DEEPEST}")
        node = nothing
    return node, issues


class _Parser:
    def __init__(self, text: str, issues: Issues) -> None:
        self._issues = issues
        self._text = text
        self._tokens = tokens(text, issues)
        self._next = 0
        self._depth = 0

    def report_syntax_errors(self) -> None:
        from ostinato.cel.parse.syntax_errors import report_syntax_errors  # noqa: PLC0415 - seldom needed

        def report(word: Token, message: str) -> None:
            self._issues.add(word.at if self._text else -1, message)

        report_syntax_errors(self._text, self._tokens, report, DEEPEST)
        if not self._issues:
            self._issues.add(0, f"expression recursion limit exceeded: {DEEPEST}")

    # Tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _ahead(self, count: int = 1) -> Token:
        return self._tokens[min(self._next + count, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._token
        if token.kind != END:
            self._next += 1
        return token

    def _is(self, kind: str) -> bool:
        return self._token.kind == kind

    def _passed(self, kind: str) -> bool:
        if not self._is(kind):
            return False
        self._take()
        return True

    def _expect(self, kind: str) -> Token:
        """Consume the next token, which must be of this kind."""
        if not self._is(kind):
            raise _SyntaxError
        return self._take()

    def _expect_start(self, *also: str) -> None:
        """Check that the next token can start an expression."""
        if self._token.kind not in _STARTS and self._token.kind not in also:
            raise _SyntaxError

    # Expressions

    def whole(self) -> Node:
        node = self._expression()
        self._expect(END)
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            self._issues.add(0, f"expression recursion limit exceeded: {DEEPEST}")
            raise _StopError
        node = self._chain("||")
        if self._is("?"):
            operator = self._take()
            yes = self._chain("||")
            self._expect(":")
            node = Call(operator.at, "_?_:_", [node, yes, self._expression()])
        self._depth -= 1
        return node

    def _chain(self, operator: str) -> Node:
        """Build a balanced tree of terms with && or ||."""
        terms, places = [self._term(operator)], []
        while self._is(operator):
            places.append(self._take().at)
            terms.append(self._term(operator))
        return _balanced(f"_{operator}_", terms, places)

    def _term(self, operator: str) -> Node:
        return self._chain("&&") if operator == "||" else self._operators(self._unary(), 1)

    def _operators(self, node: Node, strength: int) -> Node:
        length = 0
        while (found := _BINARY.get(self._token.kind, 0)) >= strength:
            operator = self._take()
            right = self._unary()
            while _BINARY.get(self._token.kind, 0) > found:
                right = self._operators(right, found + 1)
            name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            node = Call(operator.at, name, [node, right])
            length += 1
            if length > DEEPEST:
                self._issues.add(0, f"expression recursion limit exceeded: {DEEPEST}")
                raise _StopError
        return node

    def _unary(self) -> Node:
        self._expect_start()
        if self._is("-") and self._ahead().kind in ("NUM_INT", "NUM_FLOAT"):
            return self._member(self._number(self._take()))
        for operator in ("!", "-"):
            if self._is(operator):
                first, count = self._token.at, 0
                while self._passed(operator):
                    count += 1
                self._expect_start()
                negative = self._is("-") and self._ahead().kind in ("NUM_INT", "NUM_FLOAT")
                node = self._member(self._number(self._take()) if negative else self._primary())
                return Call(first, f"{operator}_", [node]) if count % 2 else node
        return self._member(self._primary())

    def _member(self, node: Node) -> Node:
        length = 0
        while True:
            length += 1
            if length > DEEPEST:
                self._issues.add(0, f"expression recursion limit exceeded: {DEEPEST}")
                raise _StopError
            if self._is("."):
                node = self._selection(node)
            elif self._is("["):
                bracket = self._take()
                self._expect_start("?")
                optional = self._passed("?")
                index = self._expression()
                self._expect("]")
                node = Call(bracket.at, "_[?_]" if optional else "_[_]", [node, index])
            else:
                return node

    def _selection(self, node: Node) -> Node:
        dot = self._take()
        optional = self._passed("?")
        if self._is("ESC_IDENTIFIER"):
            self._issues.add(self._token.at, "unsupported syntax: '`'")
        elif not self._is("IDENTIFIER"):
            raise _SyntaxError
        name = self._take()
        if optional:
            return Call(dot.at, "_?._", [node, Literal(name.at, name.text, STRING)])
        if not self._is("("):
            return Select(dot.at, node, name.text)
        bracket = self._take()
        return self._called(bracket.at, name.text, self._arguments(), node)

    def _arguments(self) -> list[Node]:
        self._expect_start(")")
        arguments: list[Node] = []
        if not self._is(")"):
            arguments.append(self._expression())
            while self._passed(","):
                arguments.append(self._expression())
        self._expect(")")
        return arguments

    def _called(self, at: int, name: str, arguments: list[Node], target: Node | None = None) -> Node:
        try:
            expanded = expand(at, name, target, arguments)
        except MacroError as error:
            self._issues.add(error.at, str(error))
            return Literal(at, None, ERROR)
        return expanded if expanded is not None else Call(at, name, arguments, target)

    def _primary(self) -> Node:
        token = self._token
        match token.kind:
            case "(":
                self._take()
                node = self._expression()
                self._expect(")")
                return node
            case "[":
                return self._list()
            case "{":
                self._take()
                return MapNode(token.at, self._entries(names=False))
            case "." | "IDENTIFIER":
                return self._name()
            case _:
                return self._constant()

    def _constant(self) -> Node:
        token = self._take()
        match token.kind:
            case "true" | "false":
                return Literal(token.at, token.kind == "true", BOOL)
            case "null":
                return Literal(token.at, None, NULL)
            case "STRING" | "BYTES":
                try:
                    value = text_of(token.text)
                except LiteralError as error:
                    self._issues.add(token.at, str(error))
                    value = ""
                return Literal(token.at, value, STRING if token.kind == "STRING" else BYTES)
            case _:
                self._next -= 1
                return self._number(None)

    def _number(self, minus: Token | None) -> Node:
        token = self._take()
        at = minus.at if minus is not None else token.at
        kind = {"NUM_INT": INT, "NUM_UINT": UINT, "NUM_FLOAT": DOUBLE}.get(token.kind)
        if kind is None:
            raise _SyntaxError
        try:
            return Literal(at, number(token.text, kind, negative=minus is not None), kind)
        except LiteralError as error:
            self._issues.add(at, str(error))
            return Literal(at, 0, kind)

    def _name(self) -> Node:
        start = self._token.at
        leading = "." if self._passed(".") else ""
        if not self._is("IDENTIFIER"):
            raise _SyntaxError
        name = self._token
        names = self._message_names()
        if names:
            brace = self._take()
            return StructNode(brace.at, leading + ".".join(names), self._entries(names=True))
        self._take()
        if name.text in RESERVED:
            self._issues.add(start, f"reserved identifier: {name.text}")
        if self._is("("):
            bracket = self._take()
            return self._called(bracket.at, leading + name.text, self._arguments())
        return Ident(name.at, leading + name.text)

    def _message_names(self) -> list[str]:
        """Consume the qualified name before the brace of a message; nothing if there is no message."""
        count, names = 0, []
        while self._ahead(count).kind == "IDENTIFIER":
            names.append(self._ahead(count).text)
            if self._ahead(count + 1).kind == "{":
                self._next += count + 1
                return names
            if self._ahead(count + 1).kind != ".":
                break
            count += 2
        return []

    def _list(self) -> Node:
        bracket = self._take()
        items: list[Node] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._is(",") and not items:
                self._take()
                break
            self._expect_start("?", *(() if items else ("]", ",")))
            if self._passed("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._passed(","):
                break
        self._expect("]")
        return ListNode(bracket.at, items, frozenset(optional))

    def _entries(self, *, names: bool) -> list[Entry]:
        entries: list[Entry] = []
        while not self._is("}"):
            if self._is(",") and not entries:
                self._take()
                break
            optional, key = self._key(names=names, first=not entries)
            colon = self._expect(":")
            entries.append(Entry(colon.at, key, self._expression(), optional))
            if not self._passed(","):
                break
        self._expect("}")
        return entries

    def _key(self, *, names: bool, first: bool) -> tuple[bool, Node | str]:
        if not names:
            self._expect_start("?", *(("}", ",") if first else ()))
            optional = self._passed("?")
            return optional, self._expression()
        if self._token.kind not in ("?", "IDENTIFIER", "ESC_IDENTIFIER"):
            raise _SyntaxError
        optional = self._passed("?")
        token = self._take()
        if token.kind == "ESC_IDENTIFIER":
            self._issues.add(token.at, "unsupported syntax: '`'")
        return optional, token.text


def _balanced(function: str, terms: list[Node], places: list[int]) -> Node:
    if len(terms) == 1:
        return terms[0]
    middle = len(places) // 2
    left = _balanced(function, terms[: middle + 1], places[:middle])
    right = _balanced(function, terms[middle + 1 :], places[middle + 1 :])
    return Call(places[middle], function, [left, right])
