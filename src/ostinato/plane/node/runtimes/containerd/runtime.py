"""`ContainerdRuntime`: starts, recovers and removes containers over the CRI."""

from __future__ import annotations

import math
import shutil
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.grpc import Code, RpcError
from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.plane.node.containers.resize import ResizeError
from ostinato.plane.node.images.reference import with_tag
from ostinato.plane.node.runtimes import (
    EventRecorder,
    ExecError,
    Launch,
    Mount,
    OnPodChange,
    SandboxError,
    Session,
    StartError,
    Usage,
)
from ostinato.plane.node.runtimes.containerd.configs import (
    NAME,
    UID,
    container_config,
    machine_memory,
    resources,
    sandbox_config,
)
from ostinato.plane.node.runtimes.containerd.connecting import Containerd
from ostinato.plane.node.runtimes.containerd.container import CREATED, SCHEME, CriContainer
from ostinato.plane.node.runtimes.containerd.health import health_of
from ostinato.plane.node.runtimes.containerd.images import ImageManager
from ostinato.plane.node.runtimes.containerd.sandboxes import SandboxManager
from ostinato.plane.node.runtimes.containerd.security import non_root_violation, target_of
from ostinato.plane.node.runtimes.containerd.streams import CriLink, CriSession
from ostinato.plane.node.runtimes.pod_names import hosts_file
from ostinato.plane.node.volumes.subpath_mounts import SubPathMounts
from ostinato.plane.node.volumes.subpaths import SubPathError
from ostinato.world import World

_HOSTS: Final = "/etc/hosts"
_RETRY: Final = 2.0  # seconds until a failed request is retried
_ANSWER_TIMEOUT: Final = 10.0  # seconds beyond the timeout of a command


class ContainerdRuntime:
    is_real = True

    def __init__(self, world: World, containerd: Containerd, directory: Path, dns: ClusterDns | None = None) -> None:
        """
        - `directory`: keeps the runtime's state; its path identifies the node's sandboxes.
        - `dns`: the cluster DNS. Defaults to None: Pods use the DNS servers of the machine.
        """
        cri = containerd.cri
        self.version = SCHEME + containerd.version
        self._world = world
        self._cri = cri
        self._directory = directory.absolute()
        self._images = ImageManager(cri, world.clock)
        self._sandboxes = SandboxManager(cri, str(self._directory), dns)
        self._sub_paths = SubPathMounts(self._directory / "volume-subpaths")
        self._watch = containerd.watch
        self._changed: OnPodChange = lambda _: None
        self._containers: dict[tuple[str, str], CriContainer] = {}  # latest attempt, by Pod uid and container name
        self._memory = machine_memory()

    def listen(self, changed: OnPodChange) -> None:
        self._changed = changed

    async def addresses(self, pod: Pod, handler: str = "") -> Sequence[str]:
        return (await self._sandboxes.of(pod, handler)).addresses

    async def pull(self, pod: Pod, container: Container, record_event: EventRecorder) -> None:
        mounted = {each.name for each in container.volume_mounts}
        for volume in pod.spec.volumes:
            if volume.image is not None and volume.name in mounted:
                policy = volume.image.pull_policy or ""
                await self._images.ensure(pod, volume.image.reference or "", policy, record_event)
        await self._images.ensure(pod, container.image or "", container.image_pull_policy or "", record_event)

    # Starting

    async def start(self, launch: Launch) -> CriContainer:
        pod, container = launch.pod, launch.container
        image = await self._images.find(with_tag(container.image or ""))
        if image is None:
            raise StartError("CreateContainerError", f'image "{container.image}" was removed')
        why = non_root_violation(pod, container, image)
        if why is not None:
            raise StartError("CreateContainerConfigError", why)
        try:
            sandbox = await self._sandboxes.of(pod)
        except SandboxError as error:
            raise StartError("CreateContainerError", str(error)) from None
        await self._remove_existing(pod, container.name)
        launch = self._with_node_files(await self._with_image_ids(launch), sandbox.addresses)
        logs = None if launch.log is None else launch.log.parent.parent
        request = {
            "pod_sandbox_id": sandbox.id,
            "config": container_config(launch, image, self._target(launch), self._memory),
            "sandbox_config": sandbox_config(pod, sandbox.attempt, self._sandboxes.names, logs),
        }
        try:
            key: str = (await self._cri.call("CreateContainer", request))["container_id"]
        except RpcError as error:
            raise StartError("CreateContainerError", str(error)) from None
        failure = ""
        try:
            await self._cri.call("StartContainer", {"container_id": key})
        except RpcError as error:
            failure = str(error)
        started = await self._container_of(key)
        if started is None or (failure and started.exit is None):
            raise StartError("RunContainerError", failure or "the container was removed")
        self._watch_container(pod, container.name, started)
        return started

    async def _remove_existing(self, pod: Pod, name: str) -> None:
        """Remove earlier containers of this name, including those created but not started."""
        self._containers.pop((pod.metadata.uid, name), None)
        try:
            for each in await self._list({UID: pod.metadata.uid, NAME: name}):
                self._watch.remove(each["id"])
                await self._cri.call("RemoveContainer", {"container_id": each["id"]})
        except RpcError as error:
            raise StartError("CreateContainerError", str(error)) from None

    async def _with_image_ids(self, launch: Launch) -> Launch:
        """Replace the references of mounted images by their ids."""
        mounts = []
        for mount in launch.mounts:
            if mount.image:
                found = await self._images.find(with_tag(mount.image))
                if found is None:
                    raise StartError("CreateContainerError", f'image "{mount.image}" was removed')
                mount = msgspec.structs.replace(mount, image=found["id"])  # noqa: PLW2901
            mounts.append(mount)
        return msgspec.structs.replace(launch, mounts=mounts)

    def _with_node_files(self, launch: Launch, addresses: Sequence[str]) -> Launch:
        """Add the mounts of /etc/hosts and of the termination message."""
        pod, container = launch.pod, launch.container
        mounts = [self._bind_sub_path(pod, container, index, each) for index, each in enumerate(launch.mounts)]
        if launch.log is not None:
            launch.log.parent.mkdir(parents=True, exist_ok=True)
        if not pod.spec.host_network and all(each.target != _HOSTS for each in mounts):
            mounts.append(Mount(self._hosts(pod, addresses), _HOSTS))
        if launch.message is not None and container.termination_message_path:
            launch.message.parent.mkdir(parents=True, exist_ok=True)
            launch.message.touch()
            launch.message.chmod(0o666)  # writable by any user of the container
            mounts.append(Mount(launch.message, container.termination_message_path))
        return msgspec.structs.replace(launch, mounts=mounts)

    def _bind_sub_path(self, pod: Pod, container: Container, index: int, mount: Mount) -> Mount:
        """Bind a subPath to a path that containers cannot change."""
        if not mount.sub_path or mount.image:
            return mount
        try:
            source = self._sub_paths.bind(pod.metadata.uid, container.name, index, mount.source, mount.sub_path)
        except SubPathError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None
        except OSError as error:
            text = f'failed to prepare subPath for mountPath "{mount.target}" of container "{container.name}"'
            raise StartError("CreateContainerConfigError", f"{text}: {error.strerror}") from None
        return Mount(source, mount.target, mount.read_only)

    def _hosts(self, pod: Pod, addresses: Sequence[str]) -> Path:
        path = self._hosts_of(pod.metadata.uid)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hosts_file(pod, addresses, self._sandboxes.names.domain))
        return path

    def _hosts_of(self, uid: str) -> Path:
        return self._directory / "sandboxes" / uid / "hosts"

    def _target(self, launch: Launch) -> str | None:
        name = target_of(launch.pod, launch.container.name)
        if name is None:
            return None
        target = self._containers.get((launch.pod.metadata.uid, name))
        if target is None:
            raise StartError("CreateContainerConfigError", f'unable to find target container "{name}"')
        return target.key

    async def _container_of(self, key: str) -> CriContainer | None:
        try:
            answer = await self._cri.call("ContainerStatus", {"container_id": key})
        except RpcError as error:
            if error.code == Code.NOT_FOUND:
                return None
            raise StartError("RunContainerError", str(error)) from None
        return CriContainer(self._cri, answer["status"], self._world.clock)

    def _watch_container(self, pod: Pod, name: str, container: CriContainer) -> None:
        self._containers[pod.metadata.uid, name] = container
        self._watch.add(container, lambda: self._changed(pod))

    async def resize(self, pod: Pod, container: Container, attempt: int) -> None:  # noqa: ARG002 - only one runs
        try:
            key = self._running(pod, container.name).key
            linux = resources(pod, container, self._memory)
            await self._cri.call("UpdateContainerResources", {"container_id": key, "linux": linux})
        except (ExecError, RpcError) as error:
            raise ResizeError(str(error)) from None

    # Recovery and removal

    async def recover(self, pod: Pod) -> Mapping[str, CriContainer]:
        try:
            listed = await self._list({UID: pod.metadata.uid})
        except RpcError as error:
            raise SandboxError(f"cannot list the containers of the Pod: {error}") from None
        newest: dict[str, dict[str, Any]] = {}
        for each in sorted(listed, key=_attempt):
            if each.get("state", CREATED) != CREATED:  # created but not started: recreated
                newest[each["labels"][NAME]] = each
        found = {}
        for name, each in newest.items():
            container = await self._container_of(each["id"])
            if container is not None:
                self._watch_container(pod, name, container)
                found[name] = container
        return found

    async def discard(self, pod: Pod) -> None:
        await self.remove(pod.metadata.uid)

    async def pod_uids(self) -> list[str]:
        """Return the uids of all Pods with state on this node."""
        return sorted({*await self._sandboxes.uids(), *self._sub_paths.uids()})

    async def remove(self, uid: str) -> None:
        """Kill the containers of a Pod and remove its state."""
        for key in [key for key in self._containers if key[0] == uid]:
            self._watch.remove(self._containers.pop(key).key)
        self._images.forget(uid)
        while True:
            try:
                await self._sandboxes.remove(uid)
                break
            except RpcError:  # a Pod is removed only after its sandbox
                await self._world.clock.sleep(_RETRY)
        self._sub_paths.release(uid)
        shutil.rmtree(self._hosts_of(uid).parent, ignore_errors=True)

    async def _list(self, selector: Mapping[str, str]) -> list[dict[str, Any]]:
        answer = await self._cri.call("ListContainers", {"filter": {"label_selector": dict(selector)}})
        listed: list[dict[str, Any]] = answer.get("containers", [])
        return listed

    async def health(self) -> str:
        return await health_of(self._cri)

    # Exec, attach and ports

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        request = {
            "container_id": self._running(pod, container).key,
            "cmd": list(command),
            "stdin": stdin,
            "stdout": True,
            "stderr": not tty,
            "tty": tty,
        }
        return await self._session("Exec", request, stdin=stdin, tty=tty)

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:
        key = self._running(pod, container).key
        request = {"container_id": key, "stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
        return await self._session("Attach", request, stdin=stdin, tty=tty)

    async def _session(self, method: str, request: Mapping[str, Any], *, stdin: bool, tty: bool) -> Session:
        try:
            answer = await self._cri.call(method, request)
        except RpcError as error:
            raise ExecError(str(error)) from None
        return await CriSession.to(answer["url"], self._world.clock, stdin=stdin, tty=tty)

    async def run(self, pod: Pod, container: str, command: Sequence[str], within: float | None) -> tuple[int, bytes]:
        """Run a command with ExecSync and return its exit code and output; killed with TimeoutError after `within`."""
        key = self._running(pod, container).key
        seconds = 0 if within is None else math.ceil(within)
        request = {"container_id": key, "cmd": list(command), "timeout": seconds}
        timeout = _ANSWER_TIMEOUT + seconds if seconds else math.inf
        try:
            answer = await self._cri.call("ExecSync", request, within=timeout)
        except RpcError as error:
            if error.code == Code.DEADLINE_EXCEEDED:
                raise TimeoutError(str(error)) from None
            raise ExecError(str(error)) from None
        output = b64decode(answer.get("stdout", "")) + b64decode(answer.get("stderr", ""))
        return answer.get("exit_code", 0), output

    async def connect(self, pod: Pod, port: int) -> CriLink:
        """Connect to a port in the Pod's network; OSError if that fails."""
        try:
            sandbox = await self._sandboxes.find(pod)
            if sandbox is None:
                raise ConnectionError("the Pod has no ready sandbox")
            answer = await self._cri.call("PortForward", {"pod_sandbox_id": sandbox.id, "port": [port]})
        except RpcError as error:
            raise ConnectionError(str(error)) from None
        return await CriLink.to(answer["url"], port, self._world.clock)

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        uid = pod.metadata.uid
        try:
            answer = await self._cri.call("ListContainerStats", {"filter": {"label_selector": {UID: uid}}})
        except RpcError:
            return {}
        return {
            each["attributes"]["labels"][NAME]: Usage(
                _value(each.get("cpu"), "usage_core_nano_seconds") / 1e9,
                _value(each.get("memory"), "working_set_bytes"),
            )
            for each in answer.get("stats", [])
            if each["attributes"]["labels"].get(NAME)
        }

    def _running(self, pod: Pod, name: str) -> CriContainer:
        container = self._containers.get((pod.metadata.uid, name))
        if container is None or container.exit is not None:
            raise ExecError(f'container not found ("{name}")')
        return container


def _attempt(container: Mapping[str, Any]) -> int:
    attempt: int = (container.get("metadata") or {}).get("attempt", 0)
    return attempt


def _value(measured: Mapping[str, Any] | None, name: str) -> int:
    value: int = ((measured or {}).get(name) or {}).get("value", 0)
    return value
