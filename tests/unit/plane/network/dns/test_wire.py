"""DNS messages, beside dnspython's, and hostile ones."""

from __future__ import annotations

from contextlib import suppress

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.plane.network.dns import wire
from ostinato.plane.network.dns.wire import MalformedMessage, Query, Record, Reply, name_of

NAME = "web.default.svc.cluster.local"
HEADER = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"


def query(name: str = NAME, kind: str = "A", **more: object) -> Query:
    return wire.parse_query(dns.message.make_query(name, kind, **more).to_wire())  # type: ignore[arg-type]


def addresses(count: int) -> tuple[Record, ...]:
    return tuple(Record(name_of(NAME), wire.A, 5, bytes((10, 0, each >> 8, each & 255))) for each in range(count))


def test_a_query_has_its_question_in_the_letters_of_the_client() -> None:
    found = query("WEB.default.SVC", "SRV")
    assert found.question is not None
    assert found.question.name == (b"WEB", b"default", b"SVC")
    assert found.question.key == (b"web", b"default", b"svc")
    assert (found.question.type, found.question.cls, found.recurse) == (wire.SRV, wire.IN, True)


@pytest.mark.parametrize(
    ("more", "limit", "edns"),
    [({}, 512, None), ({"use_edns": 0, "payload": 4096}, 1232, 0), ({"use_edns": 0, "payload": 100}, 512, 0)],
)
def test_the_size_of_a_datagram_is_the_clients_within_bounds(
    more: dict[str, int], limit: int, edns: int | None
) -> None:
    found = query(**more)
    assert (found.limit, found.edns) == (limit, edns)


def test_a_reply_is_read_by_another_implementation() -> None:
    target = name_of(f"db-0.{NAME}")
    records = (Record(name_of(NAME.upper()), wire.SRV, 5, wire.srv_data(100, 80, target)),)
    extra = (Record(target, wire.AAAA, 5, bytes(15) + b"\1"), Record(target, wire.A, 5, bytes((10, 0, 0, 1))))
    reply = Reply(answers=records, additional=extra, authoritative=True)
    message = dns.message.from_wire(wire.encode_reply(query(NAME, "SRV", use_edns=0), reply, 512))
    assert message.answer == [dns.rrset.from_text(f"{NAME}.", 5, "IN", "SRV", f"0 100 80 db-0.{NAME}.")]
    assert message.additional == [
        dns.rrset.from_text(f"db-0.{NAME}.", 5, "IN", "AAAA", "::1"),
        dns.rrset.from_text(f"db-0.{NAME}.", 5, "IN", "A", "10.0.0.1"),
    ]
    assert message.flags == dns.flags.QR | dns.flags.AA | dns.flags.RD | dns.flags.RA
    assert message.edns == 0


def test_a_reply_that_does_not_fit_is_truncated_and_still_valid() -> None:
    for count in (28, 29, 30, 31, 100):
        data = wire.encode_reply(query(), Reply(answers=addresses(count)), 512)
        assert len(data) <= 512
        message = dns.message.from_wire(data)
        assert len(message.answer[0]) <= count
        assert bool(message.flags & dns.flags.TC) == (len(message.answer[0]) < count)
    whole = dns.message.from_wire(wire.encode_reply(query(), Reply(answers=addresses(3000)), wire.LARGEST))
    assert len(whole.answer[0]) == 3000


def test_additional_records_that_do_not_fit_are_left_out_without_truncation() -> None:
    extra = tuple(Record(name_of(f"e{each}.{NAME}"), wire.A, 5, bytes(4)) for each in range(100))
    message = dns.message.from_wire(wire.encode_reply(query(), Reply(answers=addresses(2), additional=extra), 512))
    assert not message.flags & dns.flags.TC
    assert 0 < len(message.additional) < 100


@pytest.mark.parametrize(
    "question",
    [
        b"\xc0\x0c\x00\x01\x00\x01",  # a pointer to itself
        b"\x01a\xc0\x0c\x00\x01\x00\x01",
        b"\xc0\x00\x00\x01\x00\x01",  # into the header
        b"\x40a\x00\x00\x01\x00\x01",
        b"\x3f" + b"a" * 20,
        (b"\x3f" + b"a" * 63) * 5 + b"\x00\x00\x01\x00\x01",  # longer than a name may be
        b"\x01a\x00\x00",
        b"",
    ],
)
def test_a_malformed_question_is_none(question: bytes) -> None:
    assert wire.parse_query(HEADER + question).question is None


@pytest.mark.parametrize("data", [b"", b"\x12", HEADER[:11], b"\x12\x34\x81\x00" + HEADER[4:]])
def test_what_is_not_a_query_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        wire.parse_query(data)


def test_a_response_is_one_to_the_query_only_with_its_id_and_question() -> None:
    sent = wire.encode_query(7, wire.Question(name_of("a.example"), wire.A, wire.IN))
    good = dns.message.make_response(dns.message.from_wire(sent)).to_wire()
    assert wire.is_response_to(good, sent)
    assert wire.is_response_to(good.replace(b"example", b"EXAMPLE"), sent)
    assert not wire.is_response_to(wire.with_id(good, 8), sent)
    assert not wire.is_response_to(good.replace(b"example", b"exampel"), sent)
    assert not wire.is_response_to(sent, sent)


def test_compressed_answers_of_an_upstream_server_are_read() -> None:
    sent = dns.message.make_query("www.example.com", "A")
    response = dns.message.make_response(sent)
    response.answer = [
        dns.rrset.from_text("www.example.com.", 60, "IN", "CNAME", "a.b.example.com."),
        dns.rrset.from_text("a.b.example.com.", 60, "IN", "A", "192.0.2.1"),
    ]
    code, records = wire.answers_of(response.to_wire(), sent.to_wire())
    assert code == wire.NO_ERROR
    assert records == [
        Record(name_of("www.example.com"), wire.CNAME, 60, wire.encode_name(name_of("a.b.example.com"))),
        Record(name_of("a.b.example.com"), wire.A, 60, bytes((192, 0, 2, 1))),
    ]


def test_a_chain_of_pointers_ends() -> None:
    sent = wire.encode_query(7, wire.Question((b"a",), wire.A, wire.IN))
    head = b"\x00\x07\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + sent[12:]
    looped = head + bytes((0xC0, len(head))) + b"\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x01\x02\x03\x04"
    with pytest.raises(MalformedMessage, match="backwards"):
        wire.answers_of(looped, sent)


@given(st.binary(max_size=600), st.booleans())
def test_no_bytes_raise_another_error(data: bytes, headed: bool) -> None:
    sent = wire.encode_query(0x1234, wire.Question((b"a",), wire.A, wire.IN))
    whole = HEADER + data if headed else data
    for act in (wire.parse_query, lambda each: wire.answers_of(sent[:2] + b"\x81" + sent[3:] + each, sent)):
        with suppress(MalformedMessage):
            act(whole)


LABELS = st.lists(st.binary(min_size=1, max_size=20), max_size=6).map(tuple)


@given(st.lists(LABELS, max_size=8), st.integers(60, 400))
def test_names_survive_compression_and_truncation(names: list[wire.Name], limit: int) -> None:
    records = tuple(Record(each, wire.A, 5, bytes(4)) for each in names)
    asked = Query(1, 0, recurse=True, question=wire.Question((b"a",), wire.A, wire.IN), limit=512, edns=None)
    data = wire.encode_reply(asked, Reply(answers=records), limit)
    assert len(data) <= limit
    read, at = [], 12 + 3 + 4
    for _ in range(int.from_bytes(data[6:8])):
        name, at = wire.read_name(data, at)
        read.append(wire.lower(name))
        at += 14
    assert read == [wire.lower(each) for each in names[: len(read)]]
    assert at == len(data)
