"""Shuffle sharding: each flow is dealt a few of the queues, so that two flows rarely share all of theirs."""

from __future__ import annotations

import hashlib


def flow_hash(schema: str, distinguisher: str) -> int:
    """Hash that determines a flow's hand; equal to kube-apiserver's."""
    digest = hashlib.sha256(schema.encode() + b"\0" + distinguisher.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little")


def deal(number: int, deck: int, hand: int) -> list[int]:
    """Deal a hand of distinct cards from a deck of numbers, determined by a hash value."""
    cards: list[int] = []
    remainders: list[int] = []
    for i in range(hand):
        number, remainder = divmod(number, deck - i)
        remainders.append(remainder)
    for i, remainder in enumerate(remainders):
        card = remainder
        for earlier in reversed(remainders[:i]):
            if card >= earlier:
                card += 1
        cards.append(card)
    return cards
