"""Modules that a server does not need at start are not loaded."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import asyncio, json, sys
from tests.stage.server import started_server
from ostinato.server.core import Server
from ostinato.server.request import Request, User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

world = Simulation(1)

def loaded():
    prefix = "ostinato.server.resources."
    return sorted(name.removeprefix(prefix) for name in sys.modules if name.startswith(prefix)) + [
        name for name in ("ostinato.server.controllers.custom_resources", "cryptography", "yaml") if name in sys.modules
    ]

async def main():
    async with started_server(world) as server:
        server.authenticator.add("t", User("admin", groups=("system:masters",)))
        before = loaded()
        async def ask(method, path, body=b"", accept="application/json"):
            headers = {"authorization": "Bearer t", "accept": accept}
            return (await server.handle(Request(method, path, "", headers, body=body))).status
        apps = "/apis/apps/v1/namespaces/default/deployments"
        codes = [await ask("GET", apps)]
        between = loaded()
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        codes += [await ask("POST", apps, b"{}"), await ask("GET", "/api/v1/namespaces", accept=table)]
        print(json.dumps([before, between, loaded(), codes]))

world.run(main())
"""


def test_the_rules_of_a_group_are_loaded_with_its_first_write() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, between, after, codes = json.loads(done.stdout)
    assert codes == [200, 422, 200]
    assert not {
        "apps",
        "batch",
        "autoscaling",
        "apiextensions",
        "tables.workloads",
        "ostinato.server.controllers.custom_resources",
    } & {*before}
    assert not {"cryptography", "yaml"} & {*before}
    assert "apps" not in between
    assert {"apps", "core.table"} <= {*after}
    assert "batch" not in after
