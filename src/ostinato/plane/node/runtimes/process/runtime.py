"""`ProcessRuntime`: starts, recovers and removes containers through the shim."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.node.private_files import close_to_others, make_directory, write_file
from ostinato.plane.node.runtimes import (
    EventRecorder,
    ExecError,
    Exit,
    Launch,
    Mount,
    OnPodChange,
    ProcessOptions,
    SandboxError,
    Session,
    StartError,
    Usage,
)
from ostinato.plane.node.runtimes.pod_names import hostname_of
from ostinato.plane.node.runtimes.process import isolation, sandbox, sessions, shared_memory
from ostinato.plane.node.runtimes.process.container import (
    MARKER,
    ProcessContainer,
    State,
    finalize_lost,
    has_keeper,
    read_exit,
    read_state,
)
from ostinato.plane.node.runtimes.process.images import NodeImages
from ostinato.plane.node.runtimes.process.isolation import Sharing
from ostinato.plane.node.runtimes.process.launcher import LauncherError, ShimLauncher
from ostinato.plane.node.runtimes.process.limits import limits_of
from ostinato.plane.node.runtimes.process.mount_links import MountLinks
from ostinato.plane.node.runtimes.process.networks import PodNetworks
from ostinato.plane.node.runtimes.process.program import HOME, Program, program_of
from ostinato.plane.node.runtimes.process.security import security_of, user_of
from ostinato.plane.node.runtimes.process.template import LIVE_DIRECTORIES, Templates
from ostinato.plane.node.volumes.mounts import can_mount, unmount
from ostinato.streams import ports
from ostinato.world import World

LOG_BYTES: Final = 10 << 20
LOG_FILES: Final = 5
_STATE_TIMEOUT: Final = 5.0  # seconds for a started keeper to write its state
_FIX: Final = "fix that, use the runtime containerd, or start the node with --insecure-processes"


class ProcessRuntime:
    version = "process://1"
    is_real = True

    def __init__(
        self,
        world: World,
        directory: Path,
        addresses: Sequence[str],
        options: ProcessOptions = ProcessOptions(),  # noqa: B008
    ) -> None:
        """`directory`: keeps the runtime's state. `addresses`: of the host, also of Pods without their own network."""
        self._world = world
        self._directory = directory
        self._changed: OnPodChange = lambda _: None
        make_directory(directory / "pods")
        for each in (directory, *directory.glob("pods/*"), *directory.glob("pods/*/*")):
            close_to_others(each)  # created by earlier releases with wider modes
        hidden = (*options.hidden, directory)
        self._options = msgspec.structs.replace(options, hidden=hidden)
        self._unsupported_reason = (
            isolation.unsupported_reason()
        )  # why containers cannot be isolated; empty if they can
        self.networks = PodNetworks(world, directory, addresses, options, self._unsupported_reason)
        self._visible = isolation.visible_paths(options)
        self._templates = Templates(directory / "templates", self._visible)
        self._templates.prune(_used_templates(directory))
        self._domain = "" if options.dns is None else options.dns.domain
        self._images = NodeImages(options.images, self._unsupported_reason)
        self._mount_links = MountLinks(directory)
        self._launcher = ShimLauncher(world.clock, directory / "shim.log")
        self._prepare_lock = asyncio.Lock()  # serializes the creation of templates and sandboxes
        self._containers: dict[tuple[str, str], ProcessContainer] = {}  # latest attempt, by Pod uid and container name

    def listen(self, changed: OnPodChange) -> None:
        self._changed = changed

    async def addresses(self, pod: Pod, handler: str = "") -> Sequence[str]:
        if handler:
            raise SandboxError(f'Failed to create pod sandbox: no runtime for "{handler}" is configured')
        return await self.networks.addresses(pod)

    async def connect(self, pod: Pod, port: int) -> ports.Link:
        return await self.networks.connect(pod, port)

    # Starting

    async def pull(self, pod: Pod, container: Container, record_event: EventRecorder) -> None:  # noqa: ARG002
        """Nothing is pulled. A container whose image was not loaded runs a program of the machine."""
        text = f'Container image "{container.image or ""}" already present on machine and can be accessed by the pod'
        record_event("Normal", "Pulled", text)

    async def start(self, launch: Launch) -> ProcessContainer:
        pod, container = launch.pod, launch.container
        launch = self._images.with_volumes(launch)
        home = HOME if not self._unsupported_reason else self._work_directory(launch)
        program = program_of(launch, self._images.of(container), hostname_of(pod, self._domain), home)
        isolated = not self._unsupported_reason
        if not isolated and os.geteuid() == 0 and not self._options.insecure:
            raise StartError(
                "CreateContainerError", f"containers cannot be isolated: {self._unsupported_reason}; {_FIX}"
            )
        try:
            await self.networks.addresses(pod)  # creates the Pod's network, or adopts it
        except SandboxError as error:
            raise StartError("CreatePodSandboxError", str(error)) from None
        own_network = self.networks.has_own(pod)
        insecure = self._options.insecure
        security = security_of(
            pod, container, program.runs_as, isolated=isolated, insecure=insecure, own_network=own_network
        )
        sharing = await self._sharing(pod, container) if isolated else None
        content = {"security": msgspec.to_builtins(security), "sharing": sharing, "program": program}
        return await self._start(launch, content)

    async def _start(self, launch: Launch, settings: Mapping[str, Any]) -> ProcessContainer:
        pod, container = launch.pod, launch.container
        directory = self._directory_of(pod, container.name, launch.attempt)
        if directory.exists():  # an earlier start timed out
            recovered = await self._recover_container(pod, container.name, launch.attempt)
            if recovered is not None:
                return recovered
        if launch.attempt:
            await self._remove_root(self._directory_of(pod, container.name, launch.attempt - 1))
        make_directory(directory)
        try:
            self._write(launch, directory, settings)
        except StartError:
            self._mount_links.remove(directory)
            shutil.rmtree(directory)
            raise
        try:
            reply = await self._launcher.launch(directory)
        except LauncherError as error:
            if finalize_lost(directory, self._world.clock) is None:
                raise StartError("CreateContainerError", str(error)) from None  # the keeper may still start
            reply = {"error": str(error)}
        state = State(0, 0, self._world.clock.wall()) if "error" in reply else msgspec.convert(reply, State)
        started = self._container(pod, container, directory, state)
        if "error" in reply:
            started.exit = read_exit(directory) or Exit(
                code=128, at=Time.of(self._world.clock.now()), reason="StartError", message=str(reply["error"])
            )
            self._mount_links.remove(directory)
        else:
            self._watch(pod, container.name, started)
        return started

    def _container(self, pod: Pod, container: Container, directory: Path, state: State) -> ProcessContainer:
        container_id = _id(pod, container.name, int(directory.name))
        launched = _launched(directory)
        image, user = launched.get("image") or container.image or "", user_of(launched["security"])
        return ProcessContainer(directory, container_id, image, state, self._world.clock, user)

    async def _sharing(self, pod: Pod, container: Container) -> Sharing:
        """Return the namespaces that a container shares; start the Pod's sandbox if needed."""
        spec = pod.spec
        users = self._user_range(pod) if spec.host_users is False else None
        targets = {each.name: each.target_container_name for each in spec.ephemeral_containers}
        processes = "host" if spec.host_pid else "own"
        home = None
        async with self._prepare_lock:
            if not self._templates.is_built:
                await self._world.executor.run(self._templates.build)
            if sandbox.is_needed(pod):
                home = await self._sandbox(pod, users)
        if spec.share_process_namespace and home is not None:
            processes = str(home)
        elif processes == "own" and (target := targets.get(container.name)):
            processes = str(self._target(pod, target))
        return Sharing(
            processes=processes,
            pod=None if home is None else str(home),
            users=users,
            network=self.networks.plan(pod),
            files=self.networks.files(pod),
        )

    def _target(self, pod: Pod, name: str) -> Path:
        """Return the directory of the target container of an ephemeral container."""
        try:
            return self._running(pod, name).directory
        except ExecError as error:
            raise StartError("CreateContainerError", f"targetContainerName: {error}") from None

    async def _sandbox(self, pod: Pod, users: int | None) -> Path:
        """Return the directory of the Pod's running sandbox, which is started if needed."""
        running = self._containers.get((pod.metadata.uid, sandbox.NAME))
        if running is None or running.exit is not None:
            known = _attempts(self._directory_of(pod, sandbox.NAME))
            running = await self._recover_container(pod, sandbox.NAME, known[-1]) if known else None
            if running is None or running.exit is not None:
                launch = sandbox.launch_of(pod, known[-1] + 1 if known else 0)
                sharing = Sharing(users=users, network=self.networks.plan(pod))
                program = sandbox.program_of(launch)
                settings = {"security": sandbox.SECURITY, "sharing": sharing, "program": program, "reaps": True}
                running = await self._start(launch, settings)
        if running.exit is not None:
            raise StartError("CreatePodSandboxError", running.exit.message)
        return running.directory

    def _user_range(self, pod: Pod) -> int:
        """Return the first id of the Pod's user id range, allocated once per Pod."""
        own = self._pod_directory(pod) / "users"
        if not own.exists():
            taken = [int(each.read_text()) for each in self._directory.glob("pods/*/users")]
            make_directory(own.parent)
            write_file(own, str(isolation.first_free_range(taken)).encode())
        return int(own.read_text())

    def _write(self, launch: Launch, directory: Path, settings: Mapping[str, Any]) -> None:
        """Write the launch request for the keeper."""
        container, sharing = launch.container, settings["sharing"]
        program: Program = settings["program"]
        mounts = list(launch.mounts)
        if launch.message is not None and container.termination_message_path:
            launch.message.touch()
            mounts.append(Mount(launch.message, container.termination_message_path))
        log = launch.log or directory / "log"
        make_directory(log.parent)
        plan: dict[str, Any] | None = None
        binds: list[tuple[str, str, str, bool]] = []
        if sharing is None:
            make_directory(Path(self._work_directory(launch)))
            self._mount_links.add(directory, mounts)
        else:
            if not launch.pod.spec.host_ipc:
                peer = shared_memory.provide(self._pod_directory(launch.pod))
                sharing = msgspec.structs.replace(sharing, memory_peer=None if peer is None else str(peer))
            for name in ("root", "layer"):
                (directory / name).mkdir()
                (directory / name).chmod(0o755)  # regardless of the umask
            plan = isolation.plan_of(launch.pod, container, self._sources(directory, program), sharing, program)
            binds = isolation.binds_of(mounts)
        limits = limits_of(container, _group_of(directory))
        content: dict[str, Any] = {
            "command": program.command,
            "environment": program.environment | {MARKER: str(directory)},
            "directory": program.directory,
            "image": None if program.image is None else program.image.id,
            "binds": binds,
            "isolation": plan,
            "security": settings["security"],
            "reaps": settings.get("reaps", False),
            "groups": limits.groups,
            "limits": limits.processes,
            "memory_events": limits.memory_events,
            "stdin": bool(container.stdin),
            "stdin_once": bool(container.stdin_once),
            "tty": bool(container.tty),
            "stop_signal": program.stop_signal,
            "log": str(log),
            "log_bytes": LOG_BYTES,
            "log_files": LOG_FILES,
        }
        write_file(directory / "launch.json", msgspec.json.encode(content))

    def _sources(self, directory: Path, program: Program) -> isolation.RootSources:
        """The root is that of the image, or the template and the machine's programs."""
        if program.image is not None:
            return isolation.RootSources(directory, program.image.root, domain=self._domain)
        visible = [*self._visible, *LIVE_DIRECTORIES]
        return isolation.RootSources(directory, self._templates.current, visible, self._options.hidden, self._domain)

    def _work_directory(self, launch: Launch) -> str:
        """Return the home directory of a container that is not isolated."""
        return str(self._directory_of(launch.pod, launch.container.name) / "work")

    async def _remove_root(self, directory: Path) -> None:
        """Remove the root file system of an exited container."""
        await self._world.executor.run(_remove_root, directory)

    def _watch(self, pod: Pod, name: str, container: ProcessContainer) -> None:
        self._containers[pod.metadata.uid, name] = container

        def changed() -> None:
            self._mount_links.remove(container.directory)
            self._changed(pod)

        container.watch(changed)

    async def resize(self, pod: Pod, container: Container, attempt: int) -> None:
        """Apply new limits: control groups change immediately, rlimits only for the next attempt."""
        limits_of(container, _group_of(self._directory_of(pod, container.name, attempt)))

    # Recovery and removal

    async def recover(self, pod: Pod) -> Mapping[str, ProcessContainer]:
        found = {}
        for home in sorted((self._pod_directory(pod) / "containers").glob("*")):
            attempts = _attempts(home)
            if not attempts or home.name == sandbox.NAME:
                continue
            for earlier in attempts[:-1]:  # it ended before the next attempt, or its keeper was lost
                finalize_lost(home / str(earlier), self._world.clock)
            container = await self._recover_container(pod, home.name, attempts[-1])
            if container is not None:
                found[home.name] = container
        return found

    async def _recover_container(self, pod: Pod, name: str, attempt: int) -> ProcessContainer | None:
        directory, clock = self._directory_of(pod, name, attempt), self._world.clock
        spec = next((each for each in _containers(pod) if each.name == name), Container(name=name))
        state = await self._state(directory)
        ended = read_exit(directory) or finalize_lost(directory, clock)
        if ended is not None and state is None and ended.reason != "StartError":
            self._mount_links.remove(directory)
            shutil.rmtree(directory, ignore_errors=True)  # never started
            return None
        if state is None:
            state = State(0, 0, ended.at.timestamp() if ended is not None else clock.wall())
        container = self._container(pod, spec, directory, state)
        if ended is not None:
            container.exit = ended
            self._mount_links.remove(directory)
        else:
            self._watch(pod, name, container)
        return container

    async def pod_uids(self) -> list[str]:
        """Return the uids of all Pods with state on this node."""
        return [each.name for each in (self._directory / "pods").iterdir()]

    async def remove(self, uid: str) -> None:
        """Kill the containers of a Pod and remove its state."""
        for directory in sorted((self._directory / "pods" / uid / "containers").glob("*/*")):
            if directory.name.isdigit():
                await self._kill_container(directory)
        await self.networks.remove(uid)
        self._remove_files(uid)

    async def discard(self, pod: Pod) -> None:
        await self.remove(pod.metadata.uid)

    def release(self) -> None:
        """Unmount what only a running agent needs; containers keep running."""
        shared_memory.release(self._directory / "pods")

    async def _kill_container(self, directory: Path) -> None:
        state = await self._state(directory)
        if state is not None and read_exit(directory) is None and has_keeper(directory):
            container = ProcessContainer(directory, "", "", state, self._world.clock)
            container.watch(lambda: None)
            await container.stop(0.0)
        finalize_lost(directory, self._world.clock)

    async def _state(self, directory: Path) -> State | None:
        """Wait for the keeper's state; None if there is no keeper or the start failed."""
        clock = self._world.clock
        until = clock.monotonic() + _STATE_TIMEOUT
        while (state := read_state(directory)) is None and clock.monotonic() < until:
            if read_exit(directory) is not None or not has_keeper(directory):
                break
            await clock.sleep(0.02)
        return state

    def _remove_files(self, uid: str) -> None:
        home = self._directory / "pods" / uid
        for directory in home.glob("containers/*/*"):
            self._mount_links.remove(directory)
            _remove_groups(directory)
        if can_mount():
            unmount(home / "shm")
        for name in ("containers", "shm"):
            shutil.rmtree(home / name, ignore_errors=True)
        (home / "users").unlink(missing_ok=True)
        with suppress(OSError):
            home.rmdir()  # not empty while the Pod's volumes exist
        for key in [each for each in self._containers if each[0] == uid]:
            del self._containers[key]

    # Sessions

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        keeper = self._keeper_of(pod, container)
        return await sessions.start_exec(keeper, command, self._world.clock, stdin=stdin, tty=tty)

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:  # noqa: ARG002
        return await sessions.start_attach(self._keeper_of(pod, container))

    def _keeper_of(self, pod: Pod, container: str) -> sessions.KeeperRef:
        running = self._running(pod, container)
        return sessions.KeeperRef(running.directory, running.state.shim)

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        return {
            name: each.usage()
            for (uid, name), each in self._containers.items()
            if uid == pod.metadata.uid and each.exit is None and name != sandbox.NAME
        }

    def _running(self, pod: Pod, container: str) -> ProcessContainer:
        running = self._containers.get((pod.metadata.uid, container))
        if running is None or running.exit is not None:
            raise ExecError(f'container not found ("{container}")')
        return running

    def _pod_directory(self, pod: Pod) -> Path:
        return self._directory / "pods" / pod.metadata.uid

    def _directory_of(self, pod: Pod, container: str, attempt: int | None = None) -> Path:
        home = self._pod_directory(pod) / "containers" / container
        return home if attempt is None else home / str(attempt)


def _id(pod: Pod, container: str, attempt: int) -> str:
    return hashlib.sha256(f"{pod.metadata.uid}/{container}/{attempt}".encode()).hexdigest()


def _group_of(directory: Path) -> str:
    """Return the name of a container's control groups, unique across the nodes of this machine."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()


def _launched(directory: Path) -> dict[str, Any]:
    """Return the launch request of a container; empty settings if it is unreadable."""
    with suppress(OSError, msgspec.DecodeError):
        found: dict[str, Any] = msgspec.json.decode((directory / "launch.json").read_bytes(), type=dict[str, Any])
        return found
    return {"security": {"user": None, "group": None, "groups": None}, "groups": []}


def _remove_groups(directory: Path) -> None:
    """Remove control groups that a killed keeper left behind."""
    for group in _launched(directory).get("groups", ()):
        with suppress(OSError):
            os.rmdir(group)


def _remove_root(directory: Path) -> None:
    for name in ("root", "layer"):
        shutil.rmtree(directory / name, ignore_errors=True)


def _used_templates(directory: Path) -> set[str]:
    """Return the templates of containers that may be running."""
    used = set()
    for each in directory.glob("pods/*/containers/*/*/launch.json"):
        with suppress(OSError, msgspec.DecodeError, KeyError, TypeError):
            used.add(str(msgspec.json.decode(each.read_bytes())["isolation"]["template"]))
    return used


def _attempts(home: Path) -> list[int]:
    """Return the attempts of a container in order."""
    return sorted(int(each.name) for each in home.iterdir() if each.name.isdigit()) if home.is_dir() else []


def _containers(pod: Pod) -> list[Any]:
    return [*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers]
