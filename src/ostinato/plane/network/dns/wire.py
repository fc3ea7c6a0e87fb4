"""DNS messages (RFC 1035, 6891): parse queries and answers, encode responses.

- A name is a tuple of labels, without the root. Names compare in lower case.
- Questions are not compressed; a pointer in one is malformed. Names in answers of upstream servers may be: a pointer
  has to lead backwards, so that reading ends, and a name has at most 255 bytes.
- Whatever is malformed raises `MalformedMessage`, never another error.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

Name = tuple[bytes, ...]

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, OPT, AXFR, ANY = 1, 2, 5, 6, 12, 15, 16, 28, 33, 41, 252, 255
IN: Final = 1  # the class
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NAME_ERROR, NOT_IMPLEMENTED, REFUSED, BAD_VERSION = 0, 1, 2, 3, 4, 5, 16

LARGEST: Final = 0xFFFF  # bytes of a message over TCP
PLAIN_UDP: Final = 512  # bytes of a datagram without EDNS
EDNS_UDP: Final = 1232  # bytes of a datagram with EDNS: not fragmented on any link

_HEADER: Final = struct.Struct(">HHHHHH")
_FIXED: Final = struct.Struct(">HHIH")  # of a record, after its name
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _RECURSE, _CAN_RECURSE = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080
_POINTER: Final = 0xC0
_LONGEST_NAME: Final = 255


class MalformedMessage(ValueError):  # noqa: N818 - what is the case
    """The bytes are not a DNS message."""


class Question(msgspec.Struct, frozen=True):
    """- `name`: in the letters of the client. `key`: in lower case."""

    name: Name
    type: int
    cls: int

    @property
    def key(self) -> Name:
        return lower(self.name)


class Query(msgspec.Struct, frozen=True):
    """A query.

    - `question`: None if there is not exactly one.
    - `limit`: bytes of the largest datagram that the client accepts.
    - `edns`: the EDNS version; None without EDNS.
    """

    id: int
    opcode: int
    recurse: bool
    question: Question | None
    limit: int
    edns: int | None


class Record(msgspec.Struct, frozen=True):
    """A resource record. `data`: its RDATA, with names in it uncompressed."""

    name: Name
    type: int
    ttl: int
    data: bytes


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a query is answered with."""

    code: int = NO_ERROR
    answers: tuple[Record, ...] = ()
    authority: tuple[Record, ...] = ()
    additional: tuple[Record, ...] = ()
    authoritative: bool = False


# Names and data


def name_of(text: str) -> Name:
    """The labels of a domain name. `MalformedMessage` if it is not one."""
    labels = tuple(each.encode("ascii", "replace") for each in text.rstrip(".").split(".")) if text.rstrip(".") else ()
    if any(not 0 < len(each) < 64 for each in labels) or sum(len(each) + 1 for each in labels) >= _LONGEST_NAME:
        raise MalformedMessage(f"{text!r} is not a domain name")
    return labels


def lower(name: Name) -> Name:
    return tuple(each.lower() for each in name)


def encode_name(name: Name) -> bytes:
    return b"".join(bytes((len(each),)) + each for each in name) + b"\0"


def srv_data(weight: int, port: int, target: Name) -> bytes:
    return struct.pack(">HHH", 0, weight, port) + encode_name(target)


def soa_data(server: Name, mailbox: Name, serial: int, minimum: int) -> bytes:
    return encode_name(server) + encode_name(mailbox) + struct.pack(">IIIII", serial, 7200, 1800, 86400, minimum)


# Reading


def parse_query(data: bytes) -> Query:
    """`MalformedMessage` if it cannot be answered: it is not a query, or its header is incomplete."""
    if len(data) < _HEADER.size:
        raise MalformedMessage("shorter than a header")
    number, flags, questions, answers, authorities, additionals = _HEADER.unpack_from(data)
    if flags & _RESPONSE:
        raise MalformedMessage("a response")
    question, edns, limit = None, None, PLAIN_UDP
    if questions == 1:
        try:
            question, at = _question(data, _HEADER.size)
            for _ in range(answers + authorities + additionals):
                _, at = read_name(data, at)
                kind, size, ttl, length = _unpack(_FIXED, data, at)
                at += _FIXED.size + length
                if at > len(data):
                    raise MalformedMessage("a record exceeds the message")
                if kind == OPT:
                    edns, limit = ttl >> 16 & 0xFF, max(size, PLAIN_UDP)
        except MalformedMessage:
            question = None
    return Query(number, flags >> 11 & 0xF, bool(flags & _RECURSE), question, min(limit, EDNS_UDP), edns)


def answers_of(data: bytes, query: bytes) -> tuple[int, list[Record]]:
    """The response code and the answers of an upstream server. `MalformedMessage` if it does not answer the query."""
    if not is_response_to(data, query):
        raise MalformedMessage("not a response to the query")
    _, flags, _, count, _, _ = _HEADER.unpack_from(data)
    _, at = _question(data, _HEADER.size)
    found = []
    for _ in range(count):
        name, at = read_name(data, at)
        kind, cls, ttl, length = _unpack(_FIXED, data, at)
        at += _FIXED.size
        content = data[at : at + length]
        if len(content) != length:
            raise MalformedMessage("a record exceeds the message")
        if kind == CNAME:
            content = encode_name(read_name(data, at)[0])
        at += length
        if cls == IN and kind in (A, AAAA, CNAME, TXT):  # these need no other names to be decoded
            found.append(Record(name, kind, ttl, content))
    return flags & 0xF, found


def is_response_to(data: bytes, query: bytes) -> bool:
    """Whether a message has the id and the question of a query."""
    try:
        asked, _ = _question(query, _HEADER.size)
        if len(data) < _HEADER.size or data[:2] != query[:2] or not data[2] & 0x80:
            return False
        answered, _ = _question(data, _HEADER.size)
    except MalformedMessage:
        return False
    return (answered.key, answered.type, answered.cls) == (asked.key, asked.type, asked.cls)


def is_truncated(data: bytes) -> bool:
    return bool(data[2] & _TRUNCATED >> 8)


def read_name(data: bytes, at: int) -> tuple[Name, int]:
    """A name, and the offset of what follows it."""
    labels: list[bytes] = []
    size, end, start = 0, 0, at
    while True:
        if at >= len(data):
            raise MalformedMessage("a name exceeds the message")
        length = data[at]
        if length & _POINTER == _POINTER:
            if at + 1 >= len(data):
                raise MalformedMessage("a name exceeds the message")
            end = end or at + 2
            target = (length & ~_POINTER) << 8 | data[at + 1]
            if target >= start:
                raise MalformedMessage("a pointer does not lead backwards")
            at = start = target
            continue
        if length & _POINTER:
            raise MalformedMessage("an unknown kind of label")
        at += 1
        if not length:
            return tuple(labels), end or at
        labels.append(data[at : at + length])
        size += length + 1
        at += length
        if size >= _LONGEST_NAME or at > len(data):
            raise MalformedMessage("a name is too long")


def _question(data: bytes, at: int) -> tuple[Question, int]:
    name, end = read_name(data, at)
    if end - at != sum(map(len, name)) + len(name) + 1:
        raise MalformedMessage("a compressed question")
    kind, cls = _unpack(_PAIR, data, end)
    return Question(name, kind, cls), end + _PAIR.size


_PAIR: Final = struct.Struct(">HH")


def _unpack(form: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + form.size > len(data):
        raise MalformedMessage("a record exceeds the message")
    return form.unpack_from(data, at)


# Writing


def encode_query(number: int, question: Question) -> bytes:
    body = encode_name(question.name) + struct.pack(">HH", question.type, question.cls)
    return _HEADER.pack(number, _RECURSE, 1, 0, 0, 0) + body


def with_id(message: bytes, number: int) -> bytes:
    return struct.pack(">H", number) + message[2:]


def encode_reply(query: Query, reply: Reply, limit: int) -> bytes:
    """The response to a query, of at most `limit` bytes.

    Additional records that do not fit are left out; if answers do not fit either, the response is marked as truncated.
    """
    question = query.question
    flags = _RESPONSE | query.opcode << 11 | _CAN_RECURSE | reply.code & 0xF
    flags |= _RECURSE if query.recurse else 0
    flags |= _AUTHORITATIVE if reply.authoritative else 0
    options = b""
    if query.edns is not None:
        options = b"\0" + _FIXED.pack(OPT, EDNS_UDP, reply.code >> 4 << 24, 0)
    writer = _Writer(limit - len(options))
    if question is not None:
        writer.question(question)
    counts = []
    for section in (reply.answers, reply.authority, reply.additional):
        written = writer.records(section)
        if written < len(section) and section is not reply.additional:
            flags |= _TRUNCATED
        counts.append(written)
    header = _HEADER.pack(query.id, flags, question is not None, *counts[:2], counts[2] + bool(options))
    return header + writer.body() + options


class _Writer:
    """Appends records while they fit, with the names before them compressed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = _HEADER.size
        self._full = False  # a record did not fit
        self._offsets: dict[Name, int] = {}  # of names and their suffixes, in lower case

    def body(self) -> bytes:
        return b"".join(self._parts)

    def question(self, question: Question) -> None:
        self._append(self._name(question.name) + _PAIR.pack(question.type, question.cls))

    def records(self, records: tuple[Record, ...]) -> int:
        for count, each in enumerate(records):
            name = b"" if self._full else self._name(each.name)
            self._full = self._full or self._size + len(name) + _FIXED.size + len(each.data) > self._limit
            if self._full:  # the offsets of its name must not be used
                return count
            self._append(name + _FIXED.pack(each.type, IN, each.ttl, len(each.data)) + each.data)
        return len(records)

    def _append(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)

    def _name(self, name: Name) -> bytes:
        key = lower(name)
        parts: list[bytes] = []
        at = self._size
        for index in range(len(name)):
            if (known := self._offsets.get(key[index:])) is not None:
                return b"".join(parts) + struct.pack(">H", _POINTER << 8 | known)
            if at <= 0x3FFF:
                self._offsets[key[index:]] = at
            parts.append(bytes((len(name[index]),)) + name[index])
            at += len(name[index]) + 1
        return b"".join(parts) + b"\0"
