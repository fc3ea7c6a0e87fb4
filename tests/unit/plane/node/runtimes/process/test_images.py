"""Containers of images in the process runtime, as root: root file system, command, variables, user."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import Container, Pod, PodSecurityContext, PodSpec, SecurityContext
from ostinato.plane.node.images.archive import open_archive
from ostinato.plane.node.images.build import directory_layer, write_archive
from ostinato.plane.node.images.image import ImageConfig
from ostinato.plane.node.images.store import ImageStore
from ostinato.plane.node.runtimes import Launch, Mount, ProcessOptions, StartError
from ostinato.plane.node.runtimes.process import ProcessRuntime, isolation
from ostinato.plane.node.runtimes.process.container import ProcessContainer
from ostinato.world import World

PROGRAMS = ("sh", "cat", "id", "ls", "env", "pwd", "sleep")


@pytest.fixture(scope="module")
def image_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a few programs of this machine, their libraries, and users of its own."""
    if why := isolation.unsupported_reason():
        pytest.skip(f"no isolation here: {why}")
    if shutil.which("ldd") is None:
        pytest.skip("no ldd")
    root = tmp_path_factory.mktemp("root")
    for program in PROGRAMS:
        path = shutil.which(program)
        assert path is not None
        _copy(path, root / "bin" / program)
        for word in subprocess.run(["ldd", path], check=False, capture_output=True, text=True).stdout.split():
            if word.startswith("/"):
                _copy(word, root / word.lstrip("/"))
    (root / "etc").mkdir()
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\nweb:x:1000:1000::/srv:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\nweb:x:1000:\nextra:x:50:web\n")
    (root / "etc" / "resolv.conf").symlink_to("/run/elsewhere/resolv.conf")
    (root / "srv").mkdir()
    (root / "srv" / "own").write_text("of the image")
    return root


def _copy(source: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


class Node:
    def __init__(self, directory: Path, root: Path) -> None:
        self.directory = directory
        self.world = World.real()
        self.runner = asyncio.Runner()  # the runtime keeps connections of its loop
        self.images = ImageStore(directory / "images")
        self._root = root
        options = ProcessOptions(images=directory / "images")
        self.runtime = ProcessRuntime(self.world, directory / "node", ["192.0.2.7"], options)

    def close(self) -> None:
        self.runner.close()
        self.world.executor.close()

    def load(self, name: str, config: ImageConfig) -> None:
        layer = directory_layer(self._root, self.directory / "layer.tar", (0, 0))
        write_archive(self.directory / "image.tar", [name], config, [layer])
        with open_archive(self.directory / "image.tar") as [image]:
            self.images.add(image, image.names)

    def run(
        self, image: str, *, pod: dict[str, Any] | None = None, mounts: Sequence[Mount] = (), **container: Any
    ) -> tuple[ProcessContainer, str]:
        """Run a container to its end; return it, and what it has written."""

        async def whole() -> tuple[ProcessContainer, str]:
            made = Container(name="c", image=image, **container)
            spec = PodSpec(containers=[made], **(pod or {}))
            owner = Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u1"), spec=spec)
            log = self.directory / "log"
            log.unlink(missing_ok=True)
            launch = Launch(
                pod=owner,
                container=made,
                attempt=0,
                command=made.command,
                arguments=made.args,
                mounts=mounts,
                log=log,
            )
            try:
                started = await self.runtime.start(launch)
                async with self.world.clock.timeout(30):
                    while started.exit is None:
                        await self.world.clock.sleep(0.01)
                lines = log.read_text().splitlines()
                return started, "\n".join(line.split(" ", 3)[3] for line in lines)
            finally:
                await self.runtime.remove("u1")

        return self.runner.run(whole())


@pytest.fixture
def node(tmp_path: Path, image_root: Path) -> Iterator[Node]:
    made = Node(tmp_path, image_root)
    yield made
    made.close()


def test_an_image_gives_root_command_variables_directory_and_user(node: Node) -> None:
    config = ImageConfig(
        entrypoint=["/bin/sh", "-c"],
        cmd=["pwd; cat own; echo; id; echo $A $HOME $PATH"],
        env=["A=b", "PATH=/bin"],
        user="web",
        working_dir="/srv",
    )
    node.load("web:1", config)
    container, printed = node.run("web:1")
    lines = printed.splitlines()
    assert lines[:2] == ["/srv", "of the image"], printed
    assert lines[2].startswith("uid=1000(web) gid=1000(web) groups=1000(web),50(extra)")
    assert lines[3] == "b /srv /bin"
    [image] = node.images.images()
    assert container.image_id.endswith(image.id)
    assert container.user is not None
    assert container.user.linux is not None
    assert container.user.linux.supplemental_groups == [1000, 50]


def test_the_pods_own_fields_come_first(node: Node) -> None:
    node.load("web:1", ImageConfig(entrypoint=["/bin/cat"], cmd=["/none"], env=["A=image"], user="web"))
    _, printed = node.run(
        "web:1",
        pod={"security_context": PodSecurityContext(supplemental_groups_policy="Strict", supplemental_groups=[77])},
        command=["/bin/sh", "-c", "id; pwd"],
        working_dir="/etc",
        security_context=SecurityContext(run_as_user=1000, run_as_group=5),
    )
    user, directory = printed.splitlines()
    assert user.startswith("uid=1000(web) gid=5 groups=5,77"), printed
    assert directory == "/etc"
    _, printed = node.run("web:1", args=["/srv/own"])
    assert printed == "of the image"


def test_an_image_is_not_changed_by_its_containers(node: Node) -> None:
    node.load("web:1", ImageConfig())
    container, _ = node.run("web:1", command=["/bin/sh", "-c", "echo changed >/srv/own; echo more >/new"])
    assert container.exit is not None
    assert container.exit.code == 0
    _, printed = node.run("web:1", command=["/bin/sh", "-c", "cat /srv/own; ls /new 2>/dev/null"])
    assert printed == "of the image"


def test_nothing_of_the_machine_is_visible(node: Node, tmp_path: Path) -> None:
    node.load("web:1", ImageConfig())
    _, printed = node.run("web:1", command=["/bin/sh", "-c", f"ls {tmp_path} /usr/bin /home; cat /etc/resolv.conf"])
    assert "image.tar" not in printed
    assert not any(line.strip() == "env" for line in printed.splitlines()), printed
    assert "elsewhere" not in printed


def test_a_container_without_a_loaded_image_runs_a_program_of_the_machine(node: Node) -> None:
    _, printed = node.run("none", command=["sh", "-c", "echo $HOME"])
    assert printed == "/home/container"
    with pytest.raises(StartError, match=r"the image none is not on this node; load it with `ostinato images load`"):
        node.run("none")


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (None, "container has runAsNonRoot and image will run as root"),
        ("0", "container has runAsNonRoot and image will run as root"),
        ("web", r"container has runAsNonRoot and image has non-numeric user \(web\), cannot verify user is non-root"),
    ],
)
def test_run_as_non_root_is_checked_with_the_user_of_the_image(node: Node, user: str | None, reason: str) -> None:
    node.load("web:1", ImageConfig(entrypoint=["/bin/id"], user=user))
    with pytest.raises(StartError, match=reason):
        node.run("web:1", security_context=SecurityContext(run_as_non_root=True))
    node.load("web:2", ImageConfig(entrypoint=["/bin/id"], user="1000"))
    _, printed = node.run("web:2", security_context=SecurityContext(run_as_non_root=True))
    assert printed.startswith("uid=1000")


def test_a_user_that_the_image_does_not_define_is_an_error(node: Node) -> None:
    node.load("web:1", ImageConfig(entrypoint=["/bin/id"], user="nobody-here"))
    with pytest.raises(StartError, match="unable to find user nobody-here: no matching entries in passwd file"):
        node.run("web:1")


@pytest.mark.parametrize("place", ["proc", "sys", "dev"])
def test_an_image_whose_mount_point_is_a_link_is_refused(tmp_path: Path, image_root: Path, place: str) -> None:
    """A link would have the mount cover another directory, and the masked files of /proc stay open (CVE-2019-19921)."""
    root = tmp_path / "root"
    shutil.copytree(image_root, root, symlinks=True)
    (root / place).symlink_to("/srv")
    node = Node(tmp_path, root)
    try:
        node.load("web:1", ImageConfig(entrypoint=["/bin/ls"]))
        container, _ = node.run("web:1")
        assert container.exit is not None
        assert container.exit.reason == "StartError"
        assert "is a symbolic link in the image" in container.exit.message
    finally:
        node.close()


def test_images_are_mounted_read_only_as_volumes(node: Node) -> None:
    node.load("web:1", ImageConfig())
    script = "cat /data/srv/own; echo; cat /part/own; echo; touch /data/new; ls /data/bin/sh"
    volumes = [
        Mount(Path(), "/data", read_only=True, image="web:1"),
        Mount(Path(), "/part", read_only=True, sub_path="srv", image="web:1"),
    ]
    container, printed = node.run("", command=["sh", "-c", script], mounts=volumes)
    assert container.exit is not None
    assert container.exit.code == 0
    refused = "touch: cannot touch '/data/new': Read-only file system"
    assert sorted(printed.splitlines()) == ["/data/bin/sh", "of the image", "of the image", refused]
    [image] = node.images.images()
    assert not (image.root / "new").exists()


def test_a_volume_of_an_image_that_was_not_loaded_keeps_the_container_waiting(node: Node) -> None:
    with pytest.raises(StartError, match="the image web:2 is not on this node; load it with") as error:
        node.run("", command=["true"], mounts=[Mount(Path(), "/data", read_only=True, image="web:2")])
    assert error.value.reason == "ErrImageNeverPull"
