from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from tests.stage.election import Candidate, ElectionStage, staged

from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, RequestTimedOut
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.elector import Elector, LeadershipLost
from ostinato.manager.election.fence import Fence, FencedTransport
from ostinato.manager.election.settings import LeaderElection, identity
from ostinato.world import Simulation


def fail(*methods: str) -> Any:
    def before(request: Request) -> None:
        if request.method in methods:
            raise ConnectionLost("cut off")

    return before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "My Lease"}, "leader election 'My Lease' is not a valid name: a lowercase RFC 1123"),
        ({"name": "a", "lease_duration": 0}, "lease_duration must be greater than zero"),
        ({"name": "a", "renew_deadline": 0}, "renew_deadline must be greater than zero"),
        ({"name": "a", "retry_period": -1}, "retry_period must be greater than zero"),
        ({"name": "a", "lease_duration": 15.5}, "whole seconds"),
        ({"name": "a", "lease_duration": 10}, "lease_duration must be greater than renew_deadline"),
        ({"name": "a", "retry_period": 9}, "renew_deadline must be greater than 1.2 times retry_period"),
    ],
)
def test_times_that_leave_no_gap_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeaderElection(**options)


def test_a_candidate_without_an_identity_is_refused() -> None:
    world = Simulation(1)
    with pytest.raises(ValueError, match="identity must not be empty"):
        Elector(None, LeaderElection(name="a"), Fence(world.clock), world)  # type: ignore[arg-type]


def test_a_request_for_the_lease_has_half_of_the_renew_deadline_and_at_least_a_second() -> None:
    assert LeaderElection(name="a").request_timeout == 5.0
    assert LeaderElection(name="a", renew_deadline=1.5, retry_period=0.5).request_timeout == 1.0


def test_identities_are_those_of_the_host_and_unique() -> None:
    ids = Simulation(1).ids
    first, second = identity(ids), identity(ids)
    assert first != second
    assert first.partition("_")[0] == second.partition("_")[0] != ""


@staged
async def test_a_lease_that_is_not_there_is_created_and_led_after_its_time(stage: ElectionStage) -> None:
    a = stage.candidate("a", labels={"team": "x"})
    began = stage.clock.monotonic()
    await a.elector.acquire()
    waited = stage.clock.monotonic() - began
    assert 15 <= waited <= 17
    lease = await stage.lease()
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds, lease.spec.lease_transitions) == ("a", 15, 0)
    assert lease.metadata.labels == {"team": "x"}
    assert a.leaders == ["a"]
    assert a.elector.is_leader
    assert a.fence.is_open


@pytest.mark.parametrize("trust", [False, True])
def test_the_wait_of_the_first_candidate_is_logged(caplog: pytest.LogCaptureFixture, *, trust: bool) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        await stage.candidate("a", trust_absence=trust).elector.acquire()

    caplog.set_level("INFO")
    play()
    waits = [text for text in caplog.messages if "created a lease; waiting" in text]
    assert len(waits) == (0 if trust else 1)


def test_a_forbidden_lease_is_logged_with_the_command_for_its_role(caplog: pytest.LogCaptureFixture) -> None:
    def before(request: Request) -> None:
        raise Forbidden.of(GroupResource("coordination.k8s.io", "leases"), "widgets", "no")

    @staged
    async def play(stage: ElectionStage) -> None:
        a = stage.candidate("a")
        a.transport.before = before
        task = asyncio.create_task(a.elector.acquire())
        await stage.clock.sleep(1)
        task.cancel()

    play()
    assert caplog.messages[0].endswith(
        "; `ostinato manifests FILE --leader-election NAME` writes the role that it needs"
    )


@staged
async def test_with_trust_absence_the_first_candidate_leads_immediately(stage: ElectionStage) -> None:
    a = stage.candidate("a", trust_absence=True)
    began = stage.clock.monotonic()
    await a.elector.acquire()
    assert stage.clock.monotonic() == began
    assert a.transport.short_calls == ["GET widgets", "POST leases"]
    lease = await stage.lease()
    assert lease.spec.acquire_time == lease.spec.renew_time is not None


async def _led(stage: ElectionStage, name: str = "a", **options: Any) -> Candidate:
    candidate = stage.candidate(name, trust_absence=True, **options)
    await candidate.elector.acquire()
    return candidate


@staged
async def test_a_new_candidate_watches_an_unchanged_lease_for_its_whole_time(stage: ElectionStage) -> None:
    await _led(stage)
    await stage.clock.sleep(100)  # long dead by its own clock, which nobody asks
    b = stage.candidate("b")
    began = stage.clock.monotonic()
    await b.elector.acquire()
    assert 15 < stage.clock.monotonic() - began <= 15 + 2 * 4.4
    lease = await stage.lease()
    assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("b", 1)
    assert b.leaders == ["a", "b"]


@staged
async def test_attempts_are_two_to_four_seconds_and_a_bit_apart(stage: ElectionStage) -> None:
    a = await _led(stage)
    renewing = asyncio.create_task(a.elector.renew())
    b = stage.candidate("b")
    times: list[float] = []
    b.transport.before = lambda _: times.append(stage.clock.monotonic())
    trying = asyncio.create_task(b.elector.acquire())
    await stage.clock.sleep(200)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(gaps) > 40
    assert 2.0 <= min(gaps) < 2.5 < 4.0 < max(gaps) <= 4.4
    assert b.elector.leader == "a"
    for task in (renewing, trying):
        task.cancel()


@staged
async def test_a_released_lease_is_acquired_immediately(stage: ElectionStage) -> None:
    a = await _led(stage)
    assert await a.elector.release()
    released = await stage.lease()
    assert (released.spec.holder_identity, released.spec.lease_duration_seconds) == ("", 1)
    b = stage.candidate("b")
    began = stage.clock.monotonic()
    await b.elector.acquire()
    assert stage.clock.monotonic() == began
    assert (await stage.lease()).spec.lease_transitions == 1


@staged
async def test_renewal_is_one_write_that_keeps_when_it_was_acquired(stage: ElectionStage) -> None:
    a = await _led(stage)
    before = await stage.lease()
    a.transport.requests.clear()
    renewing = asyncio.create_task(a.elector.renew())
    await stage.clock.sleep(7)
    assert a.transport.short_calls == ["PUT widgets"] * 3
    after = await stage.lease()
    assert after.spec.acquire_time == before.spec.acquire_time
    assert after.spec.renew_time > before.spec.renew_time  # type: ignore[operator]
    assert after.spec.lease_transitions == 0
    assert a.elector.slow_paths == 0
    renewing.cancel()


@staged
async def test_labels_are_set_on_the_lease_with_each_write_and_others_stay(stage: ElectionStage) -> None:
    a = await _led(stage, labels={"team": "x"})
    lease = await stage.lease()
    lease.metadata.labels = {"team": "y", "other": "z"}
    await stage.client.update(lease)
    renewing = asyncio.create_task(a.elector.renew())
    await stage.clock.sleep(7)
    assert (await stage.lease()).metadata.labels == {"team": "x", "other": "z"}
    renewing.cancel()


@staged
async def test_a_lost_answer_makes_the_next_renewal_read_first(stage: ElectionStage) -> None:
    a = await _led(stage)
    a.transport.after = fail("PUT")
    renewing = asyncio.create_task(a.elector.renew())
    await stage.clock.sleep(2.5)
    a.transport.after = lambda _: None
    await stage.clock.sleep(4)
    assert not renewing.done()
    assert a.elector.slow_paths >= 1
    assert a.fence.is_open
    renewing.cancel()


@staged
async def test_a_leader_that_cannot_renew_gives_up_ten_seconds_after_its_last_renewal(
    stage: ElectionStage,
) -> None:
    a = await _led(stage)
    began = stage.clock.monotonic()
    a.transport.before = fail("GET", "PUT")
    with pytest.raises(LeadershipLost, match=r"lease default/widgets could not be renewed within 10 s"):
        await a.elector.renew()
    assert stage.clock.monotonic() - began == pytest.approx(10)
    assert not a.fence.is_open
    a.fence.extend(float("inf"))
    assert not a.fence.is_open, "nothing opens it again"


@staged
async def test_a_request_that_hangs_is_given_up_in_time_for_another(stage: ElectionStage) -> None:
    a = await _led(stage)
    server = a.transport.inner

    class Hanging:
        host = "hanging"

        async def request(self, request: Request) -> Any:
            hung.append(request.method)
            a.transport.inner = server
            assert request.timeout is not None
            await stage.clock.sleep(request.timeout)
            raise RequestTimedOut("no answer")

    hung: list[str] = []
    a.transport.inner = Hanging()
    renewing = asyncio.create_task(a.elector.renew())
    await stage.clock.sleep(9)
    assert hung == ["PUT"]
    assert not renewing.done()
    assert a.fence.is_open
    renewing.cancel()


@staged
async def test_a_slow_renewal_counts_from_when_it_was_sent(stage: ElectionStage) -> None:
    a = await _led(stage)
    a.transport.after = lambda _: stage.clock.sleep(4)
    renewing = asyncio.create_task(a.elector.renew())
    sent = stage.clock.monotonic() + 2
    await stage.clock.sleep(6.5)
    assert a.fence.deadline() == pytest.approx(sent + 10)
    renewing.cancel()


@staged
async def test_a_leader_that_observes_another_holder_stops_immediately(stage: ElectionStage) -> None:
    a = await _led(stage)
    lease = await stage.lease()
    lease.spec.holder_identity = "intruder"
    await stage.client.update(lease)
    began = stage.clock.monotonic()
    with pytest.raises(LeadershipLost, match="is held by intruder"):
        await a.elector.renew()
    assert stage.clock.monotonic() - began == 2
    assert a.elector.leader == "intruder"


@staged
async def test_a_leader_whose_lease_was_deleted_recreates_it(stage: ElectionStage) -> None:
    a = await _led(stage)
    renewing = asyncio.create_task(a.elector.renew())
    await stage.client.delete(Lease, "widgets")
    await stage.clock.sleep(3)
    assert (await stage.lease()).spec.holder_identity == "a"
    assert a.fence.is_open
    assert "POST leases" in a.transport.short_calls[2:], "a renewal never creates the Lease"
    renewing.cancel()


@staged
async def test_a_candidate_that_finds_the_lease_deleted_waits_for_its_duration(stage: ElectionStage) -> None:
    a = await _led(stage)
    b = stage.candidate("b")
    trying = asyncio.create_task(b.elector.acquire())
    await stage.clock.sleep(1)
    deleted = stage.clock.monotonic()
    await stage.client.delete(Lease, "widgets")
    await trying
    assert stage.clock.monotonic() - deleted > 15
    assert not a.fence.is_open


@staged
async def test_a_candidate_that_does_not_lead_releases_nothing(stage: ElectionStage) -> None:
    b = stage.candidate("b")
    trying = asyncio.create_task(b.elector.acquire())
    await stage.clock.sleep(1)
    trying.cancel()
    assert not await b.elector.release()
    assert (await stage.lease()).spec.holder_identity == "b"


@staged
async def test_a_release_does_not_blank_the_lease_of_a_successor(stage: ElectionStage) -> None:
    a = await _led(stage)
    lease = await stage.lease()
    lease.spec.holder_identity = "successor"
    await stage.client.update(lease)
    assert not await a.elector.release()
    assert (await stage.lease()).spec.holder_identity == "successor"


@pytest.mark.parametrize("why", ["missing", "cut off", "slow"])
def test_a_release_that_fails_is_left_to_time(why: str) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        a = await _led(stage)
        if why == "missing":
            await stage.client.delete(Lease, "widgets")
        elif why == "cut off":
            a.transport.before = fail("PUT")
        else:
            a.transport.before = lambda _: stage.clock.sleep(100)
        assert not await a.elector.release()
        assert not a.fence.is_open

    play()


@staged
async def test_health_fails_only_for_a_leader_that_should_have_given_up(stage: ElectionStage) -> None:
    a = await _led(stage)
    a.elector.check()
    await stage.clock.sleep(15)
    a.elector.check()
    await stage.clock.sleep(6)
    a.elector.check(tolerance=10)
    with pytest.raises(LeadershipLost, match="failed election to renew leadership on lease widgets"):
        a.elector.check(tolerance=5)
    b = stage.candidate("b")
    await stage.clock.sleep(100)
    b.elector.check()


@staged
async def test_a_fenced_transport_reads_before_leadership_and_writes_only_while_it_lasts(stage: ElectionStage) -> None:
    fence = Fence(stage.clock)
    transport = FencedTransport(stage.transport, fence)
    assert transport.host == "in-process"
    assert (await transport.request(Request("GET", "/version"))).status == 200
    for attempt in (transport.request(Request("DELETE", "/api/v1/x")), transport.websocket(Request("GET", "/x"), [])):
        with pytest.raises(DeadlinePassed, match="this process is not the leader"):
            await attempt
    fence.extend(stage.clock.monotonic() + 5)
    assert (await transport.request(Request("DELETE", "/api/v1/namespaces/x"))).status == 404
    await stage.clock.sleep(5.1)
    with pytest.raises(DeadlinePassed):
        await transport.request(Request("DELETE", "/api/v1/namespaces/x"))
    await transport.close()
    assert stage.transport.closed
