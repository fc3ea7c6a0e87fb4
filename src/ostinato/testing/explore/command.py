"""Operators of any language: a command that is run against a server over HTTP, in real time, with kills.

    ostinato explore crds.yaml --scenario scenario.yaml --command './manager --kubeconfig {kubeconfig}'

- The server is in this process; all requests over HTTP are the operator's. Faults and oracles are those of simulated
  worlds, as far as they do not need to control the inside of the process: clocks, pauses and elections.
- A process that ends by itself is started again, as Kubernetes would, and is a problem.
- A world takes seconds. Runs are not exact: the process has its own schedule.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ostinato.certificates.certificate import ServerTls
from ostinato.certificates.generate import generate_certificate
from ostinato.server.faults import FaultyServer
from ostinato.server.http import HttpServer
from ostinato.server.request import Answer, Peer, Request, Response, text_response
from ostinato.testing.explore.faults.catalogue import KINDS
from ostinato.testing.explore.operators import Process
from ostinato.testing.explore.world.director import ReplicaDirector
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.replica import Replica
from ostinato.testing.explore.world.run import Run
from ostinato.testing.explore.world.settings import Timing
from ostinato.world import World

TIMING: Final = Timing(restart=0.5, calm=1.5, within=25.0, quiet=2.0, patience=2.0)
FAULTS: Final = tuple(
    name
    for name, kind in KINDS.items()
    if not kind.needs_election and name not in ("clock-forward", "clock-back", "midnight", "external-fails")
)
_START: Final = 60.0  # seconds
_POLL: Final = 0.05
_SHOWN: Final = 400  # bytes of the errors of a process
_ADMINISTRATOR: Final = Peer("operator", ("system:masters",))
_KUBECONFIG: Final = """apiVersion: v1
kind: Config
current-context: explored
clusters:
- name: explored
  cluster: {{server: "https://127.0.0.1:{port}", certificate-authority-data: "{authority}"}}
users: [{{name: operator, user: {{token: "{token}"}}}}]
contexts: [{{name: explored, context: {{cluster: explored, user: operator, namespace: default}}}}]
"""


class CommandRun(Run):
    """A world whose operator is a process of its own."""

    def __init__(self, command: str, *args: Any) -> None:  # Any: the arguments of Run
        super().__init__(*args)
        self._command = command
        self._token = self.world.ids.token(16).hex()
        self._directory = TemporaryDirectory(prefix="ostinato-explore-")
        self._http: HttpServer | None = None

    def _make_world(self) -> World:
        return World.real()

    def _execute(self, outcome: Outcome) -> None:
        try:
            asyncio.run(self._served(outcome))
        finally:
            self._directory.cleanup()
            self.world.executor.close()

    async def _served(self, outcome: Outcome) -> None:
        core = _Guarded(self, self._token)
        certificate = generate_certificate(self.world, ["127.0.0.1"], timedelta(days=1))
        tls = ServerTls()
        tls.use(certificate)
        http = self._http = HttpServer(core, tls.context)
        await http.start("127.0.0.1", 0)
        authority = b64encode(certificate.authorities).decode()
        text = _KUBECONFIG.format(port=http.port, token=self._token, authority=authority)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(text)
        try:
            await self._main(outcome)
        finally:
            await http.stop()

    @property
    def kubeconfig(self) -> Path:
        return Path(self._directory.name) / "kubeconfig"

    async def started(self) -> None:
        """Wait for the first request to a resource."""
        end = self.now + _START
        while not self._visits and self.now < end:
            await self.clock.sleep(_POLL)

    def _make_replica(self, name: str, process: Process) -> Replica:
        replica = _Process(self, name, process, self._command)
        self.stage.current = replica
        return replica

    @property
    def stage(self) -> _Guarded:
        assert self._http is not None
        core = self._http.core
        assert isinstance(core, _Guarded)
        return core


class _Guarded:
    """The server behind HTTP: requests with the token of the kubeconfig are the operator's, others are refused."""

    def __init__(self, run: CommandRun, token: str) -> None:
        self.world = run.world
        self.current: Replica | None = None
        self._run = run
        self._header = f"Bearer {token}"

    def handle_now(self, request: Request) -> Response | None:  # noqa: ARG002 - see FaultyServer
        return None

    async def handle(self, request: Request) -> Answer:
        replica = self.current
        if request.headers.get("authorization") != self._header or replica is None:
            return text_response(401, "Unauthorized\n")
        request.peer = _ADMINISTRATOR
        request.headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        director = ReplicaDirector(self._run, replica, None)
        return await FaultyServer(lambda: self._run.server, director).handle(request)


class _Process(Replica):
    """One process of the command."""

    def __init__(self, run: CommandRun, name: str, process: Process, command: str) -> None:
        super().__init__(run, name, process, run.world)
        self._explored = run
        self._text = command
        self._process: asyncio.subprocess.Process | None = None

    def kill(self) -> None:
        self.dead = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def jump(self, seconds: float) -> None:
        """Not possible in another process."""

    async def _serve(self, externals: Mapping[str, Any]) -> None:  # noqa: ARG002 - they are not in this process
        run = self._explored
        words = shlex.split(self._text.replace("{kubeconfig}", shlex.quote(str(run.kubeconfig))))
        environment = {**os.environ, "KUBECONFIG": str(run.kubeconfig)}
        quiet = asyncio.subprocess.DEVNULL
        log = run.kubeconfig.with_name(f"{self.name}.log")
        with log.open("wb") as errors:
            process = self._process = await asyncio.create_subprocess_exec(
                *words, env=environment, stdin=quiet, stdout=quiet, stderr=errors
            )
        if self.dead:
            process.kill()
        code = await process.wait()
        if not self.dead:
            last = log.read_bytes()[-_SHOWN:].decode(errors="replace").strip()
            run.object_to(Problem("errors", f"the process ended by itself with exit code {code}: {last}"))
            run.crash(self)
