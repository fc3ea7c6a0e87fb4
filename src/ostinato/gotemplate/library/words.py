"""Words of texts: cases, abbreviations, wrapped lines."""

from __future__ import annotations

from typing import Final

from ostinato.gotemplate.library.registry import Registry
from ostinato.gotemplate.library.strings import cut, size
from ostinato.gotemplate.library.text import is_punctuation, is_space, per_character
from ostinato.gotemplate.limits import check_text
from ostinato.gotemplate.strings import decode, encode

WORDS: Final = Registry()
_register = WORDS

_NUMBER, _UPPER, _ALPHABET, _CONNECTOR, _PUNCTUATION, _OTHER, _NONE = range(7)


@_register("abbrev", "int, string")
def abbrev(width: int, text: str) -> str:
    return text if width < 4 else _abbreviated(text, 0, width)


@_register("abbrevboth", "int, int, string")
def abbrevboth(left: int, right: int, text: str) -> str:
    return text if right < 4 or (left > 0 and right < 7) else _abbreviated(text, left, right)


def _abbreviated(text: str, offset: int, width: int) -> str:
    length, kept = size(text), width - 3
    if length <= width:
        return text
    offset = min(offset, length, length - kept)
    if offset <= 4:
        return cut(text, 0, kept) + "..."
    if width < 7:
        return ""
    if offset + kept < length:
        return "..." + _abbreviated(cut(text, offset, length), 0, kept)
    return "..." + cut(text, length - kept, length)


@_register("initials", "string")
def initials(text: str) -> str:
    made: list[str] = []
    gap = True
    for byte in encode(text):  # sprig takes each byte for a character
        c = chr(byte)
        if is_space(c):
            gap = True
        elif gap:
            made.append(c)
            gap = False
    return "".join(made)


@_register("nospace", "string")
def nospace(text: str) -> str:
    data = encode(text)
    kept = [chr(byte) for byte in data if not is_space(chr(byte))]  # as above
    return text if len(kept) == len(data) else "".join(kept)


@_register("swapcase", "string")
def swapcase(text: str) -> str:
    made: list[str] = []
    gap = True
    for c in text:
        if c.isupper() or c.istitle():
            made.append(per_character(str.lower, c))
            gap = False
        elif c.islower():
            made.append(per_character(str.title if gap else str.upper, c))
            gap = False
        else:
            made.append(c)
            gap = is_space(c)
    return "".join(made)


@_register("wrap", "int, string")
def wrap(width: int, text: str) -> str:
    return _wrapped(text, width, "\n", long_words=False)


@_register("wrapWith", "int, string, string")
def wrap_with(width: int, separator: str, text: str) -> str:
    return _wrapped(text, width, separator or "\n", long_words=True)


def _wrapped(text: str, width: int, separator: str, *, long_words: bool) -> str:
    data, mark = encode(text), encode(separator)
    width = max(width, 1)
    check_text(len(data) + len(data) // width * len(mark))
    made: list[bytes] = []
    at = 0
    while len(data) - at > width:
        if data[at : at + 1] == b" ":
            at += 1
            continue
        space = data.rfind(b" ", at, at + width + 1)
        if space < 0:
            if long_words:
                made += [data[at : at + width], mark]
                at += width
                continue
            space = data.find(b" ", at + width)
            if space < 0:
                break
        made += [data[at:space], mark]
        at = space + 1
    return decode(b"".join([*made, data[at:]]))


@_register("camelcase", "string")
def camelcase(text: str) -> str:
    leading = 0
    while leading < len(text) and _connects(text[leading]):
        leading += 1
    if leading == len(text):
        return text + text[-1:]  # a quirk of the original
    made = [text[:leading]]
    current = per_character(str.upper, text[leading])
    first_upper = text[leading].isupper()
    for c in text[leading + 1 :]:
        before, current = current, c
        if _connects(before):
            if _connects(c):
                made.append(before)
                continue
            first_upper = c.isupper()
            current = per_character(str.upper, c)
            continue
        if first_upper:
            if c.isupper():
                current = per_character(str.lower, c)
            else:
                first_upper = False
        made.append(before)
    return "".join([*made, current])


@_register("snakecase", "string")
def snakecase(text: str) -> str:
    return _connected(text, "_")


@_register("kebabcase", "string")
def kebabcase(text: str) -> str:
    return _connected(text, "-")


def _connects(c: str) -> bool:
    return c in "-_" or is_space(c)


def _is_alphabetic(c: str) -> bool:
    """Letters of alphabets; Chinese characters are not."""
    return c.isalpha() and not (
        "\u3400" <= c <= "\u4d85" or "\u4e00" <= c <= "\u9fcc" or "\U00020000" <= c <= "\U0002b81d"
    )


def _kind(c: str) -> int:
    if _connects(c):
        return _CONNECTOR
    if is_punctuation(c):
        return _PUNCTUATION
    if c.isupper():
        return _UPPER
    if _is_alphabetic(c):
        return _ALPHABET
    return _NUMBER if c.isnumeric() else _OTHER


def _next_word(text: str, at: int) -> tuple[int, int]:
    """Return the kind of the word at a position, and its end."""
    if at >= len(text):
        return _NONE, at
    kind = _kind(text[at])
    end = at + 1
    if kind == _UPPER:
        if end < len(text) and text[end].isupper():
            while end < len(text) and text[end].isupper():
                end += 1
            if end < len(text) and _is_alphabetic(text[end]):
                end -= 1  # the last capital begins the next word: HTTPServer
            return kind, end
        kind_of_rest = _ALPHABET
    else:
        kind_of_rest = kind
    while end < len(text) and _kind(text[end]) == kind_of_rest:
        end += 1
    return kind, end


def _connected(text: str, connector: str) -> str:
    """Join the words of a text in lower case. A number belongs to the word before it, unless letters follow it."""
    made: list[str] = []

    def put(kind: int, start: int, end: int) -> None:
        for c in text[start:end]:
            if kind in (_UPPER, _CONNECTOR):
                made.append(connector if _connects(c) else per_character(str.lower, c) if c.isupper() else c)
            else:
                made.append(c)

    at = 0
    kind, end = _next_word(text, 0)
    while end < len(text):
        if kind != _CONNECTOR:
            put(kind, at, end)
        before, before_at, before_end = kind, at, end
        at = end
        kind, end = _next_word(text, at)
        joined = False
        if before == _CONNECTOR:
            put(before, before_at, before_end)
            continue
        if before == _PUNCTUATION:
            continue
        if before != _NUMBER:
            if kind != _NUMBER:
                if kind not in (_CONNECTOR, _PUNCTUATION):
                    made.append(connector)
                continue
            if end == len(text):
                continue
            number_at, number_end = at, end
            at = end
            kind, end = _next_word(text, at)
            if kind != _ALPHABET:
                put(_NUMBER, number_at, number_end)
                if kind not in (_CONNECTOR, _PUNCTUATION):
                    made.append(connector)
                continue
            made.append(connector)
            put(_NUMBER, number_at, number_end)
            joined = True
        if before == _NUMBER or joined:
            while kind in (_ALPHABET, _NUMBER):
                put(kind, at, end)
                at = end
                kind, end = _next_word(text, at)
            if kind not in (_NONE, _PUNCTUATION, _CONNECTOR):
                made.append(connector)
    put(kind, at, end)
    return "".join(made)
