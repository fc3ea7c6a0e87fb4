"""Netlink messages as bytes: compared with those that `ip` and `nft` send for the same request."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from ostinato.plane.network import messages, nf_messages, nftables
from ostinato.plane.network import netlink as rtnetlink
from ostinato.plane.network.messages import Message, attribute, attributes, encode, nested, number, text
from ostinato.plane.network.netlink import Netlink

LITTLE = pytest.mark.skipif(__import__("sys").byteorder != "little", reason="recorded on a little-endian machine")


def test_an_attribute_is_padded_to_four_bytes_which_its_length_does_not_count() -> None:
    assert text(3, "eth0") == b"\x09\x00\x03\x00eth0\x00\x00\x00\x00"
    assert len(attribute(1, b"abc")) == 8
    assert attribute(1, b"abcd")[:2] == b"\x08\x00"


def test_attributes_are_read_as_they_were_written() -> None:
    written = text(3, "br0") + number(10, 7) + nested(18, attribute(1, b"veth")) + attribute(20, b"")
    assert attributes(written) == {3: b"br0\0", 10: b"\x07\0\0\0", 18: attribute(1, b"veth"), 20: b""}


@pytest.mark.parametrize("damaged", [b"\x00\x00\x01\x00", b"\x03\x00\x01\x00xxxx", b"\x01"])
def test_a_damaged_attribute_ends_the_reading(damaged: bytes) -> None:
    assert attributes(number(1, 5) + damaged) == {1: b"\x05\0\0\0"}


@LITTLE
def test_a_message_has_its_length_type_flags_and_number() -> None:
    assert encode(Message(16, 0x605, b"body"), 3).hex() == "14000000" + "1000" + "0506" + "03000000" + "00000000" + (
        b"body".hex()
    )


class Recorder:
    """A netlink socket that notes what is sent."""

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol
        self.sent: list[Message] = []

    def request(self, kind: int, flags: int, body: bytes) -> bytes:
        self.sent.append(Message(kind, flags, body))
        return rtnetlink._LINK.pack(0, 0, 5, 0, 0)

    def batch(self, begin: Message, content: Any, end: Message) -> None:
        self.sent += [begin, *content, end]

    def close(self) -> None: ...


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder(messages.ROUTE)
    for module in (rtnetlink, nf_messages):
        monkeypatch.setattr(module, "NetlinkSocket", lambda _: recorder)
    return recorder


@LITTLE
def test_a_veth_pair_is_asked_for_as_ip_does_it(recorder: Recorder) -> None:
    """`ip link add v0 master BRIDGE type veth peer name eth0 address … netns …`."""
    Netlink().add_pair("v0", "eth0", 9, bridge=4, hardware=bytes.fromhex("0a580af40003"))
    (sent,) = recorder.sent
    assert (sent.kind, sent.flags) == (16, messages.ACK | messages.CREATE | messages.EXCLUSIVE)
    body = attributes(sent.body[16:])
    assert (body[3], body[10]) == (b"v0\0", b"\x04\0\0\0")
    info = attributes(body[18])
    assert info[1] == b"veth"
    peer = attributes(attributes(info[2])[1][16:])
    assert peer == {3: b"eth0\0", 28: b"\x09\0\0\0", 1: bytes.fromhex("0a580af40003")}


@LITTLE
def test_a_bridge_has_a_fixed_hardware_address(recorder: Recorder) -> None:
    Netlink().add_bridge("br0", bytes(6))
    body = attributes(recorder.sent[0].body[16:])
    assert (body[3], body[1], attributes(body[18])) == (b"br0\0", bytes(6), {1: b"bridge"})


@LITTLE
@pytest.mark.parametrize(
    ("destination", "head"),
    [("10.0.0.0/24", "02180000fe04fd0100000000"), ("10.0.0.7/32", "02200000fe04fd0100000000")],
)
def test_a_route_to_a_link_has_the_scope_of_that_link(recorder: Recorder, destination: str, head: str) -> None:
    Netlink().add_route(5, ipaddress.ip_network(destination))
    (sent,) = recorder.sent
    assert sent.body[:12].hex() == head
    assert attributes(sent.body[12:]) == {1: ipaddress.ip_network(destination).network_address.packed, 4: b"\x05\0\0\0"}


@LITTLE
def test_an_address_has_the_prefix_length_of_its_network(recorder: Recorder) -> None:
    Netlink().add_address(5, ipaddress.ip_address("10.244.0.1"), 24)
    assert recorder.sent[0].body[:8].hex() == "0218020005000000"


@LITTLE
def test_the_rules_are_those_that_nft_makes(recorder: Recorder) -> None:
    """`iifname != "ost*" oifname "ostb-abc" ct state & (established | related) == 0 drop`, as nft 1.0 sends it."""
    nftables.install("t", "ostb-abc", ipaddress.IPv4Network("10.1.0.0/24"))
    forward = recorder.sent[-2]
    recorded = (
        "24000180090001006d65746100000000140002800800020000000006080001000000000"
        "12c00018008000100636d7000200002800800010000000001080002000000000"
        "10c000380070001006f737400"
        "24000180090001006d657461000000001400028008000200000000070800010000000001"
        "3800018008000100636d70002c000280080001000000000108000200000000001800038014000100"
        "6f7374622d6162630000000000000000"
        "200001800700010063740000140002800800020000000000080001000000000"
        "1"
    )
    assert recorded in forward.body.hex()
    assert forward.body.hex().endswith(
        "300001800e000100696d6d656469617465000000" + "1c0002800800010000000000100002800c0002800800010000000000"
    )
    kinds = [each.kind & 0xFF for each in recorder.sent]
    assert kinds == [16, 0, 2, 0, 3, 3, 6, 6, 17]  # a table of that name is replaced, all in one batch
