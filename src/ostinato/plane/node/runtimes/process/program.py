"""What a container executes, where and as whom: the Pod's fields, completed by its image.

Without an image, or without root, a container runs a program of the machine.
"""

from __future__ import annotations

import os
import signal
from typing import Final

import msgspec

from ostinato.kinds.core_v1 import Container
from ostinato.plane.node.images.image import Image
from ostinato.plane.node.runtimes import Launch, StartError
from ostinato.plane.node.runtimes.process.security import Identity, identity

HOME: Final = "/home/container"  # of containers without an image: HOME, and the default working directory
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    command: list[str]
    environment: dict[str, str]
    directory: str
    runs_as: Identity
    stop_signal: int
    image: Image | None


def program_of(launch: Launch, image: Image | None, hostname: str, home: str = HOME) -> Program:
    """Return what to execute; `StartError` if there is no command. `home`: of containers without an image."""
    pod, container = launch.pod, launch.container
    runs_as, home_in_image = identity(pod, container, image)
    own = {"PATH": os.environ.get("PATH", _PATH), "HOME": home, "HOSTNAME": hostname}
    directory, signal_of_image = home, ""
    command = [*launch.command, *launch.arguments]
    if image is not None:
        config = image.config
        own |= {"PATH": _PATH, "HOME": home_in_image} | config.environment
        directory, signal_of_image = config.working_dir or "/", config.stop_signal or ""
        if not launch.command:
            command = [*(config.entrypoint or []), *(launch.arguments or config.cmd or [])]
    if not command or (image is None and not launch.command):
        raise StartError("CreateContainerError", _no_command(container, image))
    return Program(
        command=command,
        environment=own | dict(launch.environment),
        directory=container.working_dir or directory,
        runs_as=runs_as,
        stop_signal=_signal(container, signal_of_image),
        image=image,
    )


def _no_command(container: Container, image: Image | None) -> str:
    if image is not None:
        return f"no command specified: the image {container.image} has neither entrypoint nor command; set `command`"
    why = "is not on this node" if os.geteuid() == 0 else "is not used, because the node does not run as root"
    return (
        f"no command specified: the image {container.image or '(none)'} {why}; "
        "load it with `ostinato images load`, or set `command` to run a program of the machine"
    )


def _signal(container: Container, in_image: str) -> int:
    named = "" if container.lifecycle is None else container.lifecycle.stop_signal or ""
    name = (named or in_image).upper()
    if name.isdecimal():
        return int(name)
    return int(getattr(signal, name if name.startswith("SIG") else f"SIG{name}", signal.SIGTERM))
