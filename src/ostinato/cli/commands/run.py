"""`ostinato run`: run the controllers of a file against a cluster, or against a control plane in this process."""

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
from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load_all
from ostinato.cli.program.log_levels import initial_levels, parse_levels, program_levels, set_levels
from ostinato.cli.program.preflight import install_webhooks, prepare
from ostinato.cli.program.program import Program, definitions_of, program_of
from ostinato.cli.program.recording import recording_to
from ostinato.cli.program.targets import targets
from ostinato.cli.progress import progress
from ostinato.cli.reload.sources import Sources
from ostinato.cli.reload.supervisor import Supervisor
from ostinato.cli.reporting import USER_ERRORS, check_endpoints, command_errors, metrics_of
from ostinato.client.config.config import Config
from ostinato.client.config.error import NoConfig
from ostinato.controllers.failures.trace import shorten
from ostinato.controllers.reports.observing import Observer
from ostinato.controllers.sources.namespace_patterns import NamespacePatterns, is_pattern
from ostinato.manager import Manager, Sharding, configure_logging, serve_together
from ostinato.manager.election.settings import LeaderElection
from ostinato.manager.hosting import Choices, Host, hosting
from ostinato.manager.running import Served, new_runner
from ostinato.world import Clock, World
from ostinato.world.clock import RealClock

if TYPE_CHECKING:
    from ostinato.cli.program.embedded import Embedded
    from ostinato.webhook.webhooks import Webhooks

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.02


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato run --help`."""

    files: Sequence[str] = ()
    embedded: bool = False
    state: str | None = None
    accept_data_loss: bool = False
    install_crds: bool = False
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = ""
    webhook_certificates: str = ""
    leader_election: str = ""
    sharding: str = ""
    health: str = ""
    metrics: str = ""
    metrics_secure: bool = False
    metrics_cert_path: str = ""
    profiler: str = ""
    page: str = ""
    page_writes: bool = False
    log_format: Literal["text", "json"] | None = None
    verbose: int = 0
    log_level: Sequence[str] = ()
    reload: bool = False
    record: str = ""
    record_secrets: bool = False


def run(options: RunOptions, *, attached_to: str | None = None) -> None:
    """Run until SIGTERM or SIGINT; CommandError if the program cannot start or fails.

    `attached_to`: kubeconfig of an embedded cluster that another process hosts (`--reload`). Defaults to None.
    """
    _check(options)
    options = msgspec.structs.replace(options, files=targets(options.files))
    found = [find(each) for each in options.files]
    _serve(options, lambda host: program_of(load_all(found, host), host), attached_to)


def run_front_end(options: RunOptions, make: Callable[[], Sequence[Any]]) -> None:
    """Run objects that `Manager.add` accepts, as `run` does with those of a file.

    `make`: creates them, when the cluster is known; CommandError if they cannot be created. Its files are not Python:
    `options.files` are for messages.
    """
    _check(options)

    def load(host: Host) -> Program:
        with hosting(host):
            return Program([], [Manager().add(*make())])

    _serve(options, load, None)


def _serve(options: RunOptions, load: Callable[[Host], Program], attached_to: str | None) -> None:
    levels = parse_levels(options.log_level)
    configure_logging(options.log_format)
    set_levels(initial_levels(options.verbose, levels, embedded=options.embedded))
    with (
        _interruptible(),
        recording_to(options.record, secrets=options.record_secrets),
        new_runner() as runner,
        _cluster(options, runner, attached_to) as cluster,
    ):
        host = Host(choices=cluster.choices, namespace=options.namespace)
        program = load(host)
        set_levels(program_levels(program, options.verbose, levels))
        with _run_errors():
            runner.run(_run(program, options, cluster))


def run_reloading(options: RunOptions) -> None:
    """Run until SIGTERM or SIGINT, and restart the controllers when the sources change."""
    _check(options)
    sources = Sources(targets(options.files))
    configure_logging(options.log_format)
    set_levels(initial_levels(options.verbose, parse_levels(options.log_level), embedded=options.embedded))
    with _interruptible(), new_runner() as runner, _cluster(options, runner, None) as cluster:
        sys.stdout.write(cluster.banner)
        sys.stdout.flush()
        world = World.real()
        encoded = msgspec.json.encode(options)
        supervisor = Supervisor(world, sources, encoded, cluster.kubeconfig)

        def leave(code: int) -> None:
            supervisor.kill()
            cluster.exit(code)

        try:
            with _run_errors():
                runner.run(serve_together(supervisor, *cluster.beside, leave=leave))
        finally:
            supervisor.kill()
            world.executor.close()


def _check_namespace(namespace: str) -> None:
    if is_pattern(namespace):
        try:
            NamespacePatterns(namespace)
        except ValueError as error:
            raise CommandError(f"--namespace {namespace}: {error}") from None
    elif namespace and (problems := names.name_is_dns_label(namespace)):
        raise CommandError(f"--namespace {namespace}: not a namespace name: {problems[0]}")


def _check(options: RunOptions) -> None:
    if options.embedded and (options.kubeconfig or options.context):
        raise CommandError("--embedded excludes --kubeconfig and --context; give one or the other")
    if options.embedded and options.webhook_certificates:
        raise CommandError("--embedded excludes --webhook-certificates; it creates certificates for this machine")
    if options.state and not options.embedded:
        raise CommandError("--state needs --embedded")
    if options.accept_data_loss and not options.state:
        raise CommandError("--accept-data-loss needs --embedded --state DIR")
    if options.record_secrets and not options.record:
        raise CommandError("--record-secrets needs --record DIR")
    check_endpoints(options)
    if options.page or options.page_writes:
        from ostinato.cli.page.address import check_page  # noqa: PLC0415 - only with a page

        check_page(options.page, writes=options.page_writes)
        if options.reload:
            raise CommandError("--page excludes --reload: its history would end with each restart")
    _check_namespace(options.namespace)
    try:
        if options.leader_election:
            LeaderElection(name=options.leader_election)
        if options.sharding:
            Sharding(name=options.sharding)
    except ValueError as error:
        option = "--leader-election" if str(error).startswith("leader") else "--sharding"
        raise CommandError(f"{option}: {error}") from None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Handle SIGTERM like SIGINT until the managers install their handlers, so that temporary files are removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Cluster(NamedTuple):
    choices: Choices
    beside: Sequence[Served] = ()  # served together with the managers
    exit: Callable[[int], object] = os._exit  # ends the process without cleanup by the managers
    banner: str = ""  # how to connect with kubectl; printed when the program runs
    kubeconfig: Path | None = None  # of the embedded cluster


@contextmanager
def _cluster(options: RunOptions, runner: asyncio.Runner, attached_to: str | None) -> Iterator[_Cluster]:
    """Yield the chosen cluster: the embedded one, started; that of a kubeconfig; or none, and the file decides."""
    others: dict[str, Any] = {
        "leader_election": options.leader_election or None,
        "sharding": options.sharding or None,
        "health": options.health,
        "metrics": metrics_of(options),
        "profiler": options.profiler,
        "observer": _observer() if options.page else None,
    }
    namespace = None if is_pattern(options.namespace) else options.namespace or None
    if not options.embedded or attached_to:
        config = None
        if attached_to or options.kubeconfig or options.context or namespace:
            with _run_errors():
                config = Config.load(options.context, attached_to or options.kubeconfig, namespace=namespace)
        yield _Cluster(Choices(config=config, **others))
        return
    world = World.real()
    cluster = _embedded(world, options, runner, others["observer"])
    try:
        banner = f"embedded cluster ready at {cluster.url}; kubectl --kubeconfig {cluster.kubeconfig}\n"
        config = Config.load(path=cluster.kubeconfig, namespace=namespace)
        choices = Choices(config=config, connect=cluster.connect, **others)
        yield _Cluster(choices, [cluster], cluster.exit, banner, cluster.kubeconfig)
    finally:
        runner.run(cluster.close())
        world.executor.close()


def _embedded(world: World, options: RunOptions, runner: asyncio.Runner, observer: Observer | None) -> Embedded:
    """Return the embedded cluster, started. `observer`: receives what its components do."""
    try:
        from ostinato.cli.program.embedded import Embedded  # noqa: PLC0415 - needs ostinato[server]

        state = Path(options.state) if options.state else None
        cluster = Embedded(world, state, accept_data_loss=options.accept_data_loss, observer=observer)
        with command_errors():  # none of the program's code runs here
            runner.run(progress("starting the embedded cluster", cluster.start(), world.clock))
    except ModuleNotFoundError as error:
        raise CommandError(f"--embedded needs the server; run pip install 'ostinato[server]' ({error})") from None
    return cluster


async def _run(program: Program, options: RunOptions, cluster: _Cluster) -> None:
    for webhooks in program.webhooks:
        if options.embedded:
            webhooks.serve_at(_LOOPBACK, _free_port())
        elif options.webhook_certificates:
            webhooks.read_certificates(options.webhook_certificates)
    definitions = definitions_of(program, all_kinds=options.embedded) if _installs(options) else []
    for manager in program.managers:
        checks = prepare(manager, " ".join(options.files), definitions)
        await progress("checking the kinds of the program on the cluster", checks, manager.world.clock)
    if options.embedded and program.webhooks:
        await install_webhooks(program.managers[0], program.webhooks)
    if options.page:
        cluster = cluster._replace(beside=[*cluster.beside, await _page(program, options, cluster)])
    announcing = asyncio.get_running_loop().create_task(_announce(program, cluster.banner))
    try:
        await serve_together(*program.managers, *cluster.beside, leave=cluster.exit)
    finally:
        announcing.cancel()


def _observer() -> Observer:
    from ostinato.page.reporting.reporter import Reporter  # noqa: PLC0415 - only with a page

    return Reporter("operator", RealClock())


async def _page(program: Program, options: RunOptions, cluster: _Cluster) -> Served:
    """Return the page: of the whole embedded cluster, or of what the program's first manager may see."""
    from ostinato.cli.page.paged_program import PagedProgram, PageOptions  # noqa: PLC0415 - only with a page
    from ostinato.page.reporting.reporter import Reporter  # noqa: PLC0415
    from ostinato.page.watching.cluster import Scope  # noqa: PLC0415

    manager, reporter, connect = program.managers[0], cluster.choices.observer, cluster.choices.connect
    assert isinstance(reporter, Reporter), "with a page, the observer is its reporter"
    if connect is None:
        namespaces = manager.caches.defaults.namespaces
        client, scope = manager.connected("page"), Scope(kinds=lambda: reporter.kinds, namespaces=namespaces)
    else:
        from ostinato.cli.page.paged_plane import page_client  # noqa: PLC0415 - needs ostinato[server]

        client, scope = await page_client(connect, manager.world, writes=options.page_writes), Scope()
    return PagedProgram(manager.world, client, scope, reporter, PageOptions(options.page, options.page_writes))


async def _announce(program: Program, banner: str) -> None:
    """Print that the program runs, when its webhooks accept connections; then wait for the caches."""
    clock = program.managers[0].world.clock
    for webhooks in program.webhooks:
        await _serving(webhooks, clock)
    names = ", ".join(each.name for each in program.runnables)
    sys.stdout.write(f"{banner}running {names}\n")
    sys.stdout.flush()
    synced = asyncio.gather(*(manager.synced() for manager in program.managers))
    await progress("waiting for the caches to sync", synced, clock)


async def _serving(webhooks: Webhooks, clock: Clock) -> None:
    from ostinato.webhook.server import NotServing  # noqa: PLC0415 - loads only where it is needed

    while True:
        try:
            await webhooks.check()
        except NotServing:
            await clock.sleep(_POLL_SECONDS)
        else:
            return


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port


def _installs(options: RunOptions) -> bool:
    return options.embedded or options.install_crds


@contextmanager
def _run_errors() -> Iterator[None]:
    """Like `command_errors`, with a hint at --embedded, and with the user's part of other tracebacks."""
    with command_errors():
        try:
            yield
        except NoConfig as error:
            raise CommandError(f"{error}; use --embedded to run without a cluster") from None
        except Exception as error:
            if isinstance(error, USER_ERRORS) or not shorten(error):
                raise
            trace = "".join(traceback.format_exception(error)).rstrip()
            raise CommandError(f"the program failed:\n{trace}") from None
