"""Paths, methods and users: each request answered as the recorded kube-apiserver answered it."""

from __future__ import annotations

import json

from ostinato.world import Simulation
from tests.contract.routing.record import RECORDED
from tests.contract.routing.replay import answered, started
from tests.contract.routing.table import Case, cases


def test_each_request_of_the_routing_table_is_answered_as_by_kube_apiserver() -> None:
    """Where kube-apiserver fails with a 500 (a namespace `..`, `/api/v1/watch` alone), the request is refused here."""
    recorded = json.loads(RECORDED.read_text())
    assert [Case(*line[:3]) for line in recorded] == cases(), "record the table again"
    world = Simulation(seed=1)
    different: list[str] = []

    async def main() -> None:
        server = await started(world)
        for user, method, target, *expected in recorded:
            found = await answered(server, Case(user, method, target))
            same = found == expected or (expected[0] == 500 and 400 <= found[0] < 500)
            if not same:
                different.append(f"{user}: {method} {target}: {found} instead of {expected}")
        await server.close()

    world.run(main())
    assert not different, "\n".join(different[:20])
