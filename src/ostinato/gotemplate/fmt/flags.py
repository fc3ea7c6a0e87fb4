"""Flags, width and precision of a verb, and the text of basic values under them."""

from __future__ import annotations

from ostinato.gotemplate.fmt.floats import formatted
from ostinato.gotemplate.strings import normalized, printable, quote


class Flags:
    """What stands between `%` and the verb."""

    __slots__ = ("minus", "plus", "plus_v", "precision", "sharp", "sharp_v", "space", "width", "zero")

    def __init__(self) -> None:
        self.minus = self.plus = self.sharp = self.space = self.zero = False
        self.plus_v = self.sharp_v = False  # the flags of %+v and %#v
        self.width: int | None = None
        self.precision: int | None = None

    def unset(self) -> bool:
        """Whether there are none."""
        given = self.minus or self.plus or self.sharp or self.space or self.zero or self.plus_v or self.sharp_v
        return not given and self.width is None and self.precision is None

    def padded(self, text: str, *, zeros: bool = True) -> str:
        if self.width is None or len(text) >= self.width:
            return text
        if self.minus:
            return text + " " * (self.width - len(text))
        return ("0" if zeros and self.zero else " ") * (self.width - len(text)) + text

    def string(self, text: str) -> str:
        return self.padded(text if self.precision is None else normalized(text)[: self.precision])

    def quoted(self, text: str) -> str:
        if self.precision is not None:
            text = normalized(text)[: self.precision]
        if self.sharp and _can_backquote(text):
            return self.padded(f"`{text}`")
        return self.padded(quote(text, ascii_only=self.plus))

    def hexadecimal(self, data: bytes, verb: str) -> str:
        data = data if self.precision is None else data[: self.precision]
        prefix = f"0{verb}" if self.sharp else ""
        if not data:
            return self.padded("")
        digits = data.hex() if verb == "x" else data.hex().upper()
        if self.space:
            text = " ".join(prefix + digits[at : at + 2] for at in range(0, len(digits), 2))
        else:
            text = prefix + digits
        return self.padded(text)

    def integer(self, value: int, verb: str) -> str:
        """The integer by the verb d, b, o, O, x or X."""
        if self.precision == 0 and value == 0:
            return " " * (self.width or 0)
        digits = format(abs(value), {"d": "d", "b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}[verb])
        wanted = self.precision
        if wanted is None and self.zero and not self.minus and self.width is not None:
            wanted = self.width - (value < 0 or self.plus or self.space)
        if wanted is not None:
            digits = digits.rjust(wanted, "0")
        if self.sharp:
            if verb in "xX":
                digits = f"0{verb}{digits}"
            elif verb == "b":
                digits = f"0b{digits}"
            elif verb in "oO" and digits[0] != "0":
                digits = f"0{digits}"
        if verb == "O":
            digits = f"0o{digits}"
        sign = "-" if value < 0 else "+" if self.plus else " " if self.space else ""
        return self.padded(sign + digits, zeros=False)

    def character(self, value: int) -> str:
        return self.padded(rune(value))

    def quoted_character(self, value: int) -> str:
        return self.padded(quote(rune(value), ascii_only=self.plus, mark="'"))

    def unicode(self, value: int) -> str:
        number = value if value >= 0 else value + (1 << 64)
        text = f"U+{number:0{max(self.precision or 0, 4)}X}"
        if self.sharp and number <= 0x10FFFF and printable(chr(number)):
            text += f" '{chr(number)}'"
        return self.padded(text, zeros=False)

    def floating(self, value: float, verb: str, precision: int) -> str:
        """The float by a verb of strconv, with the verb's own precision if the flags have none."""
        if self.precision is not None:
            precision = self.precision
        text = formatted(value, verb, precision)
        sign, text = (text[0], text[1:]) if text[0] in "+-" else ("+", text)
        if self.space and sign == "+" and not self.plus:
            sign = " "
        if text[0] in "IN":
            signed = text[0] == "I" or self.plus or self.space
            return self.padded((sign if signed else "") + text, zeros=False)
        if self.sharp and verb != "b":
            text = _with_point(text, verb, precision)
        if self.plus or sign != "+":
            if self.zero and not self.minus and self.width is not None and self.width > len(text) + 1:
                return sign + "0" * (self.width - len(text) - 1) + text
            return self.padded(sign + text)
        return self.padded(text)


def rune(value: int) -> str:
    """The character of a code point; U+FFFD if there is none."""
    return chr(value) if 0 <= value <= 0x10FFFF and not 0xD800 <= value < 0xE000 else "\ufffd"


def _can_backquote(text: str) -> bool:
    return not any(
        (character < " " and character != "\t") or character in "`\x7f\ufeff" or "\ud800" <= character <= "\udfff"
        for character in text
    )


def _with_point(text: str, verb: str, precision: int) -> str:
    """The number with a decimal point and the zeros that `%#g` keeps."""
    digits = 0
    if verb in "gGx":
        digits = 6 if precision == -1 else precision
    tail = ""
    marks = "pP" if verb in "xX" else "eEpP"
    for at, character in enumerate(text):
        if character in marks:
            text, tail = text[:at], text[at:]
            break
    nonzero = False
    for character in text:
        if character == ".":
            continue
        nonzero = nonzero or character != "0"
        digits -= nonzero
    if "." not in text:
        if text == "0":
            digits -= 1
        text += "."
    return text + "0" * max(digits, 0) + tail
