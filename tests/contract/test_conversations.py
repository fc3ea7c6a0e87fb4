"""The API server answers like a kube-apiserver: the share of equal answers may only grow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.contract import conversations
from tests.contract.counts import best_of_two, hold

if TYPE_CHECKING:
    from tests.conftest import ApiServer

# Most scenarios run one at a time: some list or watch all namespaces. Those that mostly wait run concurrently.
AT_ONCE = {"access": 6}


@pytest.mark.parametrize("group", conversations.groups())
def test_the_server_answers_as_recorded(group: str, apiserver: ApiServer, request: pytest.FixtureRequest) -> None:
    server = conversations.Server(apiserver.url, apiserver.token, str(apiserver.ca))
    cases = conversations.scenarios(group)
    with ThreadPoolExecutor(AT_ONCE.get(group, 1)) as pool:
        results = list(pool.map(lambda case: conversations.check(server, *case), cases))
    results = best_of_two(f"api/{group}", results, lambda i: conversations.check(server, *cases[i]))
    hold(request, f"api/{group}", results, sum(len(expected) for _, expected in cases))
