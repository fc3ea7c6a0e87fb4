"""Container runtimes: the interface between the node agent and what runs its containers.

- The agent decides what runs; a runtime starts and stops containers and reports changes. Restarts, probes, hooks, start
  order, environment, volumes and status belong to the agent.
- Containers write log files in the CRI format (`<time> stdout F <line>`) to the path that the agent sets, so that logs
  can be read without the runtime. Large logs are rotated (`0.log.1`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, ContainerUser, Pod
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.plane.network.pod_network import PodNetwork, PodNetworkSettings
from ostinato.plane.network.policy.gate import PolicyGate

OnPodChange = Callable[[Pod], None]
"""Called with the Pod after a container of it has changed."""

EventRecorder = Callable[[str, str, str], None]
"""`record_event(type, reason, message)` emits an event about a Pod."""


IMAGES: Final = "images"  # directory of the image store in the state directory


class ProcessOptions(msgspec.Struct, frozen=True):
    """Options of the process runtime.

    - `exposed`: host directories that containers see read-only, besides programs and libraries.
    - `hidden`: host directories that containers do not see, even inside exposed ones.
    - `insecure`: run containers whose security settings cannot be applied. Defaults to rejecting them.
    - `dns`: the cluster DNS. Defaults to None: Pods use the DNS servers of the machine.
    - `network`: the networks of Pods. Default to one of its own for each Pod, where the kernel permits that.
    - `gate`: the network policies, for host ports. Defaults to None: there are none.
    - `images`: directory of the image store; None for none.
    - `on_network`: called with the node's Pod network once that exists.
    """

    exposed: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    insecure: bool = False
    dns: ClusterDns | None = None
    network: PodNetworkSettings = PodNetworkSettings()
    gate: PolicyGate | None = None
    images: Path | None = None
    on_network: Callable[[PodNetwork], None] | None = None


def with_state(options: ProcessOptions, state: Path) -> ProcessOptions:
    """Return the options with a state directory, which is hidden from containers and has the image store."""
    return msgspec.structs.replace(options, hidden=[*options.hidden, state], images=state / IMAGES)


class Mount(msgspec.Struct, frozen=True):
    """A mount of a container.

    - `source`: the volume, or a file of the node.
    - `target`: absolute path in the container.
    - `sub_path`: path inside the volume. A container can replace it with a symbolic link at any time: never join it
      with `source`, but open it with `volumes.subpaths.open_subpath` and bind the descriptor.
    - `image`: reference of the image that is mounted instead of `source`. Defaults to none.
    """

    source: Path
    target: str
    read_only: bool = False
    sub_path: str = ""
    image: str = ""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A request to start a container.

    - `attempt`: 0 for the first start.
    - `command`, `arguments`, `environment`: with references expanded.
    - `log`: log file; None to discard output.
    - `message`: file to mount at the container's `terminationMessagePath`; None for none.
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
    """The exit of a container."""

    code: int
    at: Time
    reason: str = ""  # defaults to Completed or Error, by the code
    message: str = ""


class UnusableRuntime(Exception):  # noqa: N818 - as `UnusableStore`
    """A runtime cannot be used on this machine; the message names the reason and the remedy."""


class StartError(Exception):
    """A container cannot be started; `reason` and message become its waiting state.

    `retry_after`: seconds until the next try. Defaults to the agent's.
    """

    def __init__(self, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


class PullError(StartError):
    """A container's image is not available."""


class SandboxError(Exception):
    """The sandbox of a Pod cannot be created."""


class ExecError(Exception):
    """A command cannot be run in a container, or the container cannot be attached to."""


class Usage(msgspec.Struct, frozen=True):
    """Resource usage of a container."""

    cpu: float  # CPU seconds since its start
    memory: int  # bytes


class RuntimeContainer(Protocol):
    """A container that was started; the same object represents it after its exit."""

    @property
    def id(self) -> str:
        """Id with the runtime's scheme: "process://…"."""

    @property
    def image(self) -> str:
        """Full name of its image; empty if it is the requested name."""

    @property
    def image_id(self) -> str: ...

    @property
    def attempt(self) -> int:
        """0 for the first start."""

    @property
    def user(self) -> ContainerUser | None:
        """User that it runs as; None if unknown."""

    @property
    def started_at(self) -> Time: ...

    @property
    def ready(self) -> bool:
        """Whether the runtime considers it ready; probe results are applied by the agent."""

    @property
    def exit(self) -> Exit | None: ...

    async def stop(self, grace: float) -> None:
        """Stop it, and kill it after `grace` seconds; returns after its exit. Can be called again."""


class Session(Protocol):
    """Streams of a command in a container, or of the container itself."""

    async def read(self) -> tuple[int, bytes] | None:
        """Return the next output and its stream (1 or 2); None at the end. With a TTY, all is stream 1."""

    async def write(self, data: bytes) -> None:
        """Write to its standard input; dropped if that is closed."""

    async def close_input(self) -> None: ...

    async def resize(self, width: int, height: int) -> None:
        """Resize its terminal; does nothing without a TTY."""

    async def wait(self) -> int:
        """Wait for the exit code; 0 when an attached container has ended."""

    async def close(self) -> None:
        """Kill the command, or detach from the container. Can be called again."""


class Runtime(Protocol):
    @property
    def version(self) -> str:
        """Version in the Node's status: "process://1"."""

    @property
    def is_real(self) -> bool:
        """Whether containers are real: only these have events, variables, volumes, probes and hooks."""

    def listen(self, changed: OnPodChange) -> None:
        """Set the callback for changes. Called once, before containers are started."""

    async def addresses(self, pod: Pod, handler: str = "") -> Sequence[str]:
        """Create the Pod's sandbox if needed and return its IPs, one of each family; `SandboxError` if that fails.

        `handler`: the handler of the Pod's RuntimeClass. Defaults to the runtime's own default.
        """

    async def pull(self, pod: Pod, container: Container, record_event: EventRecorder) -> None:
        """Ensure that a container's image, and those that it mounts, are available; `PullError` if one is not."""

    async def start(self, launch: Launch) -> RuntimeContainer:
        """Start or restart a container; `StartError` if that fails.

        A container whose command cannot be executed counts as started; its exit has the reason `StartError`.
        """

    async def recover(self, pod: Pod) -> Mapping[str, RuntimeContainer]:
        """Return the Pod's containers that an earlier agent has started, by name; the latest attempt of each."""

    async def discard(self, pod: Pod) -> None:
        """Remove everything of a Pod whose containers have ended. Can be called again."""

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        """Run a command in a running container; `ExecError` if that fails."""

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:
        """Attach to the streams of a running container; `ExecError` if it is not running."""

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        """Return the usage of each running container by name."""
