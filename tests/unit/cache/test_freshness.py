"""Waiting until a store has seen what is the case on the server."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.cache.test_store import key, pod

from ostinato.cache.own_writes.freshness import BeingDeleted, Freshness, Gone, Outdated, StaleCache, Written, wait_for
from ostinato.cache.store.store import Store
from ostinato.world import Simulation

DELETED = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_a_write_has_come_when_the_store_is_at_its_version_or_later() -> None:
    store = Store()
    fresh = Freshness(store, "pods")
    assert fresh.expect(Written(key("a"), "5")).has_come is False
    store.put(pod("b", 4))
    fresh.look()
    assert len(fresh.pending(key("a"))) == 1
    assert fresh.pending(key("b")) == []
    store.put(pod("c", 6))  # events come in the order of versions, so that of a was before
    fresh.look()
    assert fresh.pending() == []
    assert fresh.expect(Written(key("a"), "6")).has_come


def test_bookmarks_and_lists_are_news_too() -> None:
    store = Store()
    fresh = Freshness(store, "pods")
    first = fresh.expect(Written(key("a"), "5"))
    second = fresh.expect(Written(key("a"), "9"))
    store.bookmark("7")
    fresh.look()
    assert (first.has_come, second.has_come) == (True, False)
    store.replace(store.replacement(), "10")
    fresh.look()
    assert second.has_come


def test_writes_come_in_the_order_of_their_versions_and_other_facts_beside_them() -> None:
    store = Store()
    store.put(pod("c", 4))
    fresh = Freshness(store, "pods")
    late, early = fresh.expect(Written(key("a"), "12")), fresh.expect(Written(key("a"), "9"))
    other, strange = fresh.expect(Written(key("b"), "9")), fresh.expect(Written(key("a"), "not-a-number"))
    gone, outdated = fresh.expect(Gone(key("c"))), fresh.expect(Outdated(key("c"), "4"))
    store.put(pod("d", 9))
    fresh.look()
    assert [each.has_come for each in (late, early, other, strange, gone, outdated)] == [
        False,
        True,
        True,
        *[False] * 3,
    ]
    assert fresh.pending(key("a")) == [late, strange]
    assert fresh.pending(key("b")) == []
    store.put(pod("c", 10))
    fresh.look()
    assert [each.has_come for each in (late, gone, outdated)] == [False, False, True]
    store.remove(pod("c", 12))
    fresh.look()
    assert [each.has_come for each in (late, strange, gone)] == [True, False, True]
    store.bookmark("not-a-number")
    fresh.look()
    assert strange.has_come
    assert not fresh.is_behind


def test_facts_about_objects() -> None:
    store = Store()
    store.put(pod("a", 1, uid="old"))
    assert not Gone(key("a")).is_met(store)
    assert not Gone(key("a"), "old").is_met(store)
    assert Gone(key("a"), "other").is_met(store)
    assert Gone(key("b")).is_met(store)
    assert not BeingDeleted(key("a"), "old").is_met(store)
    assert BeingDeleted(key("a"), "other").is_met(store)
    assert not Outdated(key("a"), "1").is_met(store)
    store.put(pod("a", 2, uid="old", **DELETED))
    assert not Gone(key("a")).is_met(store)
    assert BeingDeleted(key("a")).is_met(store)
    assert Outdated(key("a"), "1").is_met(store)
    store.remove(pod("a", 3))
    assert Gone(key("a")).is_met(store)
    assert Outdated(key("a"), "2").is_met(store)
    assert [str(fact) for fact in (Gone(key("a")), BeingDeleted(key("a")), Outdated(key("a"), "1"))] == [
        "the end of default/a",
        "the deletion of default/a",
        "what came after version 1 of default/a",
    ]


def test_one_namespace_is_asked_about_alone() -> None:
    fresh = Freshness(Store(), "pods")
    fresh.expect(Written(key("a", "one"), "5"))
    fresh.expect(Written(key("b", "two"), "6"))
    assert len(fresh.pending(namespace="one")) == 1
    assert len(fresh.pending()) == 2


def test_a_server_that_went_back_ends_all_waiting() -> None:
    store = Store()
    store.bookmark("100")
    fresh = Freshness(store, "pods")
    fresh.look()
    lost = fresh.expect(Written(key("a"), "200"))
    store.replace(store.replacement(), "50")
    fresh.look()
    assert lost.has_come
    assert fresh.pending() == []


def test_what_comes_in_the_moment_in_which_the_time_is_up_has_come() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        fresh = Freshness(Store(), "pods")
        late = [fresh.expect(Written(key("a"), "5"))]
        waiter = asyncio.ensure_future(wait_for(late, 2, simulation.clock))
        await simulation.clock.sleep(0)
        simulation.clock.timer(2, fresh.give_up)
        await waiter

    simulation.run(main())


def test_what_was_waited_for_in_vain_for_more_than_a_minute_is_lost_and_the_cache_is_told() -> None:
    simulation = Simulation(1)
    lost: list[str] = []

    async def main() -> None:
        fresh = Freshness(Store(), "pods", lambda fact: lost.append(str(fact)))
        late = [fresh.expect(Written(key("a"), "5"))]
        for _ in range(8):
            with pytest.raises(StaleCache):
                await wait_for(late, 10, simulation.clock)
        assert simulation.clock.monotonic() == pytest.approx(80)

    simulation.run(main())
    assert lost == ["version 5 of default/a"]


def test_waiting_ends_when_all_has_come_or_the_time_is_up() -> None:
    simulation = Simulation(1)

    async def main() -> None:
        store = Store()
        fresh = Freshness(store, "pods")
        await wait_for([], 0, simulation.clock)
        expected = [fresh.expect(Written(key("a"), "5")), fresh.expect(Written(key("b"), "6"))]
        with pytest.raises(StaleCache, match="pods: the cache has not seen version 5 of default/a after 2 s"):
            await wait_for(expected, 2, simulation.clock)
        waiter = asyncio.ensure_future(wait_for(expected, 10, simulation.clock))
        store.bookmark("5")
        fresh.look()
        await simulation.clock.sleep(1)
        assert not waiter.done()
        store.bookmark("6")
        fresh.look()
        await waiter

    simulation.run(main())
