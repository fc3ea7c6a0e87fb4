"""Manager: runs controllers and their dependencies: clients, caches, leader election, Events, health and metrics.

    Manager().add(widgets).run()

    manager = Manager(leader_election="widgets", health=":8081", metrics=":8080")
    manager.add(widgets, webhooks)
    manager.add_readiness_check("database", database.ping)
    manager.run()

- The start and stop order is defined in `groups`. Webhooks must serve before the process is ready.
- An error of any runnable stops the manager, which stops the others and raises the error.
- A signal, `stop()`, or the cancellation of `serve()` requests a shutdown. Running work then has `graceful_shutdown`
  seconds to finish: 0 cancels it immediately, a negative number waits without limit.
- With leader election, runnables that need it run only in the leader, and can write only while it holds the lease
  (`fence`). A process that loses leadership stops immediately with `LeadershipLost` and must be restarted.
- A manager runs once. Several managers in one process share nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, Self

from ostinato.cache.client import CachedClient
from ostinato.cache.informers import Informers
from ostinato.client.arguments import summarize
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.controllers.builder import Builder
from ostinato.controllers.controller import Controller
from ostinato.controllers.decorator import ControllerFunction
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reports.observing import Observer
from ostinato.controllers.runnable import Dependencies, Recorder, Runnable
from ostinato.manager.connecting import Connect, over_http
from ostinato.manager.connections import CacheOptions, Connections
from ostinato.manager.election.announcing import Announcer
from ostinato.manager.election.election import Election
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.settings import LeaderElection, completed
from ostinato.manager.group import Stopped
from ostinato.manager.groups import Groups, is_webhook, needs_leader_election, problem_of
from ostinato.manager.hosting import Choices, current_host
from ostinato.manager.lifecycle import Lifecycle, Parts
from ostinato.manager.metrics import cache_families, unreadable_families
from ostinato.manager.options import ClientOptions, ReportingOptions
from ostinato.manager.reminder import Reminder
from ostinato.manager.running import run
from ostinato.manager.serving.endpoints import Answer, Endpoint, Query, Served, gets
from ostinato.manager.serving.health import Check, Checks
from ostinato.manager.serving.metrics import Handlers, MetricsHandler, MetricsOptions, metrics_endpoint
from ostinato.manager.serving.readiness import CACHES, InitialSync, converts
from ostinato.manager.sharding.election import ShardElection
from ostinato.manager.sharding.settings import Sharding, completed_sharding
from ostinato.manager.sharding.shards import ReplicaShards, ShardFence
from ostinato.manager.tracing import spans
from ostinato.metrics import CONTENT_TYPE, Registry, process_families
from ostinato.world import World

_LEASE_TOLERANCE: Final = 20.0  # seconds after its lease expired in which a leader must have stopped


class Manager:
    def __init__(
        self,
        config: Config | None = None,
        *,
        leader_election: str | LeaderElection | None = None,
        sharding: str | Sharding | None = None,
        health: str = "",
        metrics: str | MetricsOptions = "",
        profiler: str = "",
        caches: CacheOptions | None = None,
        controllers: ControllerOptions | None = None,
        client: ClientOptions | None = None,
        reporting: ReportingOptions | None = None,
        graceful_shutdown: float = 30.0,
        connect: Connect | None = None,
        world: World | None = None,
        observer: Observer | None = None,
    ) -> None:
        """
        - `config`: the API server to connect to. Defaults to `Config.load()`, which finds it as kubectl does, when it
          is first needed.
        - `leader_election`: name of the Lease, or all options. Defaults to None: every replica runs everything.
        - `sharding`: name of the Leases, or all options: replicas share the objects of the controllers. Defaults to
          None: a replica that runs a controller reconciles all objects. See `ostinato.manager.sharding`.
        - `health`, `metrics`: addresses to serve the endpoints on, such as ":8081". Default to "", not served.
          `MetricsOptions` serves the metrics over TLS to authorized clients.
        - `profiler`: address to serve the profiler on; ":6060" is on the loopback address. Defaults to "", not served.
        - `caches`: what is cached, and how. Defaults to all objects of each kind that is watched.
        - `controllers`: options of controllers that do not set their own.
        - `client`: field manager, identities and warnings of the clients.
        - `reporting`: Events and logs.
        - `graceful_shutdown`: seconds that running work has to finish on shutdown. 0 cancels it immediately, a negative
          number waits without limit. Defaults to 30.
        - `connect`: creates the transports, in place of HTTP to the server of `config`; for a server in this process.
        - `world`: clock, randomness, ids and threads. Defaults to the real ones.
        - `observer`: receives what the controllers do, for a live view. Defaults to None.

        A program that loads the file of this manager may override some of these (`hosting`).
        """
        if config is not None and not isinstance(config, Config):
            raise TypeError(
                f"config: {summarize(config)} is not a Config; read a kubeconfig with Config.load(path=...)"
            )
        choices = Choices(
            config=config,
            connect=connect,
            leader_election=leader_election,
            sharding=sharding,
            health=health,
            metrics=metrics,
            profiler=profiler,
            caches=caches,
            controllers=controllers,
            observer=observer,
        )
        host = current_host()
        if host is not None:
            choices = host.decide(choices)
        self._is_hosted = host is not None
        self._reminder = Reminder()
        self._owns_world = world is None
        self.world = world or World.real()
        self.metrics = Registry()
        self._config = choices.config
        self._connect = choices.connect
        self._client_options = client or ClientOptions()
        self._reporting = reporting or ReportingOptions()
        self._caches = choices.caches or CacheOptions()
        self._controllers = choices.controllers or ControllerOptions()
        self._observer = choices.observer
        self._worlds: list[World] = []  # worlds of the runnables, with threads of their own
        self._health = {endpoint: Checks(self._world_with_own_threads().executor) for endpoint in ("healthz", "readyz")}
        self._handlers = Handlers(self._world_with_own_threads())
        self._metrics_options = choices.metrics
        self._endpoints = [*self._created_endpoints(choices)]
        self._election_options = self._completed(choices.leader_election)
        self._fence = None if self._election_options is None else Fence(self.world.clock)
        self._sharding_options = self._completed_sharding(choices.sharding)
        self._shards = None if self._sharding_options is None else ReplicaShards(self._sharding_options)
        self._grace = graceful_shutdown
        self._added: list[Runnable] = []  # added before the start
        self._added_caches: list[Informers] = []
        self._groups: Groups | None = None
        self._parts: Parts | None = None
        self._lifecycle: Lifecycle | None = None
        self._election: Election | None = None
        self._announcer: Announcer | None = None
        self._synced = asyncio.Event()
        self._stop_requested = False
        self._ended = False

    # For controllers

    @property
    def client(self) -> CachedClient:
        """Reads from caches, writes to the server. With leader election it writes only while this process leads."""
        return self._connections.leaders

    def client_as(self, identity: str) -> CachedClient:
        """Return a client for an identity of its own, on every replica; see `ClientOptions.identities`."""
        return self._connections.client_of(identity, leads=False)

    @property
    def informers(self) -> Informers:
        """The shared informers."""
        return self._connections.informers

    def recorder(self, name: str, *, core: bool | None = None, host: str = "") -> Recorder:
        """Return an Event recorder for a controller.

        - `core`: record Events of the core group. Defaults to `ReportingOptions.core_events`.
        - `host`: source host of core Events. Defaults to "".
        """
        events = self._connections.events
        is_core = self._reporting.core_events if core is None else core
        return events.core_recorder(name, host) if is_core else events.recorder(name)

    @property
    def is_leader(self) -> bool:
        """Whether this process leads; without leader election, whether the runnables have been started."""
        if self._election is not None:
            return self._election.is_leader
        return self._lifecycle is not None and self._lifecycle.elected.is_set() and not self._ended

    async def elected(self) -> None:
        """Wait until this process leads. Without leader election, until the runnables are started."""
        if self._lifecycle is None:
            raise RuntimeError("the manager has not been started; call run() or serve()")
        await self._lifecycle.elected.wait()

    async def synced(self) -> None:
        """Wait until all caches have synced."""
        await self._synced.wait()

    def check_leadership(self) -> None:
        """Health check: raises if this process still leads long after its lease expired."""
        if self._election is not None:
            self._election.check(_LEASE_TOLERANCE)

    async def check_caches(self) -> None:
        """Readiness check: raises with the kinds that are not synced, and why.

        Unlike the default check `caches` (`serving.readiness`), it also fails for caches that start later. Do not use
        it if webhooks of this manager convert the cached kinds: a Service does not route to a Pod that is not ready, so
        the caches would never sync.
        """
        if self._lifecycle is None:
            raise RuntimeError("the manager has not been started; call run() or serve()")
        for cache in (self.informers, *self._added_caches):
            await cache.synced(timeout=0)

    # Configuration

    @property
    def runnables(self) -> tuple[Runnable, ...]:
        """The runnables that were added before the start."""
        return tuple(self._added)

    @property
    def leader_election(self) -> LeaderElection | None:
        return self._election_options

    @property
    def sharding(self) -> Sharding | None:
        return self._sharding_options

    @property
    def shards(self) -> frozenset[int]:
        """The shards that this replica holds; empty without sharding."""
        return frozenset() if self._shards is None else self._shards.held

    @property
    def caches(self) -> CacheOptions:
        return self._caches

    @property
    def reviews_access(self) -> bool:
        """Whether the manager reviews the access of the clients of its endpoints."""
        return isinstance(self._metrics_options, MetricsOptions) and self._metrics_options.authorize

    @property
    def reporting(self) -> ReportingOptions:
        return self._reporting

    def connected(self, purpose: str) -> Client:
        """Return a new client, which the caller closes. The purpose is part of its user agent."""
        return self._connections.client_for(purpose)

    # Adding

    def add(self, *runnables: Any) -> Self:  # Any: a Runnable, or Informers of another cluster
        """Add runnables, or informers of another cluster. While the manager runs they start immediately.

        Raises `Stopped` once the manager stops, ValueError if the name is taken.
        """
        for runnable in runnables:
            if self._ended or (self._lifecycle is not None and self._lifecycle.is_stopping):
                raise Stopped
            if isinstance(runnable, Informers):
                self._add_cache(runnable)
            elif not callable(getattr(runnable, "run", None)) or not getattr(runnable, "name", ""):
                raise TypeError(f"add() {problem_of(runnable)}")
            elif self._groups is not None:
                self._groups.add(runnable, self._dependencies(runnable))
            elif any(runnable.name == each.name for each in self._added):
                raise ValueError(
                    f"add() runnable {runnable.name!r} exists; names must be unique in a manager, "
                    f"set another, e.g. @controller(..., name={runnable.name + '-2'!r})"
                )
            else:
                for path, handler in getattr(runnable, "metrics_handlers", {}).items():
                    self._handlers.add(path, handler)
                self._added.append(runnable)
                if not self._is_hosted:
                    self._reminder.arm(runnable.name)
        return self

    def build(self, name: str = "") -> Builder:
        """Return a builder; its `complete(reconciler)` adds the controller to this manager."""
        return Builder(name, add=self.add)

    def add_health_check(self, name: str, check: Check) -> Self:
        """Add a check to `/healthz`. If it fails, the kubelet restarts the container."""
        return self._add_check("healthz", name, check)

    def add_readiness_check(self, name: str, check: Check) -> Self:
        """Add a check to `/readyz`. While it fails, Services do not route to the Pod."""
        return self._add_check("readyz", name, check)

    def add_metrics_handler(self, path: str, handler: MetricsHandler) -> Self:
        """Answer further paths on the metrics endpoint, with its TLS and its access control.

        - `path`: such as "/debug/queues"; with a slash at its end, of all paths below it.
        - `handler`: takes an `HttpRequest` and returns an `HttpResponse`, text or bytes; a coroutine function, or a
          plain function, which runs in a thread.
        """
        if self._lifecycle is not None:
            raise RuntimeError("add_metrics_handler() must be called before the manager is started")
        if not any(each.name == "metrics" for each in self._endpoints):
            raise RuntimeError("add_metrics_handler() needs the metrics endpoint; set Manager(metrics=...)")
        self._handlers.add(path, handler)
        return self

    # Running

    def run(self) -> None:
        """Run on a new event loop until a signal arrives or a runnable fails."""
        run(self)

    async def serve(self) -> None:
        """Run until `stop()`, cancellation, or the failure of a runnable, which is raised."""
        if self._lifecycle is not None or self._ended:
            raise RuntimeError("manager already started")
        if current_host() is not None:
            raise RuntimeError("serve() cannot be called in a file that another program loads; call run() instead")
        self._reminder.disarm()
        connections = self._connections
        try:
            lifecycle = self._lifecycle = self._assembled(connections)
            connections.events.start()
            if self._stop_requested:
                lifecycle.stop()
            await lifecycle.live()
        finally:
            self._ended = True
            if self._announcer is not None:
                self._announcer.ended()
            await connections.events.stop()
            await connections.close()
            for world in (*self._worlds, *([self.world] if self._owns_world else ())):
                world.executor.close()

    def stop(self) -> None:
        """Request a graceful shutdown. Before the start, the manager stops right after it."""
        self._stop_requested = True
        if self._lifecycle is not None:
            self._lifecycle.stop()

    # Assembly

    @cached_property
    def _connections(self) -> Connections:
        config = self._config
        if config is None and self._connect is None:
            config = Config.load()
        connect = self._connect or over_http(config or Config(), self.world)
        namespace = "default" if config is None else config.namespace
        shards = None if self._shards is None else ShardFence(self._shards)
        options, caches, fence = self._client_options, self._caches, self._fence
        return Connections(connect, self.world, namespace, options, caches, fence, shards, self._observer)

    def _assembled(self, connections: Connections) -> Lifecycle:
        """Create all parts, ready to start."""
        groups = Groups(self.world.clock, self._failed)
        self._election = self._create_election(connections)
        self._parts = Parts(
            self._endpoints,
            groups,
            [connections.informers, *self._added_caches],
            self._caches.sync_timeout,
            self._election,
            self._create_sharding(connections),
        )
        self._show_metrics(connections)
        for runnable in self._added:
            groups.add(runnable, self._dependencies(runnable))
            if is_webhook(runnable) and runnable.name not in self._health["readyz"]:
                self._health["readyz"].add(runnable.name, runnable.check)
        if CACHES not in self._health["readyz"] and not any(map(converts, self._added)):
            self._health["readyz"].add(
                CACHES, InitialSync(self._synced.is_set, self._expected, self.check_caches).check
            )
        self._groups = groups
        return Lifecycle(self._parts, self.world.clock, self._grace, self._synced)

    def _created_endpoints(self, choices: Choices) -> Iterator[Served]:
        clock = self.world.clock
        if choices.health not in ("", "0"):
            yield Endpoint("health", choices.health, gets(self._answer_health), clock)
        if choices.metrics not in ("", "0"):
            handler = self._handlers.before(gets(self._answer_metrics))
            yield metrics_endpoint(choices.metrics, handler, self.world, lambda: self._connections.live)
        if choices.profiler not in ("", "0"):
            from ostinato.manager.serving.profiler.server import Profiler  # noqa: PLC0415 - off by default

            yield Profiler(choices.profiler, self.world)

    def _expected(self) -> list[Runnable]:
        """Return the runnables that run, or are about to start: all but a leader's while another process leads."""
        leads = self._election is None or self._election.is_leader
        return [
            each
            for each in self._added
            if leads or self._is_sharded(each) or not needs_leader_election(each, self._controllers)
        ]

    def _is_sharded(self, runnable: Runnable) -> bool:
        """Whether the objects of a runnable are shared among the replicas: controllers, unless they opt out."""
        shares = isinstance(runnable, Controller | ControllerFunction) or getattr(runnable, "sharded", False)
        return self._shards is not None and shares and needs_leader_election(runnable, self._controllers)

    def _dependencies(self, runnable: Runnable) -> Dependencies:
        connections = self._connections
        leads = needs_leader_election(runnable, self._controllers)
        identities = self._client_options.identities
        identity = "" if identities is None else identities(runnable.name)
        shards = self._shards if self._is_sharded(runnable) else None
        client = connections.client_of(identity, leads=leads)
        return Dependencies(
            client=client if shards is None else connections.sharded_client(identity),
            informers=connections.informers,
            world=self._world_with_own_threads(),
            metrics=self.metrics,
            recorder=self.recorder(runnable.name),
            logger=self._reporting.logger.getChild(runnable.name),
            span=spans(),
            controllers=self._controllers,
            shards=shards,
            observer=self._observer,
        )

    def _world_with_own_threads(self) -> World:
        """Return the world with a thread pool of its own.

        A function that blocks a thread may wait for a request that needs a thread itself, to read a token or to be
        answered by a webhook of this manager. A shared pool could deadlock.
        """
        world = self.world.with_separate_executor()
        self._worlds.append(world)
        return world

    def _completed(self, given: str | LeaderElection | None) -> LeaderElection | None:
        return completed(given, self.world.ids)

    def _completed_sharding(self, given: str | Sharding | None) -> Sharding | None:
        return completed_sharding(given, self.world.ids)

    def _create_election(self, connections: Connections) -> Election | None:
        if self._election_options is None or self._fence is None:
            return None
        me = self._election_options.identity
        self._announcer = Announcer(self.recorder("leader-election"), me, self._lead)
        election = Election(
            self._election_options,
            lambda: connections.client_for("leader-election"),
            self.world,
            self._fence,
            self._announcer,
        )
        self.metrics.add(election.families)
        return election

    def _create_sharding(self, connections: Connections) -> ShardElection | None:
        if self._sharding_options is None or self._shards is None:
            return None
        election = ShardElection(
            self._sharding_options, lambda: connections.client_for("leader-election"), self.world, self._shards
        )
        self.metrics.add(election.families)
        return election

    def _lead(self) -> None:
        if self._lifecycle is not None:
            self._lifecycle.lead()

    def _add_cache(self, informers: Informers) -> None:
        self._added_caches.append(informers)
        if self._parts is not None:
            self._parts.caches.append(informers)
            informers.start()

    def _add_check(self, endpoint: str, name: str, check: Check) -> Self:
        if self._lifecycle is not None:
            raise RuntimeError(f"unable to add new checker because {endpoint} endpoint has already been created")
        self._health[endpoint].add(name, check)
        return self

    def _failed(self, name: str, error: Exception) -> None:
        assert self._lifecycle is not None
        self._lifecycle.failed(name, error)

    def _show_metrics(self, connections: Connections) -> None:
        self.metrics.add(connections.request_metrics.families)
        self.metrics.add(lambda: cache_families(connections.informers))
        self.metrics.add(lambda: unreadable_families(connections.unreadable))
        self.metrics.add(process_families)

    async def _answer_health(self, path: str, query: Query) -> Answer | None:
        endpoint, _, name = path.removeprefix("/").partition("/")
        checks = self._health.get(endpoint)
        return None if checks is None else Answer(*await checks.report(name, query))

    async def _answer_metrics(self, path: str, query: Query) -> Answer | None:  # noqa: ARG002 - the signature of a handler
        return Answer(200, self.metrics.text(), CONTENT_TYPE) if path == "/metrics" else None
