"""The API server answers like a kube-apiserver: the share of equal answers may only grow."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import ApiServer, started_apiserver
from tests.contract import conversations
from tests.contract.counts import best_of_two, hold
from tests.etcd_cluster import needs_etcd
from tests.stage.stores import Stores

# Most scenarios run one at a time: some list or watch all namespaces. Those that mostly wait run concurrently.
AT_ONCE = {"access": 6}


# Some of them on etcd too; all of them with --store etcd.
ON_ETCD = ("apply_odd", "configmap", "watchlist")


@pytest.mark.parametrize("group", conversations.groups())
def test_the_server_answers_as_recorded(group: str, apiserver: ApiServer, request: pytest.FixtureRequest) -> None:
    compare(group, apiserver, request)


@pytest.fixture(scope="module")
def apiserver_on_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    place = tmp_path_factory.mktemp("on-etcd")
    with (
        Stores.of_kind("etcd", place / "etcd") as stores,
        started_apiserver(place, store=stores.options(place)) as server,
    ):
        yield server


@needs_etcd
@pytest.mark.parametrize("group", ON_ETCD)
def test_the_server_on_etcd_answers_as_recorded(
    group: str, apiserver_on_etcd: ApiServer, request: pytest.FixtureRequest
) -> None:
    compare(group, apiserver_on_etcd, request)


def compare(group: str, apiserver: ApiServer, request: pytest.FixtureRequest) -> None:
    """Play the scenarios of a group, and hold the number of equal answers."""
    server = conversations.Server(apiserver.url, apiserver.token, str(apiserver.ca))
    cases = conversations.scenarios(group)
    with ThreadPoolExecutor(AT_ONCE.get(group, 1)) as pool:
        results = list(pool.map(lambda case: conversations.check(server, *case), cases))
    results = best_of_two(f"api/{group}", results, lambda i: conversations.check(server, *cases[i]))
    hold(request, f"api/{group}", results, sum(len(expected) for _, expected in cases))
