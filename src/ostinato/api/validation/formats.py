"""Formats of schemas, validated as by Kubernetes.

Unknown formats are ignored, and so is a format that does not belong to the type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from ostinato.api.time import Duration, TimeError
from ostinato.api.validation.addresses import parse_cidr, parse_ip

Check = Callable[[str], bool]


def _matches(pattern: str) -> Check:
    found = re.compile(pattern, re.ASCII).fullmatch  # only for the trusted patterns in this module
    return lambda text: found(text) is not None


_HEX: Final = "[0-9a-fA-F]"
_SHORT_NAME: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_short_name: Final = _matches(_SHORT_NAME)
_is_long_name: Final = _matches(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*")
_is_social_security_number: Final = _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}")


def _is_hostname(text: str) -> bool:
    """Letters, digits, symbols and inner dashes; the last of several parts has at least two letters."""
    if len(text.encode()) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    parts = text.split(".")
    if len(parts) == 1:
        return _is_single_label(text)
    *labels, last = parts
    return (
        2 <= len(last) <= 63 and all(c.isalpha() for c in last) and all(_is_label_of_several(label) for label in labels)
    )


def _is_name_character(character: str) -> bool:
    import unicodedata  # noqa: PLC0415 - only for names beyond ASCII, or beyond letters and digits

    if character.isascii() and character.isalnum():
        return True
    return unicodedata.category(character)[0] in "SL"


def _is_single_label(label: str) -> bool:
    """A single part: at most one dash, not as the first character."""
    if not label or not _is_name_character(label[0]):
        return False
    rest = label[1:].removeprefix("-")
    return len(rest) <= 62 and all(map(_is_name_character, rest))


def _is_label_of_several(label: str) -> bool:
    if not label or not _is_name_character(label[0]) or not _is_name_character(label[-1]) or len(label) > 63:
        return False
    return all(character == "-" or _is_name_character(character) for character in label)


_USER_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~."
)


_COMMENT: Final = re.compile(r"\s+\([^()\\]*\)\s*$")
_GROUP: Final = re.compile(r'[^:;<>@"]*:\s*([^;]*);')


def _is_email(text: str) -> bool:
    """An address, plain or as `Name <address>`, optionally with a comment, or the only one of a group."""
    text = _COMMENT.sub("", text).strip()
    group = _GROUP.fullmatch(text)
    if group is not None:
        text = group[1]
    if text.endswith(">") and "<" in text:
        text = text[text.rindex("<") + 1 : -1]
    user, at, host = text.rpartition("@")
    if not at or not user or not host:
        return False
    if user.startswith('"') and user.endswith('"') and len(user) > 1:
        quoted = user[1:-1].replace("\\\\", "").replace('\\"', "")
        return '"' not in quoted and _is_email_host(host)
    return _is_dotted(user) and _is_email_host(host)


def _is_dotted(text: str) -> bool:
    if text.startswith(".") or text.endswith(".") or ".." in text:
        return False
    return all(character in _USER_CHARACTERS or not character.isascii() for character in text)


def _is_email_host(host: str) -> bool:
    if host.startswith("[") and host.endswith("]"):
        return parse_ip(host[1:-1].removeprefix("IPv6:")) is not None
    return _is_dotted(host)


_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")


def _is_uri(text: str) -> bool:
    """A request URI: an absolute URI, or an absolute path."""
    if not text or any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        return False
    scheme = _SCHEME.match(text)
    if text.startswith(":"):
        return False
    if scheme is None:
        return (text.startswith("/") and not _BAD_ESCAPE.search(text.partition("?")[0])) or text == "*"
    rest = text[scheme.end() :].partition("?")[0]
    if not rest.startswith("/"):
        return True  # opaque: mailto:user
    if not rest.startswith("//"):
        return not _BAD_ESCAPE.search(rest)
    authority, _, path = rest[2:].partition("/")
    return _is_authority(authority) and not _BAD_ESCAPE.search(path)


_IN_USERS: Final = re.compile(r"(?:[A-Za-z0-9._:~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})*")
_IN_HOSTS: Final = re.compile(r"""(?:[A-Za-z0-9._~!$&'()*+,;=<>"-]|[^\x00-\x7f]|%25|%[89a-fA-F][0-9a-fA-F])*""")


def _is_authority(text: str) -> bool:
    user, _, host = text.rpartition("@")
    if not _IN_USERS.fullmatch(user):
        return False
    if host.startswith("["):
        address, end, port = host[1:].partition("]")
        if not end or _BAD_ESCAPE.search(address):
            return False
    else:
        name, colon, port = host.partition(":")
        port = colon + port
        if not _IN_HOSTS.fullmatch(name):
            return False
    return port == "" or (port[0] == ":" and (port[1:] == "" or (port[1:].isascii() and port[1:].isdigit())))


_MAC: Final = re.compile(
    rf"({_HEX}{{2}}([:-]))({_HEX}{{2}}\2){{4}}{_HEX}{{2}}"
    rf"|({_HEX}{{2}}([:-]))({_HEX}{{2}}\5){{6}}{_HEX}{{2}}"
    rf"|({_HEX}{{2}}([:-]))({_HEX}{{2}}\8){{18}}{_HEX}{{2}}"
    rf"|{_HEX}{{12}}|{_HEX}{{16}}|{_HEX}{{40}}"
    rf"|{_HEX}{{4}}(\.{_HEX}{{4}}){{2}}|{_HEX}{{4}}(\.{_HEX}{{4}}){{3}}|{_HEX}{{4}}(\.{_HEX}{{4}}){{9}}"
)


def _is_ipv4(text: str) -> bool:
    """A dotted address; leading zeros are allowed."""
    if "." not in text:
        return False
    if ":" in text:
        return parse_ip(text) is not None
    parts = text.split(".")
    return len(parts) == 4 and all(p.isascii() and p.isdigit() and len(p) <= 64 and int(p) <= 255 for p in parts)


def _is_ipv6(text: str) -> bool:
    return ":" in text and parse_ip(text) is not None


def _is_cidr(text: str) -> bool:
    address, slash, size = text.partition("/")
    if not slash:
        return False
    if _is_ipv4(address) and ":" not in address:
        return size.isascii() and size.isdigit() and len(size) < 5 and int(size) <= 32
    return parse_cidr(text) is not None


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    total = sum((i + 1) * int(digit) for i, digit in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    total = sum((1, 3)[i % 2] * int(digit) for i, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


_CARD: Final = _matches(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
)


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD(digits):
        return False
    total = 0
    for i, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + i % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _is_date(text: str) -> bool:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = (int(part) for part in text.split("-"))
    try:
        date(year or 4, month, day)  # the year 0, which Python does not support, is a leap year
    except ValueError:
        return False
    return True


_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


def _is_date_time(text: str) -> bool:
    day, *times = text.lower().split("t")
    if not times or not _is_date(day):
        return False
    found = _TIME.fullmatch(times[0])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


_UNITS: Final = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
_TERM: Final = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")


def _is_duration(text: str) -> bool:
    """Go's notation; or numbers with names of units, anywhere in the string."""
    try:
        Duration.parse(text)
    except (ValueError, TimeError):
        pass
    else:
        return True
    known = False
    for number, unit in _TERM.findall(text):
        if len(number) > 19 or int(number) >= 1 << 63:
            return False
        unit = unit.lower()  # noqa: PLW2901
        known = known or any(unit in names or unit.startswith(names[-1]) for names in _UNITS)
    return known


def _is_bson_id(text: str) -> bool:
    return re.fullmatch(f"{_HEX}{{24}}", text) is not None


_COLOUR: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"

_TEXTS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _is_bson_id,
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == 11 and _is_social_security_number(text),
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matches(rf"rgb\({_COLOUR},{_COLOUR},{_COLOUR}\)"),
    "byte": _matches(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _is_short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _is_long_name(text),
}


def known_format(raw: Mapping[str, Any], types: tuple[str, ...]) -> str:
    """Return the format of a schema; "" if it is unknown or does not belong to the type."""
    name: str = raw.get("format") or ""
    kind = types[0] if len(types) == 1 else ""
    if kind in ("", "string"):
        return name if name.replace("-", "") in _TEXTS else ""
    if kind == "integer":
        return name if name in ("int32", "int64") else ""
    if kind == "number":
        return name if name in ("float", "double") else ""
    return ""


def text_check(name: str) -> Check | None:
    """Return the validator of a string format; dashes in its name are ignored. None if it is unknown."""
    return _TEXTS.get(name.replace("-", ""))
