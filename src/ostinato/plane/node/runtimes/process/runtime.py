"""The process runtime itself; see the package."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.node.private_files import close_to_others, make_directory, write_file
from ostinato.plane.node.runtimes import (
    Changed,
    ExecError,
    Exit,
    Launch,
    Mount,
    ProcessOptions,
    Session,
    StartError,
    Tell,
    Usage,
)
from ostinato.plane.node.runtimes.process import isolation, sandbox, sessions
from ostinato.plane.node.runtimes.process.container import (
    MARK,
    ProcessContainer,
    State,
    end_of,
    give_up,
    is_kept,
    state_of,
)
from ostinato.plane.node.runtimes.process.isolation import Sharing
from ostinato.plane.node.runtimes.process.launcher import LauncherError, ShimLauncher
from ostinato.plane.node.runtimes.process.limits import limits_of
from ostinato.plane.node.runtimes.process.places import Places
from ostinato.plane.node.runtimes.process.security import security_of, user_of
from ostinato.plane.node.runtimes.process.stats import usage_of
from ostinato.plane.node.runtimes.process.template import Templates
from ostinato.world import World

LOG_BYTES: Final = 10 << 20
LOG_FILES: Final = 5
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STATE_PATIENCE: Final = 5.0  # seconds for a keeper that has begun to say so
_OPEN_TO_ALL: Final = 0o1777
_FIX: Final = "give the node what it lacks, use the runtime containerd, or start the node with --insecure-processes"


class ProcessRuntime:
    version = "process://1"
    tells = True

    def __init__(
        self,
        world: World,
        directory: Path,
        address: str,
        options: ProcessOptions = ProcessOptions(),  # noqa: B008
    ) -> None:
        """`directory`: what it keeps is kept here; `address`: of this machine, and so of all its Pods."""
        self._world = world
        self._directory = directory
        self._address = address
        self._changed: Changed = lambda _: None
        make_directory(directory / "pods")
        for each in (directory, *directory.glob("pods/*"), *directory.glob("pods/*/*")):
            close_to_others(each)  # of earlier versions
        hidden = (*options.hidden, directory)
        self._options = msgspec.structs.replace(options, hidden=hidden)
        self._obstacle = isolation.obstacle()  # why containers are not isolated
        self._visible = isolation.visible(options)
        self._templates = Templates(directory / "templates", self._visible)
        self._templates.prune(_used_templates(directory))
        self._places = Places(directory)
        self._launcher = ShimLauncher(world.clock, directory / "shim.log")
        self._preparing = asyncio.Lock()  # of templates and sandboxes, which several containers need at once
        self._containers: dict[tuple[str, str], ProcessContainer] = {}  # the newest of each, by uid and name

    def listen(self, changed: Changed) -> None:
        self._changed = changed

    async def address(self, pod: Pod) -> str:  # noqa: ARG002
        return self._address

    # Starting

    async def pull(self, pod: Pod, container: Container, tell: Tell) -> None:  # noqa: ARG002
        text = f'Container image "{container.image or ""}" already present on machine and can be accessed by the pod'
        tell("Normal", "Pulled", text)

    async def start(self, launch: Launch) -> ProcessContainer:
        pod, container = launch.pod, launch.container
        if not launch.command:
            message = "no command specified: the process runtime takes none from an image, so set `command`"
            raise StartError("CreateContainerError", message)
        isolated = not self._obstacle
        if not isolated and os.geteuid() == 0 and not self._options.insecure:
            raise StartError("CreateContainerError", f"containers cannot be isolated: {self._obstacle}; {_FIX}")
        security = security_of(pod, container, isolated=isolated, insecure=self._options.insecure)
        sharing = await self._sharing(pod, container) if isolated else None
        content = {"security": msgspec.to_builtins(security), "sharing": sharing}
        return await self._start(launch, content)

    async def _start(self, launch: Launch, settings: Mapping[str, Any]) -> ProcessContainer:
        pod, container = launch.pod, launch.container
        directory = self._directory_of(pod, container.name, launch.attempt)
        if directory.exists():  # an earlier try to start it did not come to an end in time
            recovered = await self._recovered(pod, container.name, launch.attempt)
            if recovered is not None:
                return recovered
        if launch.attempt:
            await self._remove_root(self._directory_of(pod, container.name, launch.attempt - 1))
        make_directory(directory)
        try:
            self._write(launch, directory, settings)
        except StartError:
            self._places.leave(directory)
            shutil.rmtree(directory)
            raise
        try:
            said = await self._launcher.keep(directory)
        except LauncherError as error:
            if give_up(directory, self._world.clock) is None:
                raise StartError("CreateContainerError", str(error)) from None  # its keeper may be about to begin
            said = {"error": str(error)}
        state = State(0, 0, self._world.clock.wall()) if "error" in said else msgspec.convert(said, State)
        started = self._container(pod, container, directory, state)
        if "error" in said:
            started.exit = end_of(directory) or Exit(
                code=128, at=Time.of(self._world.clock.now()), reason="StartError", message=str(said["error"])
            )
            self._places.leave(directory)
        else:
            self._follow(pod, container.name, started)
        return started

    def _container(self, pod: Pod, container: Container, directory: Path, state: State) -> ProcessContainer:
        container_id = _id(pod, container.name, int(directory.name))
        user = user_of(pod, container, isolated=not self._obstacle)
        return ProcessContainer(directory, container_id, container.image or "", state, self._world.clock, user)

    async def _sharing(self, pod: Pod, container: Container) -> Sharing:
        """What a container has in common with others. The Pod's sandbox is started where that takes one."""
        spec = pod.spec
        users = self._users(pod) if spec.host_users is False else None
        targets = {each.name: each.target_container_name for each in spec.ephemeral_containers}
        processes = "host" if spec.host_pid else "own"
        home = None
        async with self._preparing:
            if not self._templates.is_built:
                await self._world.executor.run(self._templates.build)
            if sandbox.is_needed(pod):
                home = await self._sandbox(pod, users)
        if spec.share_process_namespace and home is not None:
            processes = str(home)
        elif processes == "own" and (target := targets.get(container.name)):
            processes = str(self._target(pod, target))
        return Sharing(processes=processes, pod=None if home is None else str(home), users=users)

    def _target(self, pod: Pod, name: str) -> Path:
        """The directory of the container whose processes an ephemeral one is to see."""
        try:
            return self._running(pod, name).directory
        except ExecError as error:
            raise StartError("CreateContainerError", f"targetContainerName: {error}") from None

    async def _sandbox(self, pod: Pod, users: int | None) -> Path:
        """The directory of the Pod's sandbox, which runs."""
        running = self._containers.get((pod.metadata.uid, sandbox.NAME))
        if running is None or running.exit is not None:
            known = _attempts(self._directory_of(pod, sandbox.NAME))
            running = await self._recovered(pod, sandbox.NAME, known[-1]) if known else None
            if running is None or running.exit is not None:
                launch = sandbox.launch_of(pod, known[-1] + 1 if known else 0)
                settings = {"security": sandbox.SECURITY, "sharing": Sharing(users=users), "reaps": True}
                running = await self._start(launch, settings)
        if running.exit is not None:
            raise StartError("CreatePodSandboxError", running.exit.message)
        return running.directory

    def _users(self, pod: Pod) -> int:
        """The first id of the Pod's own range, which it keeps."""
        own = self._pod_directory(pod) / "users"
        if not own.exists():
            taken = [int(each.read_text()) for each in self._directory.glob("pods/*/users")]
            make_directory(own.parent)
            write_file(own, str(isolation.first_free_range(taken)).encode())
        return int(own.read_text())

    def _write(self, launch: Launch, directory: Path, settings: Mapping[str, Any]) -> None:
        """What its keeper is to do."""
        container, sharing = launch.container, settings["sharing"]
        mounts = list(launch.mounts)
        if launch.message is not None and container.termination_message_path:
            launch.message.touch()
            mounts.append(Mount(launch.message, container.termination_message_path))
        log = launch.log or directory / "log"
        make_directory(log.parent)
        plan: dict[str, Any] | None = None
        binds: list[tuple[str, str, str, bool]] = []
        if sharing is None:
            home = str(make_directory(self._directory_of(launch.pod, container.name) / "work"))
            self._places.take(directory, mounts)
        else:
            home = isolation.HOME
            self._make_shared_memory(launch.pod)
            for name in ("root", "layer"):
                (directory / name).mkdir()
                (directory / name).chmod(0o755)  # whatever the umask
            sources = isolation.Sources(directory, self._templates.current, self._visible, self._options.hidden)
            plan = isolation.plan_of(launch.pod, container, sources, sharing)
            binds = isolation.binds_of(mounts)
        limits = limits_of(container, _group_of(directory))
        own = {"PATH": os.environ.get("PATH", _PATH), "HOME": home, "HOSTNAME": isolation.hostname_of(launch.pod)}
        content: dict[str, Any] = {
            "command": [*launch.command, *launch.arguments],
            "environment": own | dict(launch.environment) | {MARK: str(directory)},
            "directory": container.working_dir or home,
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
            "stop_signal": _stop_signal(container),
            "log": str(log),
            "log_bytes": LOG_BYTES,
            "log_files": LOG_FILES,
        }
        write_file(directory / "launch.json", msgspec.json.encode(content))

    def _make_shared_memory(self, pod: Pod) -> None:
        """What the Pod's containers have at /dev/shm."""
        path = self._pod_directory(pod) / "shm"
        if not path.exists():
            path.mkdir()
            path.chmod(_OPEN_TO_ALL)

    async def _remove_root(self, directory: Path) -> None:
        """Of a container that has ended: nobody sees it any more."""
        await self._world.executor.run(_remove_root, directory)

    def _follow(self, pod: Pod, name: str, container: ProcessContainer) -> None:
        self._containers[pod.metadata.uid, name] = container

        def changed() -> None:
            self._places.leave(container.directory)
            self._changed(pod)

        container.watch(changed)

    def resize(self, pod: Pod, container: Container, attempt: int) -> None:
        """Control groups have new limits at once; those of processes stay as they were when they began."""
        limits_of(container, _group_of(self._directory_of(pod, container.name, attempt)))

    # What was there before

    async def recover(self, pod: Pod) -> Mapping[str, ProcessContainer]:
        found = {}
        for home in sorted((self._pod_directory(pod) / "containers").glob("*")):
            attempts = _attempts(home)
            if not attempts or home.name == sandbox.NAME:
                continue
            for earlier in attempts[:-1]:  # it ended before the next began, or its end was not noticed
                give_up(home / str(earlier), self._world.clock)
            container = await self._recovered(pod, home.name, attempts[-1])
            if container is not None:
                found[home.name] = container
        return found

    async def _recovered(self, pod: Pod, name: str, attempt: int) -> ProcessContainer | None:
        directory, clock = self._directory_of(pod, name, attempt), self._world.clock
        spec = next((each for each in _containers(pod) if each.name == name), Container(name=name))
        state = await self._state(directory)
        ended = end_of(directory) or give_up(directory, clock)
        if ended is not None and state is None and ended.reason != "StartError":
            self._places.leave(directory)
            shutil.rmtree(directory, ignore_errors=True)  # it never began
            return None
        if state is None:
            state = State(0, 0, ended.at.timestamp() if ended is not None else clock.wall())
        container = self._container(pod, spec, directory, state)
        if ended is not None:
            container.exit = ended
            self._places.leave(directory)
        else:
            self._follow(pod, name, container)
        return container

    async def known(self) -> list[str]:
        """The uids of all Pods of which there is something."""
        return [each.name for each in (self._directory / "pods").iterdir()]

    async def remove(self, uid: str) -> None:
        """End and forget all there is of a Pod."""
        for directory in sorted((self._directory / "pods" / uid / "containers").glob("*/*")):
            if directory.name.isdigit():
                await self._end(directory)
        self._forget(uid)

    async def discard(self, pod: Pod) -> None:
        await self.remove(pod.metadata.uid)

    async def _end(self, directory: Path) -> None:
        state = await self._state(directory)
        if state is not None and end_of(directory) is None and is_kept(directory):
            container = ProcessContainer(directory, "", "", state, self._world.clock)
            container.watch(lambda: None)
            await container.stop(0.0)
        give_up(directory, self._world.clock)

    async def _state(self, directory: Path) -> State | None:
        """What the keeper says, which may be about to; None if there is none, or it could not begin."""
        clock = self._world.clock
        until = clock.monotonic() + _STATE_PATIENCE
        while (state := state_of(directory)) is None and clock.monotonic() < until:
            if end_of(directory) is not None or not is_kept(directory):
                break
            await clock.sleep(0.02)
        return state

    def _forget(self, uid: str) -> None:
        home = self._directory / "pods" / uid
        for directory in home.glob("containers/*/*"):
            self._places.leave(directory)
            _remove_groups(directory)
        for name in ("containers", "shm"):
            shutil.rmtree(home / name, ignore_errors=True)
        (home / "users").unlink(missing_ok=True)
        with suppress(OSError):
            home.rmdir()  # unless its volumes are still there
        for key in [each for each in self._containers if each[0] == uid]:
            del self._containers[key]

    # Sessions

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        kept = self._kept(pod, container)
        return await sessions.run(kept, command, self._world.clock, stdin=stdin, tty=tty)

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:  # noqa: ARG002
        return await sessions.attach(self._kept(pod, container))

    def _kept(self, pod: Pod, container: str) -> sessions.Kept:
        running = self._running(pod, container)
        return sessions.Kept(running.directory, running.state.shim)

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        running = {
            name: each.state.shim
            for (uid, name), each in self._containers.items()
            if uid == pod.metadata.uid and each.exit is None and name != sandbox.NAME
        }
        return {name: usage_of(keeper) for name, keeper in running.items()}

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


def _state_of(directory: Path) -> State | None:
    try:
        return msgspec.json.decode((directory / "state.json").read_bytes(), type=State)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _group_of(directory: Path) -> str:
    """The name of a container's control groups: no other node on this machine has the same, whatever its Pods."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()


def _remove_groups(directory: Path) -> None:
    """Those that a keeper could not remove, for it was killed."""
    try:
        groups = msgspec.json.decode((directory / "launch.json").read_bytes())["groups"]
    except (OSError, msgspec.DecodeError, KeyError):
        return
    for group in groups:
        with suppress(OSError):
            os.rmdir(group)


def _remove_root(directory: Path) -> None:
    for name in ("root", "layer"):
        shutil.rmtree(directory / name, ignore_errors=True)


def _used_templates(directory: Path) -> set[str]:
    """Those of containers that may run."""
    used = set()
    for each in directory.glob("pods/*/containers/*/*/launch.json"):
        with suppress(OSError, msgspec.DecodeError, KeyError, TypeError):
            used.add(str(msgspec.json.decode(each.read_bytes())["isolation"]["template"]))
    return used


def _attempts(home: Path) -> list[int]:
    """Of a container, in order."""
    return sorted(int(each.name) for each in home.iterdir() if each.name.isdigit()) if home.is_dir() else []


def _containers(pod: Pod) -> list[Any]:
    return [*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers]


def _stop_signal(container: Container) -> int:
    named = "" if container.lifecycle is None else container.lifecycle.stop_signal or ""
    return int(getattr(signal, named, signal.SIGTERM))
