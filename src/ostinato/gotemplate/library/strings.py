"""Strings: sprig's functions with Go's semantics. Lengths and positions count bytes, as in Go."""

from __future__ import annotations

from typing import Any, Final

from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.library.kinds import StringMap, elements, is_slice
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.library.text import SPACE, is_space, per_character, strval
from ostinato.gotemplate.limits import check_text
from ostinato.gotemplate.strings import decode, encode
from ostinato.gotemplate.strings import quote as go_quote
from ostinato.gotemplate.values import Strings

STRINGS: Final = Registry()
_register = STRINGS


def cut(text: str, start: int, end: int) -> str:
    """Return the bytes from a position to another."""
    return text[start:end] if text.isascii() else decode(encode(text)[start:end])


def size(text: str) -> int:
    """Return the number of bytes."""
    return len(text) if text.isascii() else len(encode(text))


def strslice(value: Any) -> list[str]:
    """Return the items of a list as texts, without nil; of another value, a list of it."""
    if is_slice(value):
        return [strval(each) for each in elements(value) if each is not None]
    return [] if value is None else [strval(value)]


def padded(spaces: int, text: str) -> str:
    """Put spaces before each line."""
    if spaces < 0:
        raise PanicError("strings: negative Repeat count")
    check_text(len(text) + spaces * (text.count("\n") + 1))
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


def split_all(text: str, separator: str, count: int = -1) -> list[str]:
    """Split as Go's strings.SplitN: into characters by ""; into at most `count` parts unless it is negative."""
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    characters = list(text)
    if 0 < count < len(characters):
        return [*characters[: count - 1], "".join(characters[count - 1 :])]
    return characters


@_register("trim", "string")
def trim(text: str) -> str:
    return text.strip(SPACE)


@_register("upper", "string")
def upper(text: str) -> str:
    return text.upper() if text.isascii() else per_character(str.upper, text)


@_register("lower", "string")
def lower(text: str) -> str:
    return text.lower() if text.isascii() else per_character(str.lower, text)


@_register("title", "string")
def title(text: str) -> str:
    made: list[str] = []
    before = " "
    for c in text:
        made.append(per_character(str.title, c) if _separates(before) else c)
        before = c
    return "".join(made)


def _separates(c: str) -> bool:
    if c.isascii():
        return not (c.isalnum() or c == "_")
    return not (c.isalpha() or c.isdigit()) and is_space(c)


@_register("untitle", "string")
def untitle(text: str) -> str:
    made: list[str] = []
    first = True
    for c in text:
        if is_space(c):
            first = True
        elif first:
            first = False
            made.append(per_character(str.lower, c))
            continue
        made.append(c)
    return "".join(made)


@_register("substr", "int, int, string")
def substr(start: int, end: int, text: str) -> str:
    length = size(text)
    if start < 0:
        _check(0, end, length)
        return cut(text, 0, end)
    if end < 0 or end > length:
        if start > length:
            raise PanicError(f"runtime error: slice bounds out of range [{start}:{length}]")
        return cut(text, start, length)
    _check(start, end, length)
    return cut(text, start, end)


def _check(start: int, end: int, length: int) -> None:
    if end < 0:
        raise PanicError(f"runtime error: slice bounds out of range [:{end}]")
    if end > length:
        raise PanicError(f"runtime error: slice bounds out of range [:{end}] with length {length}")
    if start > end:
        raise PanicError(f"runtime error: slice bounds out of range [{start}:{end}]")


@_register("trunc", "int, string")
def trunc(count: int, text: str) -> str:
    length = size(text)
    if count < 0 < length + count:
        return cut(text, length + count, length)
    if 0 <= count < length:
        return cut(text, 0, count)
    return text


@_register("repeat", "int, string")
def repeat(count: int, text: str) -> str:
    if count < 0:
        raise PanicError("strings: negative Repeat count")
    if count * len(text) > 1 << 28:
        raise PanicError("strings: Repeat output length overflow")
    return text * count


@_register("trimAll trimall", "string, string")
def trim_all(characters: str, text: str) -> str:
    return text.strip(characters) if characters else text


@_register("trimSuffix", "string, string")
def trim_suffix(suffix: str, text: str) -> str:
    return text.removesuffix(suffix)


@_register("trimPrefix", "string, string")
def trim_prefix(prefix: str, text: str) -> str:
    return text.removeprefix(prefix)


@_register("contains", "string, string")
def contains(part: str, text: str) -> bool:
    return part in text


@_register("hasPrefix", "string, string")
def has_prefix(part: str, text: str) -> bool:
    return text.startswith(part)


@_register("hasSuffix", "string, string")
def has_suffix(part: str, text: str) -> bool:
    return text.endswith(part)


@_register("quote", "...interface {}")
def quote(*values: Any) -> str:
    return " ".join(go_quote(strval(each)) for each in values if each is not None)


@_register("squote", "...interface {}")
def squote(*values: Any) -> str:
    return " ".join(f"'{sprint(each)}'" for each in values if each is not None)


@_register("cat", "...interface {}")
def cat(*values: Any) -> str:
    return " ".join(sprint(each) for each in values if each is not None)


@_register("indent", "int, string")
def indent(spaces: int, text: str) -> str:
    return padded(spaces, text)


@_register("nindent", "int, string")
def nindent(spaces: int, text: str) -> str:
    return "\n" + padded(spaces, text)


@_register("replace", "string, string, string")
def replace(old: str, new: str, text: str) -> str:
    check_text(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


@_register("plural", "string, string, int")
def plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


@_register("toString", "interface {}")
def to_string(value: Any) -> str:
    return strval(value)


@_register("toStrings", "interface {}")
def to_strings(value: Any) -> Strings:
    return Strings(strslice(value))


@_register("join", "string, interface {}")
def join(separator: str, value: Any) -> str:
    parts = strslice(value)
    check_text(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


@_register("sortAlpha", "interface {}")
def sort_alpha(value: Any) -> Strings:
    if is_slice(value):
        return Strings(sorted(strslice(value), key=encode))
    return Strings([strval(value)])


@_register("split", "string, string")
def split(separator: str, text: str) -> StringMap:
    return StringMap({f"_{at}": part for at, part in enumerate(split_all(text, separator))})


@_register("splitn", "string, int, string")
def splitn(separator: str, count: int, text: str) -> StringMap:
    return StringMap({f"_{at}": part for at, part in enumerate(split_all(text, separator, count))})


@_register("splitList", "string, string")
def split_list(separator: str, text: str) -> Strings:
    return Strings(split_all(text, separator))
