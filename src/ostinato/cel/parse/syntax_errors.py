"""Syntax errors of an invalid expression, all of them, with the messages of kube-apiserver's parser.

That parser goes on after an error: it passes over a token too many, makes up one that is missing, or skips to where it
can go on, and tells what it finds next. What it tells depends on where it stands in the grammar, so this follows it
step by step. Only texts that are no expressions come here.
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

Tell = Callable[[Word, str], None]
Steps = Generator["Steps", None, None]  # a part that is under way; it gives what comes next within it


class _WrongError(Exception):
    """What stands next cannot be read; a rule ends with it."""

    def __init__(self, word: Word, message: str) -> None:
        super().__init__(message)
        self.word = word


class _EnoughError(Exception):
    """There were too many errors to go on."""


def tell_syntax_errors(text: str, words: list[Word], tell: Tell, deepest: int) -> None:
    """Tell each error, with the word that it is told of; expressions are read as deep as is said."""
    walk = _Walk(text, words, tell, deepest)
    steps: list[Steps] = [walk.rule(RULES["start"], None)]  # not nested: texts may be
    wrong: _WrongError | None = None
    while steps:
        try:
            step = next(steps[-1]) if wrong is None else steps[-1].throw(wrong)
        except StopIteration:
            steps.pop()
            wrong = None
        except _WrongError as error:
            steps.pop()
            wrong = error
        except _EnoughError:
            return
        else:
            wrong = None
            steps.append(step)


class _Walk:
    def __init__(self, text: str, words: list[Word], tell: Tell, deepest: int) -> None:
        self._text = text
        self._words = words
        self._tell = tell
        self._next = 0
        self._state = RULES["start"].start
        self._calls: list[State] = []  # where the rules that are under way were called
        self._strength = 0
        self._recovering = False  # nothing is told until something fits again
        self._stuck: tuple[int, set[State]] = (-1, set())  # where rules ended with an error last
        self._recoveries = 0
        self._deeper = deepest  # expressions that may still be within the one that is read

    def rule(self, rule: Rule, called: State | None, strength: int = 0) -> Steps:
        outer = self._strength
        self._strength = strength
        if rule is RULES["expr"]:
            self._deeper -= 1
            if self._deeper < 0:
                raise _EnoughError
        if called is not None:
            self._calls.append(called)
        self._state, first = rule.start, self._word()
        try:
            yield self._walk(rule.part)
        except _WrongError as error:
            self._report(error.word, str(error))
            if rule is RULES["name"]:
                self._tell(first, "unsupported ident kind")
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
        while turns or self._goes_on(part):
            turns = 0
            yield self._walk(part.way)
            self._state = part.back
            self._sync()

    def _goes_on(self, part: Loop) -> bool:
        if part.choose:
            return bool(getattr(self, f"_{part.choose}")())
        return self._ahead() in following(part.first)[0]

    # Words

    def _word(self, count: int = 0) -> Word:
        return self._words[min(self._next + count, len(self._words) - 1)]

    def _ahead(self, count: int = 0) -> str:
        return self._word(count).kind

    def _take(self) -> None:
        if self._ahead() != END:
            self._next += 1

    def _fits(self) -> None:
        self._recovering = False
        self._stuck = (-1, set())

    def _match(self, kinds: Tokens) -> None:
        if self._ahead() in kinds:
            self._fits()
            self._take()
            return
        self._count()
        if self._passed_over():
            self._take()
        elif self._ahead() in self._expected(self._state.edges[0][1]):
            self._report(self._word(), f"missing {_named(self._wanted())} at {_quoted(self._word())}")
        else:
            raise self._mismatch()

    # Errors

    def _report(self, word: Word, message: str) -> None:
        if not self._recovering:
            self._recovering = True
            self._tell(word, f"Syntax error: {message}")

    def _count(self) -> None:
        if self._recoveries == _MOST_RECOVERIES:
            self._tell(self._word(), f"Syntax error: error recovery attempt limit exceeded: {_MOST_RECOVERIES}")
            raise _EnoughError
        self._recoveries += 1

    def _sync(self) -> None:
        """Before alternatives and turns of loops: what comes next should be one of them."""
        tokens, ends = following(self._state)
        if self._recovering or ends or self._ahead() in tokens or not self._state.kind:
            return
        if self._state.kind == "back":
            self._unwanted()
            self._skip(self._wanted() | self._following_calls())
        elif not self._passed_over():
            raise self._mismatch()

    def _passed_over(self) -> bool:
        """Pass over a word if the one after it is wanted."""
        if self._ahead(1) not in self._wanted():
            return False
        self._unwanted()
        self._take()
        self._fits()
        return True

    def _unwanted(self) -> None:
        self._report(self._word(), f"extraneous input {_quoted(self._word())} expecting {_named(self._wanted())}")

    def _mismatch(self) -> _WrongError:
        return _WrongError(self._word(), f"mismatched input {_quoted(self._word())} expecting {_named(self._wanted())}")

    def _no_way(self, count: int = 0) -> _WrongError:
        """No alternative goes with the words up to one."""
        words = [self._word(i) for i in range(count + 1)]
        last, shown = words[-1], words[0].text
        for before, word in pairwise(words):
            shown += spaces(self._text, before.at + len(before.text), word.at)
            shown += "" if word.kind == END else word.text
        message = f"no viable alternative at input '{shown.translate(_SPACES)}'"
        return _WrongError(last, _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", message))

    def _recover(self) -> None:
        """A rule ends with an error: skip to what may follow it, or a rule around it."""
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
        """What may come next, in the rules that are under way."""
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

    def _relation_goes_on(self) -> bool:
        return self._strength <= 1 and self._ahead() in _RELATIONS

    def _calc_goes_on(self) -> bool:
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
            raise self._no_way(1)
        if self._ahead() in following(RULES["member"].start)[0]:
            return 0
        raise self._no_way()

    def _minus_goes_on(self) -> bool:
        starts = following(RULES["member"].start)[0]
        if self._ahead() == "-":
            if self._ahead(1) in starts:
                return True
            raise self._no_way(1)
        if self._ahead() in starts:
            return False
        raise self._no_way()

    def _member_goes_on(self) -> bool:
        return self._ahead() in (".", "[")

    def _access(self) -> int:
        if self._ahead() == "[":
            return 2
        if self._ahead() != ".":
            raise self._no_way()
        if self._ahead(1) == "IDENTIFIER":
            return 1 if self._ahead(2) == "(" else 0
        if self._ahead(1) in ("?", "ESC_IDENTIFIER"):
            return 0
        raise self._no_way(1)

    def _kind_of_primary(self) -> int:
        kind = self._ahead()
        if kind in ("(", "[", "{"):
            return {"(": 2, "[": 3, "{": 4}[kind]
        if kind == "-" or kind in CONSTANTS:
            return 6
        at = 1 if kind == "." else 0
        if self._ahead(at) != "IDENTIFIER":
            raise self._no_way(at)
        if self._ahead(at + 1) == "(":
            return 1
        while self._ahead(at + 1) == "." and self._ahead(at + 2) == "IDENTIFIER":
            at += 2
        return 5 if self._ahead(at + 1) == "{" else 0

    def _kind_of_literal(self) -> int:
        negative = self._ahead() == "-"
        kind = self._ahead(1 if negative else 0)
        if kind not in (_NUMBERS if negative else CONSTANTS):
            raise self._no_way(1 if negative else 0)
        return CONSTANTS.index(kind)

    def _kind_of_name(self) -> int:
        if self._ahead() not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise self._no_way()
        return 0 if self._ahead() == "IDENTIFIER" else 1

    def _items_go_on(self) -> bool:
        return self._ahead() == "," and self._ahead(1) in following(RULES["item"].start)[0]

    def _fields_go_on(self) -> bool:
        return self._ahead() == "," and self._ahead(1) in following(RULES["field"].start)[0]


_FACTORS: Final = frozenset({"*", "/", "%"})
_TERMS: Final = _FACTORS | {"+", "-"}


def _quoted(word: Word) -> str:
    return f"'{word.text.translate(_SPACES)}'"


def _named(kinds: Tokens) -> str:
    names = [kind if kind in _CLASSES else f"'{kind}'" for kind in sorted(kinds, key=lambda kind: _ORDER[kind])]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"
