"""The API server logs the audit events of a kube-apiserver: the share of equal ones may only grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conftest import started_apiserver
from tests.contract import audit_events
from tests.contract.counts import best_of_two, hold

if TYPE_CHECKING:
    import pytest

    from tests.stage.stores import Stores


def test_the_server_writes_the_recorded_audit_events(
    stores: Stores, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    place = tmp_path_factory.mktemp("audit")
    log = place / "audit.log"
    options = ["--audit-policy-file", str(audit_events.POLICY), "--audit-log-path", str(log)]
    expected = audit_events.recorded()
    cases = [(scenario, expected[scenario["name"]]) for scenario in audit_events.scenarios()]
    with started_apiserver(place, options, stores.options(place)) as apiserver:
        server = audit_events.Numbered(apiserver.url, apiserver.token, str(apiserver.ca))

        def check(i: int) -> tuple[int, str]:
            return audit_events.check(server, log, *cases[i])

        results = best_of_two("audit/audit", [check(i) for i in range(len(cases))], check)
    hold(request, "audit/audit", results, sum(len(steps) for _, steps in cases))
