"""Which addresses a server asks on behalf of its clients, and that it asks no other than the one it checked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest
from tests.stage.api import Api, asking

from ostinato.server.backends.addresses import AddressError, AddressGuard, look_up
from ostinato.world import World

NODES = "/api/v1/nodes"


class Names:
    """A name server whose answers change."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = [*answers]
        self.asked = 0

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def guard(*answers: Sequence[str]) -> AddressGuard:
    return AddressGuard(lambda: [("203.0.113.1", 6443), ("10.0.0.1", 443)], World.real().clock, Names(*answers))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.255.255.254", "localhost"),
        *(
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "0:0:0:0:0:ffff:127.0.0.1",
            "0.0.0.0",
            "0",
            "::",
            "::ffff:0.0.0.0",
        ),
        *("169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%lo", "224.0.0.1", "ff02::1"),
        *("255.255.255.255", "", "a..b", "x" * 300),
    ],
)
def test_cve_2020_8562_addresses_that_are_not_of_one_other_machine_are_refused(host: str) -> None:
    with pytest.raises(AddressError, match=r"address not allowed|no such host"):
        asyncio.run(AddressGuard(list, World.real().clock, look_up).resolve(host, 10250))


@pytest.mark.parametrize("host", ["203.0.113.9", "10.1.2.3", "192.168.0.7", "2001:db8::1", "fd00::1"])
def test_addresses_of_other_machines_are_allowed_private_ones_too(host: str) -> None:
    assert asyncio.run(AddressGuard(list, World.real().clock, look_up).resolve(host, 10250)) == [host]


def test_every_address_of_a_name_is_checked() -> None:
    with pytest.raises(AddressError, match="address not allowed"):
        asyncio.run(guard(["203.0.113.9", "127.0.0.1"]).resolve("two.test", 80))


def test_loopback_is_allowed_only_for_local_targets() -> None:
    asyncio.run(guard(["127.0.0.1"]).resolve("here", 80, local=True))
    for other in ("0.0.0.0", "169.254.0.1", "224.0.0.1", "::"):
        with pytest.raises(AddressError):
            asyncio.run(guard([other]).resolve("here", 80, local=True))


def test_cve_2022_3294_api_servers_are_refused_at_every_address_that_they_have() -> None:
    own = guard(["127.0.0.1"])
    own.serve(6443)
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        own.check(address, 10250, local=True)
        with pytest.raises(AddressError, match="address not allowed"):
            own.check(address, 6443, local=True)
    for address, port in (("203.0.113.1", 6443), ("::ffff:203.0.113.1", 6443), ("10.0.0.1", 443)):
        with pytest.raises(AddressError, match="address not allowed"):
            own.check(address, port)
        own.check(address, port + 1)


@asking
async def test_cve_2020_8562_a_name_is_resolved_once_and_the_checked_address_dialed(api: Api) -> None:
    """The second answer of the attacker's name server would be loopback."""
    names = Names(["192.0.2.123"], ["127.0.0.1"])
    api.server.guard._lookup = names
    dialed: list[str] = []
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def spied(*args: object, **more: object) -> object:
        dialed.append(str(args[1]))
        raise OSError("unreachable")

    loop.create_connection = spied  # type: ignore[assignment,method-assign]
    try:
        status = {"addresses": [{"type": "Hostname", "address": "rebinding.test"}]}
        await api.post(NODES, {"metadata": {"name": "n"}})
        await api.merge(f"{NODES}/n/status", {"status": status})
        answer = await api.get(f"{NODES}/http:n:8080/proxy/")
    finally:
        loop.create_connection = connect  # type: ignore[method-assign]
    assert answer.code == 503
    assert names.asked == 1
    assert dialed == ["192.0.2.123"]
    assert (await api.get(f"{NODES}/http:n:8080/proxy/")).message == "address not allowed"


@asking
async def test_an_unknown_name_is_reported(api: Api) -> None:
    async def nobody(host: str) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    api.server.guard._lookup = nobody
    await api.post(NODES, {"metadata": {"name": "n"}})
    await api.merge(f"{NODES}/n/status", {"status": {"addresses": [{"type": "Hostname", "address": "x.test"}]}})
    answer = await api.get(f"{NODES}/n/proxy/")
    assert (answer.code, answer.message) == (400, "lookup x.test: no such host")


@asking
async def test_lookups_time_out(api: Api) -> None:
    async def silent(host: str) -> Sequence[str]:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    api.server.guard._lookup = silent
    await api.post(NODES, {"metadata": {"name": "n"}})
    await api.merge(f"{NODES}/n/status", {"status": {"addresses": [{"type": "Hostname", "address": "x.test"}]}})
    answers = await asyncio.gather(*(api.get(f"{NODES}/n/proxy/") for _ in range(20)))
    assert {answer.message for answer in answers} == {"lookup x.test: i/o timeout"}
