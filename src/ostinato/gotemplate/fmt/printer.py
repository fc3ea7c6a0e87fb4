"""Values as text by verbs."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.gotemplate.errors import LimitError
from ostinato.gotemplate.fmt.flags import Flags
from ostinato.gotemplate.fmt.floats import shortest
from ostinato.gotemplate.limits import MAX_PARTS, MAX_TEXT, joined
from ostinato.gotemplate.strings import encode
from ostinato.gotemplate.values import NO_VALUE, Object, Uint8, Uint64, Value, go_type, sorted_keys


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
    printer = Printer()
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


class Printer:
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
