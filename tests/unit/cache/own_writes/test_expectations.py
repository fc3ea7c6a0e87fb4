"""Waiting until a store has seen what is the case on the server."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.cache.store.test_store import key, pod

from ostinato.cache.own_writes.expectations import (
    BeingDeleted,
    Expectations,
    Gone,
    StaleCache,
    Superseded,
    Written,
    wait_for,
)
from ostinato.cache.store.store import Store
from ostinato.world import Simulation

DELETED = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_a_write_has_come_when_the_store_is_at_its_version_or_later() -> None:
    store = Store()
    expectations = Expectations(store, "pods")
    assert expectations.expect(Written(key("a"), "5")).satisfied is False
    store.put(pod("b", 4))
    expectations.observe()
    assert len(expectations.pending(key("a"))) == 1
    assert expectations.pending(key("b")) == []
    store.put(pod("c", 6))  # events come in the order of versions, so that of a was before
    expectations.observe()
    assert expectations.pending() == []
    assert expectations.expect(Written(key("a"), "6")).satisfied


def test_bookmarks_and_lists_are_news_too() -> None:
    store = Store()
    expectations = Expectations(store, "pods")
    first = expectations.expect(Written(key("a"), "5"))
    second = expectations.expect(Written(key("a"), "9"))
    store.bookmark("7")
    expectations.observe()
    assert (first.satisfied, second.satisfied) == (True, False)
    store.replace(store.replacement(), "10")
    expectations.observe()
    assert second.satisfied


def test_writes_come_in_the_order_of_their_versions_and_other_facts_beside_them() -> None:
    store = Store()
    store.put(pod("c", 4))
    expectations = Expectations(store, "pods")
    late, early = expectations.expect(Written(key("a"), "12")), expectations.expect(Written(key("a"), "9"))
    other, strange = expectations.expect(Written(key("b"), "9")), expectations.expect(Written(key("a"), "not-a-number"))
    gone, outdated = expectations.expect(Gone(key("c"))), expectations.expect(Superseded(key("c"), "4"))
    store.put(pod("d", 9))
    expectations.observe()
    assert [each.satisfied for each in (late, early, other, strange, gone, outdated)] == [
        False,
        True,
        True,
        *[False] * 3,
    ]
    assert expectations.pending(key("a")) == [late, strange]
    assert expectations.pending(key("b")) == []
    store.put(pod("c", 10))
    expectations.observe()
    assert [each.satisfied for each in (late, gone, outdated)] == [False, False, True]
    store.remove(pod("c", 12))
    expectations.observe()
    assert [each.satisfied for each in (late, strange, gone)] == [True, False, True]
    store.bookmark("not-a-number")
    expectations.observe()
    assert strange.satisfied
    assert not expectations.has_pending


def test_facts_about_objects() -> None:
    store = Store()
    store.put(pod("a", 1, uid="old"))
    assert not Gone(key("a")).is_satisfied_by(store)
    assert not Gone(key("a"), "old").is_satisfied_by(store)
    assert Gone(key("a"), "other").is_satisfied_by(store)
    assert Gone(key("b")).is_satisfied_by(store)
    assert not BeingDeleted(key("a"), "old").is_satisfied_by(store)
    assert BeingDeleted(key("a"), "other").is_satisfied_by(store)
    assert not Superseded(key("a"), "1").is_satisfied_by(store)
    store.put(pod("a", 2, uid="old", **DELETED))
    assert not Gone(key("a")).is_satisfied_by(store)
    assert BeingDeleted(key("a")).is_satisfied_by(store)
    assert Superseded(key("a"), "1").is_satisfied_by(store)
    store.remove(pod("a", 3))
    assert Gone(key("a")).is_satisfied_by(store)
    assert Superseded(key("a"), "2").is_satisfied_by(store)
    assert [str(state) for state in (Gone(key("a")), BeingDeleted(key("a")), Superseded(key("a"), "1"))] == [
        "the removal of default/a",
        "the deletion of default/a",
        "default/a after resourceVersion 1",
    ]


def test_expectations_can_be_queried_by_namespace() -> None:
    expectations = Expectations(Store(), "pods")
    expectations.expect(Written(key("a", "one"), "5"))
    expectations.expect(Written(key("b", "two"), "6"))
    assert len(expectations.pending(namespace="one")) == 1
    assert len(expectations.pending()) == 2


def test_a_server_that_went_back_ends_all_waiting() -> None:
    store = Store()
    store.bookmark("100")
    expectations = Expectations(store, "pods")
    expectations.observe()
    lost = expectations.expect(Written(key("a"), "200"))
    store.replace(store.replacement(), "50")
    expectations.observe()
    assert lost.satisfied
    assert expectations.pending() == []


def test_an_event_at_the_moment_of_the_timeout_satisfies_the_wait() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        expectations = Expectations(Store(), "pods")
        late = [expectations.expect(Written(key("a"), "5"))]
        waiter = asyncio.ensure_future(wait_for(late, 2, simulation.clock))
        await simulation.clock.sleep(0)
        simulation.clock.timer(2, expectations.clear)
        await waiter

    simulation.run(main())


def test_an_expectation_unsatisfied_for_a_minute_is_dropped_and_reported() -> None:
    simulation = Simulation(1)
    lost: list[str] = []

    async def main() -> None:
        expectations = Expectations(Store(), "pods", lambda state: lost.append(str(state)))
        late = [expectations.expect(Written(key("a"), "5"))]
        for _ in range(8):
            with pytest.raises(StaleCache):
                await wait_for(late, 10, simulation.clock)
        assert simulation.clock.monotonic() == pytest.approx(80)

    simulation.run(main())
    assert lost == ["default/a at resourceVersion 5"]


def test_waiting_ends_when_all_has_come_or_the_time_is_up() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        store = Store()
        expectations = Expectations(store, "pods")
        await wait_for([], 0, simulation.clock)
        expected = [expectations.expect(Written(key("a"), "5")), expectations.expect(Written(key("b"), "6"))]
        with pytest.raises(StaleCache, match="not observed default/a at resourceVersion 5 after 2 s"):
            await wait_for(expected, 2, simulation.clock)
        waiter = asyncio.ensure_future(wait_for(expected, 10, simulation.clock))
        store.bookmark("5")
        expectations.observe()
        await simulation.clock.sleep(1)
        assert not waiter.done()
        store.bookmark("6")
        expectations.observe()
        await waiter

    simulation.run(main())
