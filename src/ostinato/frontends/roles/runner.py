"""Runs of ansible-runner, each a process of its own in a session of its own.

- The events are the JSON lines of its output. A line that is not an event is kept for the error message.
- A run that is cancelled or takes too long is killed with everything that it has started.
- A run without statistics at its end has failed: ansible-playbook did not start, or was killed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from ostinato.api.object import KindInfo
from ostinato.frontends.roles.events import AnsibleEvent, Outcome, parse_event
from ostinato.frontends.roles.inputs import RunnerDirectory
from ostinato.frontends.roles.options import Content
from ostinato.frontends.roles.proxy.proxy import Proxy
from ostinato.world import World

_MAX_LINE: Final = 64 * 1024 * 1024  # bytes of an event
_KEPT_LINES: Final = 20  # of other output, for messages
_UMASK: Final = 0o077
_MARKER: Final = "OSTINATO_RUN"  # variable with the id of a run, in all its processes
_GRACE: Final = 5.0  # seconds for a run to end after SIGTERM

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
        process = await asyncio.create_subprocess_exec(
            *command_of(job, home),
            cwd=home,
            env={**_environment(), _MARKER: job.ident},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            limit=_MAX_LINE,
            start_new_session=True,
            umask=_UMASK,
        )
        try:
            if job.timeout:
                async with self._world.clock.timeout(job.timeout):
                    code = await _follow(process, outcome, rest, listener)
            else:
                code = await _follow(process, outcome, rest, listener)
        except TimeoutError:
            outcome.counts = None
            outcome.problem = f"the run was killed after {job.timeout:g} s"
            return outcome
        finally:
            await self._end(process, job.ident)
        if outcome.counts is None and not outcome.problem:
            said = f": {' / '.join(rest)}" if rest else ""
            outcome.problem = f"ansible-runner exited with {code} and without statistics{said}"
        return outcome

    async def _end(self, process: asyncio.subprocess.Process, ident: str) -> None:
        """Stop what is left of a run. ansible-runner ends its playbook on SIGTERM, but not what a task has started."""
        if process.returncode is not None:
            return
        _signal(process, signal.SIGTERM)
        try:
            async with self._world.clock.timeout(_GRACE):
                await process.wait()
        except TimeoutError:
            _signal(process, signal.SIGKILL)
            await process.wait()
        except asyncio.CancelledError:  # an immediate stop
            _signal(process, signal.SIGKILL)
            await process.wait()
            raise
        finally:
            _kill_marked(ident)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _kill_marked(ident: str) -> None:
    """Kill the processes of a run that have left its session: they have its marker in their environment."""
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
    return [sys.executable, "-m", "ansible_runner", "run", str(home), *play, *options]


def _environment() -> dict[str, str]:
    """Return the environment of this process, with the programs beside the interpreter in the path."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}", "PYTHONUNBUFFERED": "1"}


async def _follow(
    process: asyncio.subprocess.Process, outcome: Outcome, rest: deque[str], listener: EventListener
) -> int:
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # longer than the limit; it has been dropped
            rest.append("an event of more than 64 MiB was dropped")
            continue
        if not line:
            return await process.wait()
        event = parse_event(line)
        if event is None:
            if text := line.decode(errors="replace").strip():
                rest.append(text[:500])
            continue
        outcome.add(event)
        listener(event)
