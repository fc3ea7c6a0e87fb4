"""IP families of Services: created, changed and refused as by kube-apiserver, with one and with two ranges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import started_apiserver
from tests.contract.conversations import Server
from tests.contract.dual_stack.cases import PANIC, RANGES, observe

# The IPAddress of an address that a changed Service names: kube-apiserver leaves it to its repair, three minutes later.
LATER = ("IPAddresses of a Service", 6)
RECORDED = Path(__file__).parent / "dual_stack" / "recorded.json"


@pytest.mark.parametrize("kind", RANGES)
def test_services_have_the_ip_families_that_they_have_with_kube_apiserver(kind: str, tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text())[kind]
    with started_apiserver(tmp_path, ["--service-cluster-ip-range", RANGES[kind]]) as apiserver:
        seen = observe(Server(apiserver.url, apiserver.token, str(apiserver.ca)), kind)
        log = apiserver.log.read_text()
    assert seen.keys() == recorded.keys()
    different = [
        f"{name}\n  recorded {json.dumps(then)}\n  observed {json.dumps(now)}"
        for name, answers in recorded.items()
        for step, (then, now) in enumerate(zip(answers, seen[name], strict=True))
        if then != now and then != PANIC and (name, step) != LATER
    ]
    assert different == [], f"{len(different)} of {len(recorded)} cases:\n" + "\n".join(different)
    assert "Traceback" not in log
