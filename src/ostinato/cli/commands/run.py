"""`ostinato run`: runs the controllers of a file, on a cluster or on one in this process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ostinato.api.validation import names
from ostinato.cli.error import Failure
from ostinato.cli.program.loading import find, load
from ostinato.cli.program.preflight import install_webhooks, prepare
from ostinato.cli.program.program import Program, definitions_of, program_of
from ostinato.cli.reporting import TOLD, check_addresses, told
from ostinato.client.config.config import Config
from ostinato.client.config.error import NoConfig
from ostinato.controllers.trace import shorten
from ostinato.manager import configure_logging, serve_together
from ostinato.manager.election.settings import LeaderElection
from ostinato.manager.hosting import Choices, Host
from ostinato.manager.running import Served, new_runner
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.cli.program.embedded import Embedded

_HERE = "127.0.0.1"


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; see `ostinato run --help`."""

    file: str
    embedded: bool = False
    state: str | None = None
    accept_data_loss: bool = False
    install_crds: bool = False
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = ""
    leader_election: str = ""
    health: str = ""
    metrics: str = ""
    log_format: Literal["text", "json"] | None = None
    verbose: bool = False


def run(options: RunOptions) -> None:
    """Run until SIGTERM or SIGINT; Failure if that cannot begin, or comes to an end by itself."""
    _check(options)
    found = find(options.file)
    configure_logging(options.log_format, level="DEBUG" if options.verbose else "INFO")
    with (
        _interruptible(),
        new_runner() as runner,
        _cluster(options, runner) as cluster,
    ):
        host = Host(choices=cluster.choices, namespace=options.namespace)
        program = program_of([load(found, host)], host)
        with _told():
            runner.run(_run(program, options, cluster))


def _check(options: RunOptions) -> None:
    if options.embedded and (options.kubeconfig or options.context):
        raise Failure("--embedded is a cluster of its own: it goes without --kubeconfig and --context")
    if options.state and not options.embedded:
        raise Failure("--state is where --embedded keeps its objects: it goes with that alone")
    if options.accept_data_loss and not options.state:
        raise Failure("--accept-data-loss is about the store of --embedded --state DIR: it goes with these alone")
    check_addresses(health=options.health, metrics=options.metrics)
    if options.namespace and (problems := names.name_is_dns_label(options.namespace)):
        raise Failure(f"--namespace: {options.namespace!r} cannot be the name of a namespace: {problems[0]}")
    try:
        if options.leader_election:
            LeaderElection(name=options.leader_election)
    except ValueError as error:
        raise Failure(f"--leader-election: {error}") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Until the managers hear of signals, SIGTERM is taken as SIGINT is, so that nothing is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Cluster(NamedTuple):
    choices: Choices
    beside: Sequence[Served] = ()  # what runs beside the managers, and ends with them
    leave: Callable[[int], object] = os._exit  # ends the process at once
    place: str = ""  # how others reach it, said once the program runs: one that cannot has none


@contextmanager
def _cluster(options: RunOptions, runner: asyncio.Runner) -> Iterator[_Cluster]:
    """The server that was chosen: the embedded one, running; that of a kubeconfig; or none, and the file decides."""
    others: dict[str, Any] = {
        "leader_election": options.leader_election or None,
        "health": options.health,
        "metrics": options.metrics,
    }
    namespace = options.namespace or None
    if not options.embedded:
        config = None
        if options.kubeconfig or options.context or namespace:
            with _told():
                config = Config.load(options.context, options.kubeconfig, namespace=namespace)
        yield _Cluster(Choices(config=config, **others))
        return
    world = World.real()
    cluster = _embedded(world, options, runner)
    try:
        place = f"the embedded cluster is at {cluster.url}: kubectl --kubeconfig {cluster.kubeconfig}\n"
        config = Config.load(path=cluster.kubeconfig, namespace=namespace)
        yield _Cluster(Choices(config=config, connect=cluster.connect, **others), [cluster], cluster.leave, place)
    finally:
        runner.run(cluster.close())
        world.executor.close()


def _embedded(world: World, options: RunOptions, runner: asyncio.Runner) -> Embedded:
    """The embedded cluster, running."""
    try:
        from ostinato.cli.program.embedded import Embedded  # noqa: PLC0415 - an operator's image has no server

        state = Path(options.state) if options.state else None
        cluster = Embedded(world, state, accept_data_loss=options.accept_data_loss)
        with _told():
            runner.run(cluster.start())
    except ModuleNotFoundError as error:
        raise Failure(f"--embedded needs the server: pip install 'ostinato[server]' ({error})") from None
    return cluster


async def _run(program: Program, options: RunOptions, cluster: _Cluster) -> None:
    if options.embedded:
        for webhooks in program.webhooks:
            webhooks.serve_at(_HERE, _free_port())
    definitions = definitions_of(program, all_kinds=options.embedded) if _installs(options) else []
    for manager in program.managers:
        await prepare(manager, options.file, definitions)
    if options.embedded and program.webhooks:
        await install_webhooks(program.managers[0], program.webhooks)
    names = ", ".join(each.name for each in program.runnables)
    sys.stdout.write(f"{cluster.place}running {names}\n")
    sys.stdout.flush()
    await serve_together(*program.managers, *cluster.beside, leave=cluster.leave)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_HERE, 0))
        port: int = free.getsockname()[1]
        return port


def _installs(options: RunOptions) -> bool:
    return options.embedded or options.install_crds


@contextmanager
def _told() -> Iterator[None]:
    """As other commands tell it; but here is a way to do without a cluster."""
    with told():
        try:
            yield
        except NoConfig as error:
            raise Failure(f"{error}: --embedded needs no cluster") from None
        except Exception as error:
            if isinstance(error, TOLD) or not shorten(error):
                raise
            trace = "".join(traceback.format_exception(error)).rstrip()
            raise Failure(f"what it runs has failed:\n{trace}") from None
