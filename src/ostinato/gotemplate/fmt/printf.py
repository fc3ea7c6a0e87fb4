"""`printf`: formats and their verbs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ostinato.gotemplate.fmt.flags import Flags
from ostinato.gotemplate.fmt.printer import Printer
from ostinato.gotemplate.limits import joined
from ostinato.gotemplate.strings import quote
from ostinato.gotemplate.values import NO_VALUE, Value, go_type

_MAX_WIDTH = 1_000_000
_SHORT = 256
_USUAL = re.compile("%([sdvq])")
_SIMPLE = re.compile(r"%([#0+\- ]*)([a-z])")


def sprintf(pattern: str, *values: Value) -> str:
    """`printf`."""
    if len(pattern) < _SHORT:
        literals, verbs = _plan(pattern)
        if verbs and len(verbs) == len(values):
            parts = [literals[0]]
            for verb, value, literal in zip(verbs, values, literals[1:], strict=True):
                kind = type(value)
                if kind is str and verb != "d":
                    parts.append(quote(value) if verb == "q" else value)
                elif kind is int and verb in "dv":
                    parts.append(str(value))
                else:
                    break
                parts.append(literal)
            else:
                return joined(parts)
    printer = Printer()
    _Format(printer, pattern, values).run()
    return printer.result()


@lru_cache(1024)
def _plan(pattern: str) -> tuple[list[str], list[str]]:
    """The texts between the verbs, and the verbs, of a pattern that has only %s, %d, %v and %q."""
    parts = _USUAL.split(pattern)
    if any("%" in literal for literal in parts[::2]):
        return [], []
    return parts[::2], parts[1::2]


class _Format:
    """A format of `printf` and where it is read."""

    def __init__(self, printer: Printer, pattern: str, values: Sequence[Value]) -> None:
        self._printer = printer
        self._pattern = pattern
        self._values = values
        self._at = 0  # in the pattern
        self._argument = 0  # the next value
        self._reordered = False
        self._good_index = True

    def run(self) -> None:
        pattern, write = self._pattern, self._printer.write
        while True:
            percent = pattern.find("%", self._at)
            if percent < 0:
                write(pattern[self._at :])
                break
            write(pattern[self._at : percent])
            self._at = percent
            if not self._simple() and not self._verb():
                break
        if not self._reordered and self._argument < len(self._values):
            self._extra()

    def _simple(self) -> bool:
        """Flags and one of the usual verbs."""
        if self._argument >= len(self._values):
            return False
        match = _SIMPLE.match(self._pattern, self._at)
        if match is None:
            return False
        self._at = match.end()
        self._set_flags(match[1])
        self._print(match[2])
        return True

    def _set_flags(self, characters: str) -> Flags:
        flags = self._printer.flags = Flags()
        for character in characters:
            match character:
                case "#":
                    flags.sharp = True
                case "0":
                    flags.zero = True
                case "+":
                    flags.plus = True
                case "-":
                    flags.minus = True
                case " ":
                    flags.space = True
        return flags

    def _print(self, verb: str) -> None:
        flags = self._printer.flags
        if verb in "vw":
            flags.sharp_v, flags.sharp = flags.sharp, False
            flags.plus_v, flags.plus = flags.plus, False
        self._printer.argument(self._values[self._argument], verb)
        self._argument += 1
        self._printer.check()

    def _verb(self) -> bool:
        """Any verb; False at the end of the pattern."""
        pattern, write = self._pattern, self._printer.write
        start = self._at = self._at + 1
        while self._at < len(pattern) and pattern[self._at] in "#0+- ":
            self._at += 1
        flags = self._set_flags(pattern[start : self._at])
        self._good_index = True
        after_index = self._index()
        after_index = self._width(flags, after_index)
        after_index = self._precision(flags, after_index)
        if not after_index:
            self._index()
        if self._at >= len(pattern):
            write("%!(NOVERB)")
            return False
        verb = pattern[self._at]
        self._at += 1
        if verb == "%":
            write("%")
        elif not self._good_index:
            write(f"%!{verb}(BADINDEX)")
        elif self._argument >= len(self._values):
            write(f"%!{verb}(MISSING)")
        else:
            self._print(verb)
        return True

    def _width(self, flags: Flags, after_index: bool) -> bool:
        if self._pattern.startswith("*", self._at):
            self._at += 1
            flags.width = self._number_argument()
            if flags.width is None:
                self._printer.write("%!(BADWIDTH)")
            elif flags.width < 0:
                flags.width = -flags.width
                flags.minus = True
                flags.zero = False
            return False
        flags.width = self._number(len(self._pattern))
        if after_index and flags.width is not None:
            self._good_index = False
        return after_index

    def _precision(self, flags: Flags, after_index: bool) -> bool:
        if not (self._at + 1 < len(self._pattern) and self._pattern[self._at] == "."):
            return after_index
        self._at += 1
        if after_index:
            self._good_index = False
        after_index = self._index()
        if self._pattern.startswith("*", self._at):
            self._at += 1
            flags.precision = self._number_argument()
            if flags.precision is not None and flags.precision < 0:
                flags.precision = None
            if flags.precision is None:
                self._printer.write("%!(BADPREC)")
            return False
        flags.precision = self._number(len(self._pattern)) or 0
        return after_index

    def _number(self, end: int) -> int | None:
        """The number at this place of the pattern, if there is one; one that is too large ends the pattern."""
        if self._at >= end:
            self._at = end
            return None
        value, start = 0, self._at
        while self._at < end and self._pattern[self._at] in "0123456789":
            if value > _MAX_WIDTH:
                self._at = end
                return None
            value = value * 10 + int(self._pattern[self._at])
            self._at += 1
        return value if self._at > start else None

    def _number_argument(self) -> int | None:
        if self._argument >= len(self._values):
            return None
        value = self._values[self._argument]
        self._argument += 1
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_WIDTH:
            return int(value)
        return None

    def _index(self) -> bool:
        """Read `[n]`; whether there is one."""
        if not self._pattern.startswith("[", self._at):
            return False
        self._reordered = True
        start = self._at
        close = self._pattern.find("]", start + 1)
        if close < 0 or len(self._pattern) - start < 3:
            self._at += 1
            self._good_index = False
            return False
        self._at = start + 1
        number = self._number(close)
        valid = number is not None and self._at == close
        self._at = close + 1
        if valid and number is not None and 1 <= number <= len(self._values):
            self._argument = number - 1
            return True
        self._good_index = False
        return valid

    def _extra(self) -> None:
        printer = self._printer
        printer.flags = Flags()
        printer.write("%!(EXTRA ")
        for number, value in enumerate(self._values[self._argument :]):
            if number:
                printer.write(", ")
            if value is None or value is NO_VALUE:
                printer.write("<nil>")
            else:
                printer.write(f"{go_type(value)}=")
                printer.argument(value, "v")
        printer.write(")")
