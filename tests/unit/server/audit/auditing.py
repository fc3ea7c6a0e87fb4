"""A server that is audited, in virtual time, and the events that it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.stage.api import Api, Json
from tests.stage.server import started_server

from ostinato.server.audit.settings import AuditLogSettings, AuditSettings
from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.world import Simulation

EVERYTHING = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"


class Scene(Api):
    def __init__(self, server: Server, log: Path) -> None:
        super().__init__(server)
        self.log = log

    def events(self) -> list[Json]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def last(self) -> Json:
        return self.events()[-1]


def audited(
    place: Path, test: Callable[[Scene], Coroutine[Any, Any, None]], policy: str = EVERYTHING, **log: Any
) -> Scene:
    """Run a test against a server with a policy; the scene, whose log is complete then."""
    simulation = Simulation(seed=1)
    policy_file, path = place / "policy.yaml", place / "audit.log"
    policy_file.write_text(policy)
    settings = AuditSettings(policy_file=policy_file, log=AuditLogSettings(**{"path": str(path), **log}))
    scenes = []

    async def main() -> None:
        async with started_server(simulation, audit=settings) as server:
            server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
            server.authenticator.add("jane", User("jane", groups=("dev",)))
            scenes.append(Scene(server, path))
            await test(scenes[0])

    simulation.run(main())
    return scenes[0]
