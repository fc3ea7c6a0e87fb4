"""Shuffle sharding: each flow is dealt a few of the queues, so that two flows rarely share all of theirs."""

from __future__ import annotations

import hashlib


def flow_hash(schema: str, distinguisher: str) -> int:
    """The number that a flow's hand is dealt by; equal to kube-apiserver's."""
    digest = hashlib.sha256(schema.encode() + b"\0" + distinguisher.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little")


def deal(number: int, deck: int, hand: int) -> list[int]:
    """A hand of different cards, from 0 to the size of the deck, by a number."""
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
