from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.world import Rng


def draws(rng: Rng) -> list[object]:
    items = list(range(20))
    rng.shuffle(items)
    return [rng.random(), rng.uniform(2, 3), rng.randrange(1000), rng.choice("abcdef"), items, rng.bytes(9)]


@pytest.mark.parametrize("seed", [0, 7, "seven", b"7", -1])
def test_the_same_seed_gives_the_same_numbers(seed: int | str | bytes) -> None:
    assert draws(Rng(seed)) == draws(Rng(seed))


def test_another_seed_or_another_type_of_seed_gives_other_numbers() -> None:
    assert len({str(draws(Rng(seed))) for seed in (0, 1, "0", "1", b"0", b"1")}) == 6


def test_the_numbers_of_a_seed_never_change_between_versions() -> None:
    rng = Rng(7)
    assert [rng.randrange(1000) for _ in range(5)] == [846, 793, 404, 847, 293]
    assert rng.random() == 0.2464233814752309
    assert rng.fork("a").randrange(10**12) == 795326202208


def test_a_fork_does_not_depend_on_what_was_drawn_before() -> None:
    fresh, used = Rng(1), Rng(1)
    draws(used)
    assert draws(fresh.fork("a")) == draws(used.fork("a"))


def test_forks_differ_from_each_other_and_from_their_origin() -> None:
    rng = Rng(1)
    streams = [rng, rng.fork("a"), rng.fork("b"), rng.fork("a").fork("b"), rng.fork("ab")]
    assert len({str(draws(stream)) for stream in streams}) == len(streams)


def test_a_stream_from_entropy_cannot_be_repeated() -> None:
    assert draws(Rng.from_entropy()) != draws(Rng.from_entropy())


@given(st.integers(), st.integers(-(10**20), 10**20), st.integers(1, 10**20))
def test_an_integer_lies_in_its_range(seed: int, low: int, width: int) -> None:
    assert low <= Rng(seed).randrange(low, low + width) < low + width
    assert 0 <= Rng(seed).randrange(width) < width


@pytest.mark.parametrize(("start", "stop"), [(0, None), (-1, None), (3, 3), (4, 3)])
def test_an_empty_range_is_an_error(start: int, stop: int | None) -> None:
    with pytest.raises(ValueError, match="randrange"):
        Rng(0).randrange(start, stop)


def test_nothing_can_be_chosen_from_nothing() -> None:
    with pytest.raises(IndexError):
        Rng(0).choice([])


def test_integers_are_equally_likely() -> None:
    rng = Rng(0)
    counts = Counter(rng.randrange(27) for _ in range(27_000))
    assert set(counts) == set(range(27))
    assert all(800 < count < 1200 for count in counts.values())


@given(st.integers(), st.lists(st.integers()))
def test_a_shuffle_is_a_permutation(seed: int, items: list[int]) -> None:
    shuffled = list(items)
    Rng(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_a_shuffle_reaches_every_permutation() -> None:
    rng = Rng(0)
    seen = set()
    for _ in range(200):
        items = ["a", "b", "c"]
        rng.shuffle(items)
        seen.add("".join(items))
    assert len(seen) == 6


@given(st.integers(), st.floats(0, 1e9), st.floats(0.001, 100))
def test_jitter_only_ever_adds_at_most_the_factor(seed: int, duration: float, factor: float) -> None:
    assert duration <= Rng(seed).jitter(duration, factor) <= duration * (1 + factor) * (1 + 1e-12)


@pytest.mark.parametrize("factor", [0.0, -3.0])
def test_a_jitter_factor_that_is_not_positive_counts_as_one(factor: float) -> None:
    rng = Rng(0)
    values = [rng.jitter(10, factor) for _ in range(500)]
    assert 10 <= min(values) < 11
    assert 19 < max(values) < 20


@pytest.mark.parametrize("count", [0, 1, 16, 33])
def test_bytes_come_in_the_number_asked_for(count: int) -> None:
    assert len(Rng(0).bytes(count)) == count
