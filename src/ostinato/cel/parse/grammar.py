"""The grammar of CEL as a state graph: the tokens that can follow at each position.

Used only by `syntax_errors`, to report errors as kube-apiserver's ANTLR parser does. Rules consist of parts; each part
has the states of a parser before it and, in loops, after it.
"""

from __future__ import annotations

from typing import Final

from ostinato.cel.parse.lexer import END

Tokens = frozenset[str]
CONSTANTS: Final = ("NUM_INT", "NUM_UINT", "NUM_FLOAT", "STRING", "BYTES", "true", "false", "null")


class State:
    """A state of the grammar; an edge without a label needs no token."""

    __slots__ = ("edges", "kind", "next")

    def __init__(self, kind: str = "") -> None:
        self.kind = kind  # "start" of alternatives or of a loop; "back": end of an iteration
        self.edges: list[tuple[Tokens | Rule | None, State]] = []
        self.next: tuple[Tokens, bool] | None = None

    def to(self, target: State, label: Tokens | Rule | None = None) -> None:
        self.edges.append((label, target))


class Rule:
    """A named rule with its start and end states."""

    def __init__(self) -> None:
        self.start, self.end = State(), State()
        self.part: Part = Sequence()

    def be(self, *parts: Part) -> None:
        self.part = Sequence(*parts)
        first, last = self.part.states()
        self.start.to(first)
        last.to(self.end)


class Part:
    """A part of a rule. `state` is the state before it."""

    state: State
    last: State

    def states(self) -> tuple[State, State]:
        return self.state, self.last


class Token(Part):
    """One of several tokens."""

    def __init__(self, *kinds: str) -> None:
        self.kinds: Tokens = frozenset(kinds)
        self.state, self.last = State(), State()
        self.state.to(self.last, self.kinds)


class Call(Part):
    """A rule, with the minimum precedence of its operators."""

    def __init__(self, rule: Rule, strength: int = 0) -> None:
        self.rule, self.strength = rule, strength
        self.state, self.last = State(), State()
        self.state.to(self.last, rule)


class Sequence(Part):
    def __init__(self, *parts: Part) -> None:
        self.parts = parts
        self.state = self.last = State()
        for part in parts:
            first, last = part.states()
            self.last.to(first)
            self.last = last


class Choice(Part):
    """Alternatives; a method of the parser, by name, selects one."""

    def __init__(self, choose: str, *ways: Part) -> None:
        self.choose, self.ways = choose, ways
        self.state, self.last = State("start"), State()
        for way in ways:
            first, last = way.states()
            self.state.to(first)
            last.to(self.last)


class Maybe(Part):
    """An optional part, present if its first token is."""

    def __init__(self, way: Part) -> None:
        self.way = way
        self.state, self.last = State("start"), State()
        first, last = way.states()
        self.first = first
        self.state.to(first)
        self.state.to(self.last)
        last.to(self.last)


class Loop(Part):
    """A repeated part; `least` is 0 or 1. A method of the parser, or the first token, decides about another one."""

    def __init__(self, way: Part, choose: str = "", least: int = 0) -> None:
        self.way, self.choose, self.least = way, choose, least
        self.state, self.back, self.last = State("start"), State("back"), State()
        first, last = way.states()
        self.first = first
        self.state.to(first)
        last.to(self.back)
        self.back.to(self.state)
        (self.back if least else self.state).to(self.last)


def following(state: State) -> tuple[Tokens, bool]:
    """Return the tokens that can follow within a rule, and whether the rule can end here."""
    if state.next is None:
        found: set[str] = set()
        ends = _look(state, found, set())
        state.next = frozenset(found), ends
    return state.next


def _look(state: State, found: set[str], seen: set[State]) -> bool:
    if state in seen:
        return False
    seen.add(state)
    ends = not state.edges
    for label, target in state.edges:
        if label is None:
            ends |= _look(target, found, seen)
        elif isinstance(label, Rule):
            inner, passes = following(label.start)
            found |= inner
            ends |= passes and _look(target, found, seen)
        else:
            found |= label
    return ends


def _after(*tokens: Part | str) -> Sequence:
    return Sequence(*(Token(part) if isinstance(part, str) else part for part in tokens))


_NAMES: Final = (
    *("start", "expr", "or", "and", "relation", "calc", "unary", "member", "primary"),
    *("arguments", "items", "fields", "field", "entries", "name", "item", "literal"),
)
RULES: Final = {name: Rule() for name in _NAMES}


def _call(name: str, strength: int = 0) -> Call:
    return Call(RULES[name], strength)


def _list(name: str, choose: str, *turn: str) -> None:
    """Return a rule of items separated by commas."""

    def parts() -> Sequence:
        return _after(*(_call(part) if part in RULES else part for part in turn))

    RULES[name].be(parts(), Loop(_after(",", parts()), choose))


def _dotted() -> Maybe:
    return Maybe(Token("."))


RULES["start"].be(_call("expr"), Token(END))
RULES["expr"].be(_call("or"), Maybe(_after("?", _call("or"), ":", _call("expr"))))
RULES["or"].be(_call("and"), Loop(_after("||", _call("and"))))
RULES["and"].be(_call("relation"), Loop(_after("&&", _call("relation"))))
RULES["relation"].be(
    _call("calc"),
    Loop(_after(Token("==", "!=", "<", "<=", ">", ">=", "in"), _call("relation", 2)), "relation_continues"),
)
RULES["calc"].be(
    _call("unary"),
    Loop(
        Choice(
            "operator",
            _after(Token("*", "/", "%"), _call("calc", 3)),
            _after(Token("+", "-"), _call("calc", 2)),
        ),
        "calc_continues",
    ),
)
RULES["unary"].be(
    Choice(
        "sign",
        _call("member"),
        _after(Loop(Token("!"), least=1), _call("member")),
        _after(Loop(Token("-"), "minus_continues", least=1), _call("member")),
    )
)
RULES["member"].be(
    _call("primary"),
    Loop(
        Choice(
            "access",
            _after(".", Maybe(Token("?")), _call("name")),
            _after(".", "IDENTIFIER", "(", Maybe(_call("arguments")), ")"),
            _after("[", Maybe(Token("?")), _call("expr"), "]"),
        ),
        "member_continues",
    ),
)
RULES["primary"].be(
    Choice(
        "kind_of_primary",
        _after(_dotted(), "IDENTIFIER"),
        _after(_dotted(), "IDENTIFIER", "(", Maybe(_call("arguments")), ")"),
        _after("(", _call("expr"), ")"),
        _after("[", Maybe(_call("items")), Maybe(Token(",")), "]"),
        _after("{", Maybe(_call("entries")), Maybe(Token(",")), "}"),
        _after(
            *(_dotted(), "IDENTIFIER", Loop(_after(".", "IDENTIFIER"))),
            *("{", Maybe(_call("fields")), Maybe(Token(",")), "}"),
        ),
        _call("literal"),
    )
)
RULES["name"].be(Choice("kind_of_name", Token("IDENTIFIER"), Token("ESC_IDENTIFIER")))
RULES["field"].be(Maybe(Token("?")), _call("name"))
RULES["item"].be(Maybe(Token("?")), _call("expr"))
_list("arguments", "", "expr")
_list("items", "items_continue", "item")
_list("fields", "fields_continue", "field", ":", "expr")
_list("entries", "items_continue", "item", ":", "expr")
RULES["literal"].be(
    Choice(
        "kind_of_literal",
        _after(Maybe(Token("-")), "NUM_INT"),
        Token("NUM_UINT"),
        _after(Maybe(Token("-")), "NUM_FLOAT"),
        *(Token(kind) for kind in CONSTANTS[3:]),
    )
)
