"""Runtimes: what runs the containers of a node, behind one interface.

An agent says what is to run, and is told when something has changed. A runtime keeps no opinions: restarts, probes,
hooks, order, variables, volumes and status are the agent's.

Containers write to log files in the format of the CRI (`<time> stdout F <line>`), at the place that the agent names, so
that logs need no runtime to be read. A log that grows is rotated: the file is renamed to `0.log.1` and begun anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, ContainerUser, Pod
from ostinato.plane.network.pod_network import PodNetwork, PodNetworkSettings

OnPodChange = Callable[[Pod], None]
"""Called when something has happened to a container of a Pod."""


EventRecorder = Callable[[str, str, str], None]
"""`tell(type, reason, message)` makes an event about a Pod."""


class ProcessOptions(msgspec.Struct, frozen=True):
    """Of a node whose containers are processes.

    - `exposed`: directories of this machine that containers see, read-only, besides programs and libraries.
    - `hidden`: directories that none sees, even where they are inside of exposed ones.
    - `insecure`: whether Pods run although what they ask for cannot be applied.
    - `network`: the networks of Pods. Default to one of its own for each Pod, where the kernel permits that.
    - `on_network`: called with the node's Pod network once that exists.
    """

    exposed: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    insecure: bool = False
    network: PodNetworkSettings = PodNetworkSettings()
    on_network: Callable[[PodNetwork], None] | None = None


def hiding(options: ProcessOptions, state: Path) -> ProcessOptions:
    """The same, with the directory in which the node, or its server, keeps what is its own."""
    return msgspec.structs.replace(options, hidden=[*options.hidden, state])


class Mount(msgspec.Struct, frozen=True):
    """A file or directory of this machine, as a container is to see it.

    - `source`: the volume, or a file of the node's own.
    - `target`: an absolute path.
    - `sub_path`: the part of the volume to mount. A container may exchange it for a link at any time: never join it
      with `source`, but open it with `volumes.subpaths.open_subpath` and bind the descriptor.
    """

    source: Path
    target: str
    read_only: bool = False
    sub_path: str = ""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A container that is to be started.

    - `attempt`: 0 for the first time.
    - `command`, `arguments`, `environment`: with all references replaced.
    - `log`: the file to write to; None where nobody wants to read.
    - `message`: the file that is to be seen at the container's `terminationMessagePath`; None if there is none.
    """

    pod: Pod
    container: Container
    attempt: int
    command: Sequence[str] = ()
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    mounts: Sequence[Mount] = ()
    log: Path | None = None
    message: Path | None = None


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a container ended."""

    code: int
    at: Time
    reason: str = ""  # defaults to Completed, or Error
    message: str = ""


class UnusableRuntime(Exception):  # noqa: N818 - as `UnusableStore`
    """A runtime cannot be had on this machine; the message says why, and what to do."""


class StartError(Exception):
    """A container cannot be started now: `reason` and message are shown as what it waits for.

    `again`: the seconds after which to try again. Defaults to what the agent thinks right.
    """

    def __init__(self, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class PullError(StartError):
    """A container's image is not there."""


class SandboxError(Exception):
    """A Pod cannot get what its containers run in; the message says why."""


class ExecError(Exception):
    """A command cannot be run in a container, or the container has nothing to attach to; the message says why."""


class Usage(msgspec.Struct, frozen=True):
    """What a container uses."""

    cpu: float  # seconds, since its start
    memory: int  # bytes, now


class RuntimeContainer(Protocol):
    """A container that was started. It stays the same object after its end, which `exit` tells of."""

    @property
    def id(self) -> str:
        """With the runtime's name before it: "process://…"."""

    @property
    def image(self) -> str:
        """The full name of its image; empty if the runtime knows no other than the one that was asked for."""

    @property
    def image_id(self) -> str: ...

    @property
    def attempt(self) -> int:
        """0 for the first of its name."""

    @property
    def user(self) -> ContainerUser | None:
        """Whom it was started as; None if the runtime does not know."""

    @property
    def started_at(self) -> Time: ...

    @property
    def ready(self) -> bool:
        """Whether it can do its work, as far as the runtime knows: what probes say comes on top."""

    @property
    def exit(self) -> Exit | None: ...

    async def stop(self, grace: float) -> None:
        """Ask it to end, and make it after so many seconds; returns when it has ended. May be called again."""


class Session(Protocol):
    """A command in a container, or the container itself, with its streams."""

    async def read(self) -> tuple[int, bytes] | None:
        """What it wrote next, to its stream 1 or 2; None when there is no more. With a terminal, all is stream 1."""

    async def write(self, data: bytes) -> None:
        """To its standard input. What nobody reads any more is dropped."""

    async def close_input(self) -> None: ...

    async def resize(self, width: int, height: int) -> None:
        """Of its terminal; without one, nothing happens."""

    async def wait(self) -> int:
        """Its exit code, once it has ended. Of a container that was attached to, 0 when that has ended."""

    async def close(self) -> None:
        """End the command, or leave the container alone. Harmless when called again."""


class Runtime(Protocol):
    @property
    def version(self) -> str:
        """As a node names it: "process://1"."""

    @property
    def is_real(self) -> bool:
        """Whether its containers are real: worth events, variables, volumes, probes and hooks."""

    def listen(self, changed: OnPodChange) -> None:
        """Whom to tell of changes. Called once, before anything is started."""

    async def address(self, pod: Pod) -> str:
        """The Pod's own address; the same each time it is asked for. A `SandboxError` if it cannot have one."""

    async def pull(self, pod: Pod, container: Container, record_event: EventRecorder) -> None:
        """Have a container's image there; a `PullError` if that cannot be."""

    async def start(self, launch: Launch) -> RuntimeContainer:
        """Start a container, for the first time or again; a `StartError` if that cannot be.

        A container that ends before it runs, for its command cannot be executed, was started: its end has the reason
        `StartError`.
        """

    async def recover(self, pod: Pod) -> Mapping[str, RuntimeContainer]:
        """The containers of the Pod that an agent before this one has started, by name; the newest of each name."""

    async def discard(self, pod: Pod) -> None:
        """Let go of all that there is of the Pod, whose containers have ended. Harmless when there is nothing."""

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        """Run a command in a container that runs; an `ExecError` if it does not, or the command cannot be run."""

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:
        """Read what a container writes from now on, and write to its input; an `ExecError` if it does not run."""

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        """What each container that runs uses, by name."""
