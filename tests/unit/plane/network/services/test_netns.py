"""Service addresses in a network namespace, without the required capabilities; the rest is tested on a cluster."""

from __future__ import annotations

import errno
import ipaddress
from pathlib import Path

import pytest

from ostinato.plane.network.services import netns as module
from ostinato.plane.network.services.addresses import AddressUnavailable
from ostinato.plane.network.services.netns import NetnsAddresses


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EPERM, "this process may not create network namespaces: that takes CAP_SYS_ADMIN"),
        (errno.ENOSYS, "Function not implemented"),
    ],
)
def test_without_rights_no_address_can_be_had_and_it_is_not_tried_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, words: str
) -> None:
    tries = []

    class Refused:
        def __init__(self) -> None:
            tries.append(1)
            raise OSError(number, "Function not implemented")

    monkeypatch.setattr(module, "Netlink", Refused)
    annex = NetnsAddresses(tmp_path)
    assert not annex.is_available()
    assert not annex.is_local("127.0.0.1")
    for _ in range(2):
        with pytest.raises(AddressUnavailable, match=words):
            annex.take(ipaddress.ip_address("10.0.0.5"))
    assert len(tries) == 1
    annex.release(ipaddress.ip_address("10.0.0.5"))
    annex.close()
