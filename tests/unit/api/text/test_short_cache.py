from __future__ import annotations

from ostinato.api.text.short_cache import LONGEST, short_cache


def test_long_texts_are_computed_each_time_and_not_kept() -> None:
    calls: list[tuple[str, ...]] = []

    @short_cache(4)
    def total(*texts: str) -> int:
        calls.append(texts)
        return sum(map(len, texts))

    short, long = "a" * LONGEST, "b" * (LONGEST + 1)
    for _ in range(2):
        assert total(short) == LONGEST
        assert total(short, long) == 2 * LONGEST + 1
    assert calls == [(short,), (short, long), (short, long)]
