"""Values by slot of the nodes that a search found."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.node_list import NodeList, values_of


class Node:
    def __init__(self, slot: int) -> None:
        self.slot = slot


NODES = cast("list[NodeInfo]", [Node(slot) for slot in range(12)])
VALUES = [slot * slot for slot in range(12)]


def expected(nodes: list[NodeInfo]) -> list[int]:
    return [VALUES[node.slot] for node in nodes]


@pytest.mark.parametrize("seed", range(30))
def test_the_values_are_those_of_the_nodes(seed: int) -> None:
    rng = random.Random(seed)
    nodes = NodeList()
    for _ in range(rng.randrange(4)):
        start = rng.randrange(12)
        if rng.random() < 0.7:
            nodes.add_range(NODES, start, rng.randint(start, 12))
        else:
            nodes.add_some(rng.sample(NODES, 3))
    assert values_of(nodes, VALUES) == expected(nodes)
    assert values_of([*nodes], VALUES) == expected(nodes)


def test_the_values_are_a_copy() -> None:
    nodes = NodeList()
    nodes.add_range(NODES, 0, 12)
    values: list[Any] = values_of(nodes, VALUES)
    values[0] = -1
    assert VALUES[0] == 0
