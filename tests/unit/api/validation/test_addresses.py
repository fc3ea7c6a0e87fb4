"""IP addresses and networks. The vectors are what Kubernetes' own library answers."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.api.validation import addresses

DATA = Path(__file__).parents[3] / "data" / "api"


def test_every_text_is_judged_as_kubernetes_judges_it() -> None:
    for row in json.loads((DATA / "addresses.json").read_text()):
        text = row["text"]
        assert addresses.is_ip(text) == row["ip"], text
        assert addresses.is_legacy_ip(text) == row["legacy_ip"], text
        assert addresses.is_legacy_ip(text, strict=False) == row["sloppy_ip"], text
        assert addresses.is_cidr(text) == row["cidr"], text
        assert addresses.is_legacy_cidr(text) == row["legacy_cidr"], text
        assert addresses.is_legacy_cidr(text, strict=False) == row["sloppy_cidr"], text
        assert addresses.is_interface_address(text) == row["interface"], text
        warning = addresses.ip_warning(text)
        assert ([f"f: {warning}"] if warning else []) == (row["ip_warnings"] or []), text
        assert [f"f: {warning}" for warning in addresses.cidr_warnings(text)] == (row["cidr_warnings"] or []), text


@pytest.mark.parametrize(
    "text", ["1" * 1_000_000, ":" * 1_000_000, "1:" * 500_000, "." * 1_000_000, "1.1.1.1/" + "1" * 9999]
)
def test_long_texts_are_rejected_quickly(text: str) -> None:
    assert addresses.parse_ip(text) is None
    assert addresses.parse_cidr(text) is None


@given(st.ip_addresses())
def test_addresses_are_read_and_written(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    parsed = addresses.parse_ip(str(address))
    assert parsed is not None
    assert (parsed.number, parsed.bits) == (int(address), address.max_prefixlen)
    if not parsed.mapped:
        assert str(parsed) == str(address)
        assert addresses.is_ip(str(address)) == []
        assert addresses.is_interface_address(f"{address}/{address.max_prefixlen}") == []
