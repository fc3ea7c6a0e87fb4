"""The process runtime itself; see the package."""

from __future__ import annotations

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
from ostinato.plane.node.runtimes import Changed, ExecError, Exit, Launch, Mount, Session, StartError, Tell, Usage
from ostinato.plane.node.runtimes.process import sessions
from ostinato.plane.node.runtimes.process.container import (
    MARK,
    ProcessContainer,
    State,
    end_of,
    give_up,
    is_kept,
)
from ostinato.plane.node.runtimes.process.limits import limits_of
from ostinato.plane.node.runtimes.process.nursery import Nursery, NurseryError
from ostinato.plane.node.runtimes.process.places import Places
from ostinato.plane.node.runtimes.process.stats import usage_of
from ostinato.world import World

LOG_BYTES: Final = 10 << 20
LOG_FILES: Final = 5
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_AS_ROOT: Final = "container has runAsNonRoot and image will run as root"
_STATE_PATIENCE: Final = 5.0  # seconds for a keeper that has begun to say so


class ProcessRuntime:
    version = "process://1"
    tells = True

    def __init__(self, world: World, directory: Path, address: str) -> None:
        """`directory`: what it keeps is kept here; `address`: of this machine, and so of all its Pods."""
        self._world = world
        self._directory = directory
        self._address = address
        self._changed: Changed = lambda _: None
        (directory / "pods").mkdir(parents=True, exist_ok=True, mode=0o755)
        self._own_mounts = os.geteuid() == 0 and shutil.which("nsenter") is not None
        self._places = Places(directory, self._own_mounts)
        self._nursery = Nursery(world.clock)
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
        _refuse_root(pod, container)
        directory = self._directory_of(pod, container.name, launch.attempt)
        if directory.exists():  # an earlier try to start it did not come to an end in time
            recovered = await self._recovered(pod, container.name, launch.attempt)
            if recovered is not None:
                return recovered
        directory.mkdir(parents=True)
        container_id = _id(pod, container.name, launch.attempt)
        try:
            self._write(launch, directory, container_id)
        except StartError:
            self._places.leave(directory)
            shutil.rmtree(directory)
            raise
        try:
            said = await self._nursery.keep(directory)
        except NurseryError as error:
            if give_up(directory, self._world.clock) is None:
                raise StartError("CreateContainerError", str(error)) from None  # its keeper may be about to begin
            said = {"error": str(error)}
        state = State(0, 0, self._world.clock.wall()) if "error" in said else msgspec.convert(said, State)
        started = ProcessContainer(directory, container_id, container.image or "", state, self._world.clock)
        if "error" in said:
            started.exit = end_of(directory) or Exit(
                code=128, at=Time.of(self._world.clock.now()), reason="StartError", message=str(said["error"])
            )
            self._places.leave(directory)
        else:
            self._follow(pod, container.name, started)
        return started

    def _write(self, launch: Launch, directory: Path, container_id: str) -> None:
        """What its keeper is to do."""
        container = launch.container
        work = self._directory_of(launch.pod, container.name) / "work"
        work.mkdir(exist_ok=True)
        mounts = list(launch.mounts)
        if launch.message is not None and container.termination_message_path:
            launch.message.touch()
            mounts.append(Mount(launch.message, container.termination_message_path))
        limits = limits_of(container, container_id)
        user, group, groups = _identity(launch.pod, container)
        if user is not None and self._own_mounts:
            os.chown(work, user, -1 if group is None else group)
            if launch.message is not None:
                os.chown(launch.message, user, -1)
        log = launch.log or directory / "log"
        log.parent.mkdir(parents=True, exist_ok=True)
        environment = {"PATH": os.environ.get("PATH", _PATH), "HOME": str(work), "HOSTNAME": _hostname(launch.pod)}
        content: dict[str, Any] = {
            "command": [*launch.command, *launch.arguments],
            "environment": environment | dict(launch.environment) | {MARK: str(directory)},
            "directory": container.working_dir or str(work),
            "binds": self._places.take(directory, mounts),
            "groups": limits.groups,
            "limits": limits.processes,
            "memory_events": limits.memory_events,
            "user": user if self._own_mounts else None,
            "group": group if self._own_mounts else None,
            "groups_of_user": groups if self._own_mounts else None,
            "stdin": bool(container.stdin),
            "stdin_once": bool(container.stdin_once),
            "tty": bool(container.tty),
            "stop_signal": _stop_signal(container),
            "log": str(log),
            "log_bytes": LOG_BYTES,
            "log_files": LOG_FILES,
        }
        (directory / "launch.json").write_bytes(msgspec.json.encode(content))

    def _follow(self, pod: Pod, name: str, container: ProcessContainer) -> None:
        self._containers[pod.metadata.uid, name] = container

        def changed() -> None:
            self._places.leave(container.directory)
            self._changed(pod)

        container.watch(changed)

    def resize(self, pod: Pod, container: Container, attempt: int) -> None:
        """Control groups have new limits at once; those of processes stay as they were when they began."""
        limits_of(container, _id(pod, container.name, attempt))

    # What was there before

    async def recover(self, pod: Pod) -> Mapping[str, ProcessContainer]:
        found = {}
        for home in sorted((self._pod_directory(pod) / "containers").glob("*")):
            attempts = sorted(int(each.name) for each in home.iterdir() if each.name.isdigit())
            if not attempts:
                continue
            for earlier in attempts[:-1]:  # it ended before the next began, or its end was not noticed
                give_up(home / str(earlier), self._world.clock)
            container = await self._recovered(pod, home.name, attempts[-1])
            if container is not None:
                found[home.name] = container
        return found

    async def _recovered(self, pod: Pod, name: str, attempt: int) -> ProcessContainer | None:
        directory, clock = self._directory_of(pod, name, attempt), self._world.clock
        image = next((each.image or "" for each in _containers(pod) if each.name == name), "")
        state = await self._state(directory)
        ended = end_of(directory) or give_up(directory, clock)
        if ended is not None and state is None and ended.reason != "StartError":
            self._places.leave(directory)
            shutil.rmtree(directory, ignore_errors=True)  # it never began
            return None
        if state is None:
            state = State(0, 0, ended.at.timestamp() if ended is not None else clock.wall())
        container = ProcessContainer(directory, _id(pod, name, attempt), image, state, clock)
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
        while (state := _state_of(directory)) is None and clock.monotonic() < until:
            if end_of(directory) is not None or not is_kept(directory):
                break
            await clock.sleep(0.02)
        return state

    def _forget(self, uid: str) -> None:
        home = self._directory / "pods" / uid
        for directory in home.glob("containers/*/*"):
            self._places.leave(directory)
            _remove_groups(directory)
        shutil.rmtree(home / "containers", ignore_errors=True)
        with suppress(OSError):
            home.rmdir()  # unless its volumes are still there
        for key in [each for each in self._containers if each[0] == uid]:
            del self._containers[key]

    # Sessions

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        running = self._running(pod, container)
        content = msgspec.json.decode((running.directory / "launch.json").read_bytes())
        environment, prefix = dict(content["environment"]), []
        _find(command[0], environment.get("PATH", _PATH), running.state.pid)
        directory = content["directory"]
        if tty:
            environment.setdefault("TERM", "xterm")
            prefix += ["setsid", "--ctty"]
        if content["binds"] or content["user"] is not None or content["group"] is not None:
            prefix += ["nsenter", "--target", str(running.state.pid), "--mount", f"--wdns={directory}"]
            if content["group"] is not None:
                prefix.append(f"--setgid={content['group']}")
            if content["user"] is not None:
                prefix.append(f"--setuid={content['user']}")
            prefix.append("--")
            directory = "/"
        return await sessions.run(sessions.Command([*prefix, *command], environment, directory, tty, stdin))

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:  # noqa: ARG002
        return await sessions.attach(self._running(pod, container).directory)

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        running = {
            name: each.state.shim
            for (uid, name), each in self._containers.items()
            if uid == pod.metadata.uid and each.exit is None
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


def _remove_groups(directory: Path) -> None:
    """Those that a keeper could not remove, for it was killed."""
    try:
        groups = msgspec.json.decode((directory / "launch.json").read_bytes())["groups"]
    except (OSError, msgspec.DecodeError, KeyError):
        return
    for group in groups:
        with suppress(OSError):
            os.rmdir(group)


def _containers(pod: Pod) -> list[Any]:
    return [*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers]


def _hostname(pod: Pod) -> str:
    return (pod.spec.hostname or pod.metadata.name)[:63]


def _stop_signal(container: Container) -> int:
    named = "" if container.lifecycle is None else container.lifecycle.stop_signal or ""
    return int(getattr(signal, named, signal.SIGTERM))


def _identity(pod: Pod, container: Container) -> tuple[int | None, int | None, list[int] | None]:
    """User, group and further groups of a container; None is whatever this process has."""
    whole, own = pod.spec.security_context, container.security_context
    user = None if own is None else own.run_as_user
    group = None if own is None else own.run_as_group
    groups: list[int] = []
    if whole is not None:
        user = whole.run_as_user if user is None else user
        group = whole.run_as_group if group is None else group
        groups = sorted({*whole.supplemental_groups, *([] if whole.fs_group is None else [whole.fs_group])})
    if user is None and group is None and not groups:
        return None, None, None
    return user, group if group is not None else (None if user is None else 0), groups


def _refuse_root(pod: Pod, container: Container) -> None:
    """A `StartError` if it would run as root and must not."""
    whole, own = pod.spec.security_context, container.security_context
    refused = None if own is None else own.run_as_non_root
    refused = whole.run_as_non_root if refused is None and whole is not None else refused
    user, _, _ = _identity(pod, container)
    if refused and (user == 0 or (user is None and os.geteuid() == 0)):
        known = pod.metadata
        whose = f'(pod: "{known.name}_{known.namespace}({known.uid})", container: {container.name})'
        text = "container's runAsUser breaks non-root policy" if user == 0 else _AS_ROOT
        raise StartError("CreateContainerConfigError", f"{text} {whose}")


def _find(name: str, path: str, pid: int) -> None:
    """An `ExecError` if there is no such program, as the container sees this machine."""
    root = f"/proc/{pid}/root"
    if not os.path.isdir(root):
        root = ""
    if "/" in name:
        if not name.startswith("/") or os.path.lexists(root + name):
            return
        raise ExecError(f'exec: "{name}": no such file or directory')
    if not any(os.path.lexists(f"{root}{each}/{name}") for each in path.split(":") if each.startswith("/")):
        raise ExecError(f'exec: "{name}": executable file not found in $PATH')
