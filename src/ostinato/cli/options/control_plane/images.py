"""Options of `ostinato images`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_state

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Images for Pods, without a registry: of nodes with the process runtime (as root), or of containerd. An
image that was loaded is used by Pods that name it; nothing is pulled."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("images", help="load and build images without a registry", description=_DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    load = actions.add_parser("load", help="load an archive (OCI, docker save) or an OCI layout")
    load.add_argument("file", metavar="FILE", help="archive, or directory of a layout")
    load.add_argument("--name", metavar="NAME[:TAG]", help="name of an archive's only image (default: its own)")
    listing = actions.add_parser("list", help="list the images")
    remove = actions.add_parser("remove", help="remove an image, once no container uses it")
    remove.add_argument("name", metavar="NAME[:TAG]", help="its name or id")
    whole = actions.add_parser("import-dir", help="make an image of a directory, which becomes its root")
    whole.add_argument("directory", metavar="DIR", help="the root file system")
    whole.add_argument("--entrypoint", metavar="WORDS", help="command of its containers, as a shell would split it")
    whole.add_argument("--cmd", metavar="WORDS", help="default arguments of its containers")
    whole.add_argument("--env", metavar="NAME=VALUE", action="append", default=[], help="variable (repeatable)")
    whole.add_argument("--user", metavar="USER[:GROUP]", help="user of its containers (default: root)")
    whole.add_argument("--workdir", metavar="DIR", help="working directory of its containers (default: /)")
    build = actions.add_parser("build", help="build an image of a Dockerfile without RUN")
    build.add_argument("context", metavar="DIR", nargs="?", default=".", help="files to copy from (default: .)")
    build.add_argument("--file", metavar="FILE", help="the Dockerfile (default: Dockerfile in DIR)")
    build.add_argument(
        "--build-arg", metavar="NAME=VALUE", action="append", default=[], help="value of an ARG (repeatable)"
    )
    for each in (whole, build):
        each.add_argument("--name", metavar="NAME[:TAG]", required=True, help="name of the image")
        each.add_argument("--output", metavar="FILE", help="write an OCI archive instead of loading the image")
    named = {"load": load, "list": listing, "remove": remove, "import-dir": whole, "build": build}
    for name, action in named.items():
        action.set_defaults(command=_images, prog=action.prog, action=name)
        add_state(action)
        action.add_argument(
            "--containerd",
            metavar="SOCKET",
            nargs="?",
            const="/run/containerd/containerd.sock",
            help="use the images of containerd at this socket (default without a value: %(const)s)",
        )


def _images(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.control_plane import images  # noqa: PLC0415 - loaded when the command is called

    images.run(options)
    return 0
