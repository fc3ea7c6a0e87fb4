"""Values as text by verbs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ostinato.gotemplate.errors import LimitError
from ostinato.gotemplate.fmt.flags import Flags
from ostinato.gotemplate.fmt.floats import shortest
from ostinato.gotemplate.limits import MAX_PARTS, MAX_TEXT, joined
from ostinato.gotemplate.strings import encode, quote
from ostinato.gotemplate.values import NO_VALUE, Object, Uint8, Uint64, Value, go_type, sorted_keys

_MAX_WIDTH = 1_000_000
_SHORT = 256
_USUAL = re.compile("%([sdvq])")
_SIMPLE = re.compile(r"%([#0+\- ]*)([a-z])")


def text(value: Value) -> str:
    """The value as `{{ . }}` prints it."""
    if type(value) is str:
        return value
    if value is None or value is NO_VALUE:
        return "<no value>"
    return _default(value)


def _default(value: Value) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is int:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return shortest(value)
    printer = _Printer()
    printer.argument(value, "v")
    return printer.result()


def sprint(*values: Value) -> str:
    """`print`: a space between two values of which neither is a string."""
    parts: list[str] = []
    previous_is_string = True
    for value in values:
        is_string = isinstance(value, str)
        if not is_string and not previous_is_string:
            parts.append(" ")
        parts.append("<nil>" if value is None else _default(value))
        previous_is_string = is_string
    return joined(parts)


def sprintln(*values: Value) -> str:
    """`println`: a space between all values, and a newline."""
    parts = [("<nil>" if value is None else _default(value)) + " " for value in values]
    return joined(parts)[:-1] + "\n"


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
    printer = _Printer()
    _Format(printer, pattern, values).run()
    return printer.result()


@lru_cache(1024)
def _plan(pattern: str) -> tuple[list[str], list[str]]:
    """The texts between the verbs, and the verbs, of a pattern that has only %s, %d, %v and %q."""
    parts = _USUAL.split(pattern)
    if any("%" in literal for literal in parts[::2]):
        return [], []
    return parts[::2], parts[1::2]


class _Printer:
    """Appends values to a text."""

    def __init__(self) -> None:
        self.flags = Flags()
        self._parts: list[str] = []
        self.write = self._parts.append
        self._size = self._checked = 0

    def result(self) -> str:
        return joined(self._parts)

    def check(self) -> None:
        """Stop before much more is printed than a text may have."""
        self._size += sum(map(len, self._parts[self._checked :]))
        self._checked = len(self._parts)
        if self._size > MAX_TEXT:
            raise LimitError(f"printed text has more than {MAX_TEXT} characters")

    def argument(self, value: Value, verb: str) -> None:
        """A value that is not inside another."""
        if value is None or value is NO_VALUE:
            if verb in "Tv":
                self.write(self.flags.padded("<nil>"))
            else:
                self._bad_verb(value, verb)
        elif verb == "T":
            self.write(self.flags.string(go_type(value)))
        elif verb == "p":
            self._pointer(value)
        else:
            self._value(value, verb, 0)

    def _value(self, value: Value, verb: str, depth: int) -> None:
        if len(self._parts) > MAX_PARTS:
            raise LimitError(f"printed value has more than {MAX_PARTS} parts")
        flags = self.flags
        if verb == "w" and not isinstance(value, bytes):
            self._bad_verb(value, verb)
        elif isinstance(value, str):
            self._string(value, verb)
        elif isinstance(value, bool):
            if verb in "tv":
                self.write(flags.padded("true" if value else "false"))
            else:
                self._bad_verb(value, verb)
        elif isinstance(value, int):
            self._integer(value, verb)
        elif isinstance(value, float):
            self._floating(value, verb)
        elif isinstance(value, dict):
            self._map(value, verb, depth)
        elif isinstance(value, list):
            self._sequence(value, verb, depth, go_type(value))
        elif isinstance(value, bytes):
            self._bytes(value, verb, depth)
        elif value is None or value is NO_VALUE:
            self.write("interface {}(nil)" if flags.sharp_v else "<nil>")
        else:
            self._object(value, verb, depth)

    def _string(self, value: str, verb: str) -> None:
        flags = self.flags
        if verb == "s" or (verb == "v" and not flags.sharp_v):
            self.write(flags.string(value))
        elif verb in "qv":
            self.write(flags.quoted(value))
        elif verb in "xX":
            self.write(flags.hexadecimal(encode(value), verb))
        else:
            self._bad_verb(value, verb)

    def _integer(self, value: int, verb: str) -> None:
        flags = self.flags
        number = int(value)
        if verb == "v" and flags.sharp_v and isinstance(value, Uint8 | Uint64):
            self._unsigned(number)
        elif verb in "vd":
            self.write(flags.integer(number, "d"))
        elif verb in "boOxX":
            self.write(flags.integer(number, verb))
        elif verb == "c":
            self.write(flags.character(number))
        elif verb == "q":
            self.write(flags.quoted_character(number))
        elif verb == "U":
            self.write(flags.unicode(number))
        else:
            self._bad_verb(value, verb)

    def _unsigned(self, number: int) -> None:
        sharp = self.flags.sharp
        self.flags.sharp = True
        self.write(self.flags.integer(number, "x"))
        self.flags.sharp = sharp

    def _floating(self, value: float, verb: str) -> None:
        if verb == "v":
            self.write(self.flags.floating(value, "g", -1))
        elif verb in "bgGxX":
            self.write(self.flags.floating(value, verb, -1))
        elif verb in "feEF":
            self.write(self.flags.floating(value, verb.replace("F", "f"), 6))
        else:
            self._bad_verb(value, verb)

    def _map(self, value: dict[Value, Value], verb: str, depth: int) -> None:
        sharp = self.flags.sharp_v
        self.write(f"{go_type(value)}{{" if sharp else "map[")
        for number, key in enumerate(sorted_keys(value)):
            if number:
                self.write(", " if sharp else " ")
            self._value(key, verb, depth + 1)
            self.write(":")
            self._value(value[key], verb, depth + 1)
        self.write("}" if sharp else "]")

    def _sequence(self, value: Iterable[Value], verb: str, depth: int, name: str) -> None:
        sharp = self.flags.sharp_v
        self.write(f"{name}{{" if sharp else "[")
        for number, item in enumerate(value):
            if number:
                self.write(", " if sharp else " ")
            self._value(item, verb, depth + 1)
        self.write("}" if sharp else "]")

    def _bytes(self, value: bytes, verb: str, depth: int) -> None:
        flags = self.flags
        if verb in "sq":
            self._string(value.decode("utf-8", "surrogateescape"), verb)
        elif verb in "xX":
            self.write(flags.hexadecimal(value, verb))
        elif verb in "vd" and flags.unset():
            self.write(f"[{' '.join(map(str, value))}]")
        else:
            self._sequence(map(Uint8, value), verb, depth, "[]byte" if depth == 0 else "[]uint8")

    def _object(self, value: Value, verb: str, depth: int) -> None:
        name = go_type(value)  # refuses what is not a value
        if not isinstance(value, Object):
            self._bad_verb(value, verb)
            return
        shown = value.text()
        if shown is not None and verb in "vsxXq" and not self.flags.sharp_v:
            self._string(shown, verb)
            return
        sharp, named = self.flags.sharp_v, self.flags.sharp_v or self.flags.plus_v
        pointer = name.startswith("*")
        self.write(("&" if pointer and depth == 0 else "") + (name.lstrip("*") if sharp else "") + "{")
        for number, (field, item) in enumerate(value.fields.items()):
            if number:
                self.write(", " if sharp else " ")
            if named:
                self.write(f"{field}:")
            self._value(item, verb, depth + 1)
        self.write("}")

    def _pointer(self, value: Value) -> None:
        if isinstance(value, dict | list | bytes):  # an address tells nothing
            self.write(self.flags.padded("0xc000000000"))
        else:
            self._bad_verb(value, "p")

    def _bad_verb(self, value: Value, verb: str) -> None:
        if value is None or value is NO_VALUE:
            self.write(f"%!{verb}(<nil>)")
            return
        self.write(f"%!{verb}({go_type(value)}=")
        if isinstance(value, str | bool | int | float | dict | list | bytes | Object):
            self._value(value, "v", 0)
        else:
            self.write("0x0")
        self.write(")")


class _Format:
    """A format of `printf` and where it is read."""

    def __init__(self, printer: _Printer, pattern: str, values: Sequence[Value]) -> None:
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
