"""Syntax errors of an invalid expression, all of them, with the messages of kube-apiserver's parser.

That parser (ANTLR) recovers from errors: it skips an extraneous token, inserts a missing one, or skips to a token where
it can continue. The errors depend on its state, so this module simulates it step by step. Used only for invalid
expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from itertools import pairwise
from typing import Final

from ostinato.cel.parse.grammar import (
    CONSTANTS,
    RULES,
    Call,
    Choice,
    Loop,
    Maybe,
    Part,
    Rule,
    Sequence,
    State,
    Token,
    Tokens,
    following,
)
from ostinato.cel.parse.lexer import END, spaces
from ostinato.cel.parse.lexer import Token as Word

_MOST_RECOVERIES: Final = 30
_ORDER: Final = {
    kind: place
    for place, kind in enumerate(
        (END, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?",
         ":", "+", "*", "/", "%", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES",
         "IDENTIFIER", "ESC_IDENTIFIER")
    )
}  # fmt: skip
_CLASSES: Final = frozenset(
    {"NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER", END}
)
_NUMBERS: Final = ("NUM_INT", "NUM_FLOAT")
_RELATIONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
_RESERVED: Final = re.compile(r"no viable alternative at input '.(true|false|null)'", re.DOTALL)
_SPACES: Final = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})

Report = Callable[[Word, str], None]
Steps = Generator["Steps", None, None]  # the parse of a part; yields the parse of nested parts


class _MismatchError(Exception):
    """The next token is unexpected; ends a rule."""

    def __init__(self, word: Word, message: str) -> None:
        super().__init__(message)
        self.word = word


class _ErrorLimitError(Exception):
    """Too many errors to continue."""


def report_syntax_errors(text: str, words: list[Word], report: Report, deepest: int) -> None:
    """Report each error with its token. `deepest` is the maximum nesting of expressions."""
    walk = _Walk(text, words, report, deepest)
    steps: list[Steps] = [walk.rule(RULES["start"], None)]  # an explicit stack, as input can be nested deeply
    wrong: _MismatchError | None = None
    while steps:
        try:
            step = next(steps[-1]) if wrong is None else steps[-1].throw(wrong)
        except StopIteration:
            steps.pop()
            wrong = None
        except _MismatchError as error:
            steps.pop()
            wrong = error
        except _ErrorLimitError:
            return
        else:
            wrong = None
            steps.append(step)


class _Walk:
    def __init__(self, text: str, words: list[Word], report: Report, deepest: int) -> None:
        self._text = text
        self._words = words
        self._report_to = report
        self._next = 0
        self._state = RULES["start"].start
        self._calls: list[State] = []  # the states in which the active rules were called
        self._strength = 0
        self._recovering = False  # no errors are reported until a token matches
        self._stuck: tuple[int, set[State]] = (-1, set())  # position and states of the last errors
        self._recoveries = 0
        self._deeper = deepest  # remaining nesting of expressions

    def rule(self, rule: Rule, called: State | None, strength: int = 0) -> Steps:
        outer = self._strength
        self._strength = strength
        if rule is RULES["expr"]:
            self._deeper -= 1
            if self._deeper < 0:
                raise _ErrorLimitError
        if called is not None:
            self._calls.append(called)
        self._state, first = rule.start, self._word()
        try:
            yield self._walk(rule.part)
        except _MismatchError as error:
            self._report(error.word, str(error))
            if rule is RULES["name"]:
                self._report_to(first, "unsupported ident kind")
            self._recover()
        if called is not None:
            self._calls.pop()
            self._state = called
        self._strength = outer
        if rule is RULES["expr"]:
            self._deeper += 1

    def _walk(self, part: Part) -> Steps:
        match part:
            case Sequence():
                for one in part.parts:
                    yield self._walk(one)
            case Token():
                self._state = part.state
                self._match(part.kinds)
            case Call():
                self._state = part.state
                yield self.rule(part.rule, part.state, part.strength)
            case Choice():
                self._state = part.state
                self._sync()
                yield self._walk(part.ways[getattr(self, f"_{part.choose}")()])
            case Maybe():
                self._state = part.state
                self._sync()
                if self._ahead() in following(part.first)[0]:
                    yield self._walk(part.way)
            case Loop():
                yield self._loop(part)

    def _loop(self, part: Loop) -> Steps:
        self._state = part.state
        self._sync()
        turns = part.least
        while turns or self._continues(part):
            turns = 0
            yield self._walk(part.way)
            self._state = part.back
            self._sync()

    def _continues(self, part: Loop) -> bool:
        if part.choose:
            return bool(getattr(self, f"_{part.choose}")())
        return self._ahead() in following(part.first)[0]

    # Tokens

    def _word(self, count: int = 0) -> Word:
        return self._words[min(self._next + count, len(self._words) - 1)]

    def _ahead(self, count: int = 0) -> str:
        return self._word(count).kind

    def _take(self) -> None:
        if self._ahead() != END:
            self._next += 1

    def _token_matched(self) -> None:
        self._recovering = False
        self._stuck = (-1, set())

    def _match(self, kinds: Tokens) -> None:
        if self._ahead() in kinds:
            self._token_matched()
            self._take()
            return
        self._count()
        if self._skip_extra_token():
            self._take()
        elif self._ahead() in self._expected(self._state.edges[0][1]):
            self._report(self._word(), f"missing {_named(self._wanted())} at {_quoted(self._word())}")
        else:
            raise self._mismatch()

    # Errors

    def _report(self, word: Word, message: str) -> None:
        if not self._recovering:
            self._recovering = True
            self._report_to(word, f"Syntax error: {message}")

    def _count(self) -> None:
        if self._recoveries == _MOST_RECOVERIES:
            self._report_to(self._word(), f"Syntax error: error recovery attempt limit exceeded: {_MOST_RECOVERIES}")
            raise _ErrorLimitError
        self._recoveries += 1

    def _sync(self) -> None:
        """Before alternatives and iterations: check that the next token is expected."""
        tokens, ends = following(self._state)
        if self._recovering or ends or self._ahead() in tokens or not self._state.kind:
            return
        if self._state.kind == "back":
            self._unwanted()
            self._skip(self._wanted() | self._following_calls())
        elif not self._skip_extra_token():
            raise self._mismatch()

    def _skip_extra_token(self) -> bool:
        """Skip a token if the one after it is expected."""
        if self._ahead(1) not in self._wanted():
            return False
        self._unwanted()
        self._take()
        self._token_matched()
        return True

    def _unwanted(self) -> None:
        self._report(self._word(), f"extraneous input {_quoted(self._word())} expecting {_named(self._wanted())}")

    def _mismatch(self) -> _MismatchError:
        return _MismatchError(
            self._word(), f"mismatched input {_quoted(self._word())} expecting {_named(self._wanted())}"
        )

    def _no_viable_alternative(self, count: int = 0) -> _MismatchError:
        """Return the error that no alternative matches the tokens so far."""
        words = [self._word(i) for i in range(count + 1)]
        last, shown = words[-1], words[0].text
        for before, word in pairwise(words):
            shown += spaces(self._text, before.at + len(before.text), word.at)
            shown += "" if word.kind == END else word.text
        message = f"no viable alternative at input '{shown.translate(_SPACES)}'"
        return _MismatchError(last, _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", message))

    def _recover(self) -> None:
        """After an error in a rule, skip to a token that can follow it or an outer rule."""
        self._count()
        if self._stuck[0] == self._next and self._state in self._stuck[1]:
            self._take()
        states = self._stuck[1] | {self._state} if self._stuck[0] >= 0 else {self._state}
        self._stuck = (self._next, states)
        self._skip(self._following_calls())

    def _skip(self, to: Tokens) -> None:
        while self._ahead() != END and self._ahead() not in to:
            self._take()

    def _wanted(self) -> Tokens:
        return self._expected(self._state)

    def _expected(self, state: State) -> Tokens:
        """Return the tokens that can follow, in the active rules."""
        found, ends = following(state)
        for call in reversed(self._calls):
            if not ends:
                break
            more, ends = following(call.edges[0][1])
            found |= more
        return found | {END} if ends else found

    def _following_calls(self) -> Tokens:
        return frozenset().union(*(following(call.edges[0][1])[0] for call in self._calls))

    # Decisions

    def _relation_continues(self) -> bool:
        return self._strength <= 1 and self._ahead() in _RELATIONS

    def _calc_continues(self) -> bool:
        return self._ahead() in _FACTORS if self._strength == 2 else self._strength < 2 and self._ahead() in _TERMS

    def _operator(self) -> int:
        return 0 if self._ahead() in _FACTORS else 1

    def _sign(self) -> int:
        if self._ahead() == "!":
            return 1
        if self._ahead() == "-":
            if self._ahead(1) in _NUMBERS:
                return 0
            if self._ahead(1) in following(RULES["member"].start)[0]:
                return 2
            raise self._no_viable_alternative(1)
        if self._ahead() in following(RULES["member"].start)[0]:
            return 0
        raise self._no_viable_alternative()

    def _minus_continues(self) -> bool:
        starts = following(RULES["member"].start)[0]
        if self._ahead() == "-":
            if self._ahead(1) in starts:
                return True
            raise self._no_viable_alternative(1)
        if self._ahead() in starts:
            return False
        raise self._no_viable_alternative()

    def _member_continues(self) -> bool:
        return self._ahead() in (".", "[")

    def _access(self) -> int:
        if self._ahead() == "[":
            return 2
        if self._ahead() != ".":
            raise self._no_viable_alternative()
        if self._ahead(1) == "IDENTIFIER":
            return 1 if self._ahead(2) == "(" else 0
        if self._ahead(1) in ("?", "ESC_IDENTIFIER"):
            return 0
        raise self._no_viable_alternative(1)

    def _kind_of_primary(self) -> int:
        kind = self._ahead()
        if kind in ("(", "[", "{"):
            return {"(": 2, "[": 3, "{": 4}[kind]
        if kind == "-" or kind in CONSTANTS:
            return 6
        at = 1 if kind == "." else 0
        if self._ahead(at) != "IDENTIFIER":
            raise self._no_viable_alternative(at)
        if self._ahead(at + 1) == "(":
            return 1
        while self._ahead(at + 1) == "." and self._ahead(at + 2) == "IDENTIFIER":
            at += 2
        return 5 if self._ahead(at + 1) == "{" else 0

    def _kind_of_literal(self) -> int:
        negative = self._ahead() == "-"
        kind = self._ahead(1 if negative else 0)
        if kind not in (_NUMBERS if negative else CONSTANTS):
            raise self._no_viable_alternative(1 if negative else 0)
        return CONSTANTS.index(kind)

    def _kind_of_name(self) -> int:
        if self._ahead() not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise self._no_viable_alternative()
        return 0 if self._ahead() == "IDENTIFIER" else 1

    def _items_continue(self) -> bool:
        return self._ahead() == "," and self._ahead(1) in following(RULES["item"].start)[0]

    def _fields_continue(self) -> bool:
        return self._ahead() == "," and self._ahead(1) in following(RULES["field"].start)[0]


_FACTORS: Final = frozenset({"*", "/", "%"})
_TERMS: Final = _FACTORS | {"+", "-"}


def _quoted(word: Word) -> str:
    return f"'{word.text.translate(_SPACES)}'"


def _named(kinds: Tokens) -> str:
    names = [kind if kind in _CLASSES else f"'{kind}'" for kind in sorted(kinds, key=lambda kind: _ORDER[kind])]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"
