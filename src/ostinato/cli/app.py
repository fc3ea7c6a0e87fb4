"""The commands and their options. What they do is in a module each.

The standard library's argparse, not typer: of the half second in which `ostinato apiserver` is to be ready, typer took
130 ms (it validates options with pydantic), argparse takes ten.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from typing import Any

from ostinato.cli.error import Failure
from ostinato.cli.options.server import settings as server_options


def run(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except Failure as error:
        sys.stderr.write(f"{options.prog}: {error}\n")
        return 1
    except KeyboardInterrupt:  # before anything hears of signals: while it is loaded, or finds out what there is
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ostinato",
        description="Kubernetes controllers in Python, and the control plane to run them against, in one process.",
    )
    parser.add_argument("--version", action=_Version, help="say which version this is")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands.add_parser("run", help="run the controllers of a file", description=_RUN))
    _add_manifests(
        commands.add_parser("manifests", help="write definitions, roles and webhooks", description=_MANIFESTS)
    )
    _add_types(commands.add_parser("types", help="write classes from definitions", description=_TYPES))
    _add_demo(commands.add_parser("demo", help="see a control plane at work", description=_DEMO))
    _add_up(commands.add_parser("up", usage=_SERVER_USAGE, help="run a whole control plane", description=_UP))
    _add_apiserver(
        commands.add_parser("apiserver", usage=_SERVER_USAGE, help="run an API server alone", description=_APISERVER)
    )
    _add_snapshot(commands.add_parser("snapshot", help="save and restore stored objects", description=_SNAPSHOT))
    _add_user(commands.add_parser("user", help="write kubeconfigs for users", description=_USER))
    _add_controllers(commands.add_parser("controllers", help="run the plane's controllers", description=_CONTROLLERS))
    _add_scheduler(commands.add_parser("scheduler", help="run the plane's scheduler", description=_SCHEDULER))
    _add_node(commands.add_parser("node", help="join this machine to a cluster as a node", description=_NODE))
    _add_token(commands.add_parser("token", help="create tokens with which nodes join", description=_TOKENS))
    return parser


class _Version(argparse.Action):
    def __init__(self, **named: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **named)  # it is no option of a command

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - it takes longer than all the rest of this module

        sys.stdout.write(f"ostinato {version('ostinato')}\n")
        parser.exit()


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options themselves, without what belongs to the command line."""
    return {name: value for name, value in vars(options).items() if name not in ("command", "prog")}


# ostinato run

_RUN = """Run the controllers of a file until interrupted or terminated: its managers, if it makes some, or else all of
its controllers and webhooks in one. What is said here goes before what the file says. Without --embedded, --kubeconfig
and --context, the server is found as kubectl finds it."""


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_run, prog=parser.prog)
    parser.add_argument("file", metavar="FILE", help="a Python file, or the name of a module")
    where = parser.add_argument_group("which cluster")
    where.add_argument("--embedded", action="store_true", help="one in this process, for as long as the command runs")
    where.add_argument("--state", metavar="DIR", help="where --embedded keeps its objects (default: nowhere)")
    where.add_argument(
        "--accept-data-loss",
        action="store_true",
        help="if the store in --state is damaged, keep its files aside and start with what can be read of it",
    )
    where.add_argument("--kubeconfig", metavar="FILE", help="that of this kubeconfig")
    where.add_argument("--context", metavar="NAME", help="that of this context of the kubeconfig")
    where.add_argument("-n", "--namespace", metavar="NS", default="", help="this namespace alone (default: all)")
    where.add_argument(
        "--install-crds",
        action="store_true",
        help="install or update the definitions of the program's kinds first; --embedded does so anyway",
    )
    parser.add_argument("--leader-election", metavar="NAME", default="", help="only the holder of this Lease works")
    parser.add_argument("--health", metavar="[HOST]:PORT", default="", help="serve /healthz and /readyz here")
    parser.add_argument("--metrics", metavar="[HOST]:PORT", default="", help="serve /metrics here")
    parser.add_argument("--log-format", choices=("text", "json"), help="default: text for a terminal, else json")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")


def _run(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import run as command  # noqa: PLC0415 - each command loads its own

    command.run(command.RunOptions(**_given(options)))
    return 0


# ostinato manifests

_MANIFESTS = """Write what a program needs in a cluster: the definitions of its kinds, a service account with the roles
that it needs, and the configurations of its webhooks. The same program gives the same files."""


def _add_manifests(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_manifests, prog=parser.prog)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a Python file, or the name of a module")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to (default: all to standard output)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with the differences, if any")
    parser.add_argument("--name", default="", help="of the roles (default: that of the first file)")
    parser.add_argument(
        "--account", metavar="NS/NAME", default="", help="the service account (default: the roles' name in default)"
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NS", default="", help="allow this namespace alone, for `ostinato run -n`"
    )
    parser.add_argument("--leader-election", metavar="NAME", default="", help="as `ostinato run` is given it")


def _manifests(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import manifests as command  # noqa: PLC0415

    return command.manifests(command.ManifestsOptions(**_given(options)))


# ostinato types

_TYPES = """Write Python classes from CustomResourceDefinitions, of all their versions. Other objects in the files are
passed over."""


def _add_types(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_types, prog=parser.prog)
    parser.add_argument("files", metavar="FILE", nargs="+", help="YAML or JSON; - is standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--version", metavar="NAME", help="this version alone (default: all)")


def _types(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import types as command  # noqa: PLC0415

    command.types(command.TypesOptions(**_given(options)))
    return 0


# ostinato demo

_DEMO = """Play, in a quarter of a minute, what a control plane does: apply a Deployment, watch it pass from part to
part until its processes run, kill one of them, scale, roll out, delete. Everything runs in this process, and nothing is
left."""


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_demo, prog=parser.prog)
    parser.add_argument("--picture", metavar="FILE.svg", help="draw what was shown into this file, too")


def _demo(options: argparse.Namespace) -> int:
    _need_server()
    from ostinato.cli.demo import command  # noqa: PLC0415

    return command.demo(options.picture)


# ostinato up, ostinato apiserver

_UP = """Run a control plane in one process: API server, controllers, scheduler and nodes. It says when the API server
is ready, and runs until it is interrupted or terminated; the next start goes on where it stopped."""

_APISERVER = """Run an API server: bare, without controllers, scheduler or nodes. It says when it is ready, and runs
until it is interrupted or terminated."""


_SERVER_USAGE = "%(prog)s [OPTION]..."  # the options are too many to be listed twice


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_up, prog=parser.prog)
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--nodes", metavar="N", type=int, default=1, help="number of nodes (default: %(default)s)")
    cluster.add_argument(
        "--runtime",
        metavar="NAME",
        default="process",
        help="what runs containers: process, containerd or simulated (default: %(default)s)",
    )
    _add_containerd(cluster)
    _add_processes(cluster)
    cluster.add_argument("--bare", action="store_true", help="run the API server alone, as `ostinato apiserver` does")
    _add_without(cluster, "leave out a controller, the scheduler or services; may be given several times")
    server_options.add_to(parser)


def _add_containerd(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--containerd",
        metavar="SOCKET",
        default="/run/containerd/containerd.sock",
        help="containerd's socket, for --runtime containerd (default: %(default)s)",
    )


def _add_processes(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--expose",
        metavar="DIR",
        action="append",
        default=[],
        help="for --runtime process: directory of this machine that containers see, read-only; "
        "may be given several times",
    )
    parser.add_argument(
        "--insecure-processes",
        action="store_true",
        help="for --runtime process: run Pods even where their securityContext cannot be applied",
    )


def _add_apiserver(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_apiserver, prog=parser.prog)
    server_options.add_to(parser)


def _add_without(parser: argparse._ActionsContainer, what: str, names: Sequence[str] | None = None) -> None:
    """`names`: those that may be given, where that is known here."""
    parser.add_argument("--without", metavar="NAME", action="append", default=[], choices=names, help=what)


def _up(options: argparse.Namespace) -> int:
    return _quickly("up", options)


def _apiserver(options: argparse.Namespace) -> int:
    return _quickly("apiserver", options)


def _quickly(command: str, options: argparse.Namespace) -> int:
    _need_server()
    gc.disable()  # until the server runs: what is loaded stays, and looking for garbage in it takes a tenth of the time

    from ostinato.cli.commands import serve as serving  # noqa: PLC0415 - `ostinato --help` loads no server

    try:
        {"up": serving.up, "apiserver": serving.apiserver}[command](options)
    finally:
        gc.enable()
    return 0


def _need_server() -> None:
    """Say what is to be installed before half of it has been started."""
    from importlib.util import find_spec  # noqa: PLC0415 - `ostinato run` needs none of it

    missing = [name for name in ("cryptography", "re2") if find_spec(name) is None]
    if missing:
        raise Failure(f"this needs the server: pip install 'ostinato[server]' (there is no {', no '.join(missing)})")


# ostinato snapshot

_SNAPSHOT = """Save, restore or check the objects of an API server whose store is SQLite. Certificates and keys in the
state directory are not part of a snapshot."""


def _add_snapshot(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="copy the objects into a new file; the server may be running")
    save.add_argument("file", metavar="FILE", help="the snapshot to write")
    restore = actions.add_parser("restore", help="replace the objects of a stopped server; the old files are kept")
    restore.add_argument("file", metavar="FILE", help="the snapshot to read")
    status = actions.add_parser("status", help="check a store or a snapshot")
    status.add_argument("file", metavar="FILE", nargs="?", help="a snapshot (default: the store of the server)")
    for name, action in (("save", save), ("restore", restore), ("status", status)):
        action.set_defaults(command=_snapshot, prog=action.prog, action=name)
        action.add_argument(
            "--state",
            metavar="DIR",
            help="state directory of the server (default: ostinato in $XDG_STATE_HOME or ~/.local/state)",
        )
        action.add_argument(
            "--store", metavar="sqlite:PATH", default="", help="its store (default: store.db in the state directory)"
        )


def _snapshot(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import snapshot  # noqa: PLC0415 - as above

    snapshot.run(options)
    return 0


# ostinato user

_USER = """Write kubeconfigs for users of a server, with client certificates that its authority signs. The server may be
running or not. A certificate is valid until it ends: it cannot be revoked."""


def _add_user(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="write a kubeconfig for a user")
    add.set_defaults(command=_user, prog=add.prog)
    add.add_argument("name", metavar="NAME", help="of the user, as RBAC names it")
    add.add_argument(
        "--group", metavar="GROUP", action="append", default=[], help="that the user is in; may be given several times"
    )
    add.add_argument("--out", metavar="FILE", help="kubeconfig to write (default: NAME.kubeconfig)")
    add.add_argument(
        "--expires",
        metavar="DURATION",
        default="365d",
        help="how long the certificate is valid, for example 30d or 8h (default: %(default)s)",
    )
    add.add_argument("--server", metavar="URL", help="of the server (default: that of admin.kubeconfig)")
    add.add_argument(
        "--allow-system",
        action="store_true",
        help="allow names and groups of Kubernetes itself, which begin with system:; system:masters may do everything",
    )
    add.add_argument(
        "--state",
        metavar="DIR",
        help="state directory of the server (default: ostinato in $XDG_STATE_HOME or ~/.local/state)",
    )


def _user(options: argparse.Namespace) -> int:
    _need_server()
    from ostinato.cli.commands import user  # noqa: PLC0415 - as above

    user.add(options)
    return 0


# ostinato controllers, ostinato scheduler

_CONTROLLERS = """Run the plane's controllers against any API server, in place of kube-controller-manager. Of several
that run, one works at a time."""

_SCHEDULER = """Run the plane's scheduler against any API server, in place of kube-scheduler. Of several that run, one
works at a time."""


def _add_controllers(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_parts, part="controllers", prog=parser.prog)
    _add_part_options(parser)
    parser.add_argument("--ca-certificate", metavar="FILE", help="of the cluster's authority, for kube-root-ca.crt")
    parser.add_argument("--ca-key", metavar="FILE", help="of the same, to sign certificates for nodes")
    parser.add_argument("--volumes", metavar="DIR", help="directory in which volumes for claims are made")
    parser.add_argument(
        "--service-account-private-key-file", metavar="PEM", help="signs the tokens that Secrets are filled with"
    )
    _add_without(parser, "leave out a controller; may be given several times")


def _add_scheduler(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_parts, part="scheduler", prog=parser.prog)
    _add_part_options(parser)


def _add_part_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="which API server (default: as kubectl finds it)")
    parser.add_argument("--context", metavar="NAME", help="which context of the kubeconfig (default: its current one)")
    parser.add_argument("--no-leader-election", action="store_true", help="work without asking who else does")
    parser.add_argument("--health", metavar="ADDRESS", default="", help="where to serve /healthz and /readyz")
    parser.add_argument("--metrics", metavar="ADDRESS", default="", help="where to serve /metrics")


def _parts(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import components as parts  # noqa: PLC0415 - as above

    parts.run(options)
    return 0


# ostinato node

_NODE = """Join this machine to a cluster as a node: run the Pods that are bound to it, and answer the API server about
them, until interrupted or terminated. Containers go on then; the next start finds them again."""


def _add_node(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_node, prog=parser.prog)
    parser.add_argument("--kubeconfig", metavar="FILE", help="which cluster (default: as kubectl finds it)")
    parser.add_argument("--context", metavar="NAME", help="which context of the kubeconfig (default: its current one)")
    parser.add_argument("--server", metavar="URL", default="", help="which cluster, to join by a bootstrap token")
    parser.add_argument("--token", metavar="TOKEN", default="", help="the bootstrap token; see `ostinato token create`")
    parser.add_argument(
        "--ca-cert-hash",
        metavar="sha256:HEX",
        action="append",
        default=[],
        help="of the public key of the cluster's certificate authority, by which the cluster is known",
    )
    parser.add_argument("--name", default="", help="of the node (default: that of this machine)")
    parser.add_argument(
        "--runtime", metavar="NAME", default="process", help="process or containerd (default: %(default)s)"
    )
    _add_containerd(parser)
    _add_processes(parser)
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="0.0.0.0:10250",
        help="where the API server reaches its agent; port 0 is any that is free (default: %(default)s)",
    )
    parser.add_argument(
        "--state", metavar="DIR", help="what it keeps (default: ostinato/node in $XDG_STATE_HOME or ~/.local/state)"
    )
    _add_without(parser, "leave out services: another proxy has them answer on this machine", ["services"])


def _node(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import node as command  # noqa: PLC0415

    command.node(options)
    return 0


# ostinato token

_TOKENS = """Create a bootstrap token, with which a machine joins the cluster as a node (`ostinato node --token`)."""


def _add_token(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="create a token and print it")
    create.set_defaults(command=_token, prog=create.prog)
    create.add_argument("--kubeconfig", metavar="FILE", help="which cluster (default: as kubectl finds it)")
    create.add_argument("--context", metavar="NAME", help="which context of the kubeconfig (default: its current one)")
    create.add_argument(
        "--ttl", metavar="DURATION", default="24h", help="how long it is valid; 0 is for ever (default: %(default)s)"
    )
    create.add_argument(
        "--print-join-command", action="store_true", help="print the command that joins, in place of the token"
    )


def _token(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import token as command  # noqa: PLC0415

    command.create(options)
    return 0
