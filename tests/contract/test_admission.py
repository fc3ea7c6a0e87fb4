"""The API server answers like a kube-apiserver with the same admission plugins: the share may only grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import started_apiserver
from tests.contract import conversations
from tests.contract.admission_servers import HERE, groups, options
from tests.contract.counts import best_of_two, hold

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stage.stores import Stores


@pytest.mark.parametrize("group", sorted(groups()))
def test_the_server_answers_as_recorded(
    group: str, stores: Stores, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cases = conversations.scenarios(group, HERE)
    store = stores.options(tmp_path)
    with options(group, tmp_path) as wanted, started_apiserver(tmp_path, wanted, store) as apiserver:
        server = conversations.Server(apiserver.url, apiserver.token, str(apiserver.ca))

        def check(i: int) -> tuple[int, str]:
            return conversations.check(server, *cases[i])

        results = best_of_two(f"admission/{group}", [check(i) for i in range(len(cases))], check)
    hold(request, f"admission/{group}", results, sum(len(expected) for _, expected in cases))
