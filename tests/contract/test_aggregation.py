"""APIServices and extension API servers: what a client and the extension server observe, beside kube-apiserver."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from pathlib import Path

import pytest

from ostinato.plane.node.registration.machine_info import address
from tests.conftest import ADMIN_TOKEN, started_apiserver
from tests.contract.aggregation.cases import observe
from tests.stage.https_client import ApiClient

RECORDED = Path(__file__).parent / "aggregation" / "recorded.json"


def test_aggregation_is_observed_as_with_kube_apiserver(tmp_path: Path) -> None:
    host = address()
    if ipaddress.ip_address(host).is_loopback:
        pytest.skip("endpoints need an address of this machine other than loopback")
    with started_apiserver(tmp_path) as server:
        seen = asyncio.run(observe(ApiClient(server.url, ADMIN_TOKEN), host))
        log = server.log.read_text()
    recorded = json.loads(RECORDED.read_text())
    assert seen.keys() == recorded.keys()
    assert [name for name in recorded if json.loads(json.dumps(seen[name])) != recorded[name]] == []
    assert "Traceback" not in log
