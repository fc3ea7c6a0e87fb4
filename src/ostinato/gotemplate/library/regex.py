"""Regular expressions in Go's syntax, by RE2: linear time, whatever the pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.library.kinds import NilStrings
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.limits import check_text
from ostinato.gotemplate.strings import decode, encode, quote
from ostinato.gotemplate.values import Strings

REGEX: Final = Registry()
_register = REGEX

_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
_REFERENCE: Final = re.compile(rb"\$(?:\$|(?P<name>\w+)|\{(?P<braced>\w+)\})", re.ASCII)


def _compiled(pattern: str, *, must: bool) -> Any:
    try:
        from ostinato.api.text import patterns  # noqa: PLC0415 - google-re2 is optional
    except ImportError:
        raise TemplateError("regular expressions need google-re2: pip install 'ostinato[charts]'") from None
    problem = patterns.pattern_problem(pattern)
    if not problem:
        return patterns.pattern(pattern)
    if must:
        raise PanicError(problem)
    shown = f"`{pattern}`" if pattern.isprintable() and "`" not in pattern else quote(pattern)
    raise PanicError(f"regexp: Compile({shown}): {problem}")


def _matches(compiled: Any, data: bytes, most: int = -1) -> Iterator[Any]:
    """Iterate over matches as Go: an empty match directly after another match is none."""
    at, ended = 0, -1
    while most and at <= len(data):
        found = compiled.search(data, at)
        if found is None:
            return
        start, end = found.span()
        if end > start or start != ended:
            yield found
            most -= 1
        ended = end
        at = end if end > start else end + _width(data, end)


def _width(data: bytes, at: int) -> int:
    """Return the number of bytes of the character at a position."""
    width = 1
    while at + width < len(data) and data[at + width] & 0xC0 == 0x80 and width < 4:
        width += 1
    return width


def _find_all(pattern: str, text: str, most: int, *, must: bool) -> Strings:
    compiled = _compiled(pattern, must=must)
    found = [decode(each.group()) for each in _matches(compiled, encode(text), most)]
    return Strings(found) if found else NilStrings()


def _replaced(compiled: Any, text: str, by: bytes, *, expand: bool) -> str:
    data = encode(text)
    made: list[bytes] = []
    at = size = 0
    for found in _matches(compiled, data):
        put = _expanded(found, by) if expand else by
        size += found.start() - at + len(put)
        check_text(size)
        made += [data[at : found.start()], put]
        at = found.end()
    return decode(b"".join([*made, data[at:]]))


def _expanded(found: Any, template: bytes) -> bytes:
    groups = found.groups()

    def value(reference: re.Match[bytes]) -> bytes:
        name = reference["name"] or reference["braced"]
        if name is None:
            return b"$"
        if name.isdigit():
            number = int(name)
            return (found.group(number) or b"") if number <= len(groups) else b""
        named = found.re.groupindex
        number = named.get(name, named.get(name.decode()))
        return (found.group(number) or b"") if number is not None else b""

    return _REFERENCE.sub(value, template)


def _split(pattern: str, text: str, most: int, *, must: bool) -> Strings:
    compiled = _compiled(pattern, must=must)
    if most == 0:
        return NilStrings()
    if pattern and not text:
        return Strings([""])
    data = encode(text)
    made: list[bytes] = []
    at = end = 0
    for found in _matches(compiled, data):
        if most > 0 and len(made) == most - 1:
            break
        end = found.start()
        if found.end() != 0:
            made.append(data[at:end])
        at = found.end()
    if end != len(data):
        made.append(data[at:])
    return Strings([decode(each) for each in made])


@_register("regexMatch", "string, string")
def regex_match(pattern: str, text: str) -> bool:
    try:
        return must_regex_match(pattern, text)
    except PanicError:
        return False


@_register("mustRegexMatch", "string, string")
def must_regex_match(pattern: str, text: str) -> bool:
    return _compiled(pattern, must=True).search(encode(text)) is not None


@_register("regexFindAll", "string, string, int")
def regex_find_all(pattern: str, text: str, most: int) -> Strings:
    return _find_all(pattern, text, most, must=False)


@_register("mustRegexFindAll", "string, string, int")
def must_regex_find_all(pattern: str, text: str, most: int) -> Strings:
    return _find_all(pattern, text, most, must=True)


@_register("regexFind", "string, string")
def regex_find(pattern: str, text: str) -> str:
    return (_find_all(pattern, text, 1, must=False) or [""])[0]


@_register("mustRegexFind", "string, string")
def must_regex_find(pattern: str, text: str) -> str:
    return (_find_all(pattern, text, 1, must=True) or [""])[0]


@_register("regexReplaceAll", "string, string, string")
def regex_replace_all(pattern: str, text: str, by: str) -> str:
    return _replaced(_compiled(pattern, must=False), text, encode(by), expand=True)


@_register("mustRegexReplaceAll", "string, string, string")
def must_regex_replace_all(pattern: str, text: str, by: str) -> str:
    return _replaced(_compiled(pattern, must=True), text, encode(by), expand=True)


@_register("regexReplaceAllLiteral", "string, string, string")
def regex_replace_all_literal(pattern: str, text: str, by: str) -> str:
    return _replaced(_compiled(pattern, must=False), text, encode(by), expand=False)


@_register("mustRegexReplaceAllLiteral", "string, string, string")
def must_regex_replace_all_literal(pattern: str, text: str, by: str) -> str:
    return _replaced(_compiled(pattern, must=True), text, encode(by), expand=False)


@_register("regexSplit", "string, string, int")
def regex_split(pattern: str, text: str, most: int) -> Strings:
    return _split(pattern, text, most, must=False)


@_register("mustRegexSplit", "string, string, int")
def must_regex_split(pattern: str, text: str, most: int) -> Strings:
    return _split(pattern, text, most, must=True)


@_register("regexQuoteMeta", "string")
def regex_quote_meta(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)
