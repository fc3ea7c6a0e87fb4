"""Runs of ansible-runner, each a process of its own in a session of its own.

- The events are the JSON lines of its output. A line that is not an event is kept for the error message.
- A run that is cancelled or takes too long is killed with everything that it has started.
- A run without statistics at its end has failed: ansible-playbook did not start, or was killed.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from ostinato.api.object import KindInfo
from ostinato.frontends.kernel.transport.process import Command, run_process
from ostinato.frontends.roles.events import AnsibleEvent, Outcome, parse_event
from ostinato.frontends.roles.inputs import RunnerDirectory
from ostinato.frontends.roles.options import Content
from ostinato.frontends.roles.proxy.proxy import Proxy
from ostinato.world import World

_MAX_EVENT: Final = 64 * 1024 * 1024  # characters
_MAX_OUTPUT: Final = 1024 * 1024 * 1024  # bytes of all events
_KEPT_LINES: Final = 20  # of other output, for messages
_MAIN: Final = (  # nothing that it writes is readable by others
    "import os, runpy; os.umask(0o077); runpy.run_module('ansible_runner', run_name='__main__', alter_sys=True)"
)
_MARKER: Final = "OSTINATO_RUN"  # variable with the id of a run, in all its processes

Json = dict[str, Any]
EventListener = Callable[[AnsibleEvent], None]


class AnsibleMissing(RuntimeError):  # noqa: N818
    """ansible-runner or ansible-core is not installed."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what to play, for which object, with which variables."""

    content: Content
    owner: Json
    kind: KindInfo  # of the owner
    variables: Json
    ident: str
    verbosity: int = 0
    max_artifacts: int = 20
    timeout: float = 0.0


class Runner(Protocol):
    """Plays roles and playbooks."""

    async def play(self, job: Job, listener: EventListener) -> Outcome:
        """Play to the end, and call the listener for each event."""


class AnsibleRunner:
    """Runs the program of the package ansible-runner."""

    def __init__(self, world: World, proxy: Proxy, directory: RunnerDirectory) -> None:
        self._world = world
        self._proxy = proxy
        self._directory = directory

    @staticmethod
    def check() -> None:
        """Raise `AnsibleMissing` if the packages are not installed."""
        missing = [name for name in ("ansible_runner", "ansible") if importlib.util.find_spec(name) is None]
        if missing:
            raise AnsibleMissing(
                f"roles need ansible-runner and ansible-core; run pip install 'ostinato[ansible]' (no {missing[0]})"
            )

    async def play(self, job: Job, listener: EventListener) -> Outcome:
        session = self._proxy.sessions.open(job.owner, job.kind)
        home = None
        try:
            kubeconfig = session.kubeconfig(self._proxy.url)
            home = await self._world.executor.run(self._directory.prepare, job.owner, job.variables, kubeconfig)
            return await self._run(job, home, listener)
        finally:
            self._proxy.sessions.close(session)
            if home is not None:
                self._directory.forget(home, job.ident)

    async def _run(self, job: Job, home: Path, listener: EventListener) -> Outcome:
        outcome = Outcome()
        rest: deque[str] = deque(maxlen=_KEPT_LINES)

        def line(_: str, text: str) -> None:
            event = parse_event(text.encode())
            if event is not None:
                outcome.add(event)
                listener(event)
            elif text.strip():
                rest.append(text.strip()[:500])

        command = Command(
            command_of(job, home),
            directory=str(home),
            environment={**_environment(), _MARKER: job.ident},
            timeout=job.timeout,
            longest_line=_MAX_EVENT,
            most_output=_MAX_OUTPUT,
        )
        has_ended = False
        try:
            result = await run_process(command, self._world, line)
            has_ended = not result.timed_out
        finally:
            if not has_ended:
                _kill_marked(job.ident)
        if result.timed_out:
            outcome.counts = None
            outcome.problem = f"the run was killed after {job.timeout:g} s"
        elif outcome.counts is None and not outcome.problem:
            said = f": {' / '.join(rest)}" if rest else ""
            outcome.problem = f"ansible-runner exited with {result.exit_code} and without statistics{said}"
        return outcome


def _kill_marked(ident: str) -> None:
    """Kill the processes of a run outside of its session, such as ansible-playbook: they have its marker."""
    marker = f"{_MARKER}={ident}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if marker in (place / "environ").read_bytes().split(b"\0"):
                os.kill(int(place.name), signal.SIGKILL)


def command_of(job: Job, home: Path) -> Sequence[str]:
    """Return the command line. Names are arguments of their own; no shell sees them."""
    content = job.content
    play = (
        ["--role", content.path.name, "--roles-path", str(content.path.parent), "--hosts", "localhost"]
        if content.is_role
        else ["-p", str(content.path)]
    )
    if content.is_role and os.environ.get("ANSIBLE_GATHERING") == "explicit":
        play.append("--role-skip-facts")  # ansible-runner does not look at the variable
    options = ["--rotate-artifacts", str(job.max_artifacts), "-i", job.ident, "--json"]
    if job.verbosity:
        options.append(f"-{'v' * job.verbosity}")
    return [sys.executable, "-c", _MAIN, "run", str(home), *play, *options]


def _environment() -> dict[str, str]:
    """Return the environment of this process, with the programs beside the interpreter in the path."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}", "PYTHONUNBUFFERED": "1"}
